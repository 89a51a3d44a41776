#include "server/memory/caller_shares.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::server {

void CallerShares::Share::Release() {
  if (shares_ == nullptr) return;
  const std::lock_guard lock(shares_->mu_);
  const auto held = shares_->held_.find(caller_);
  held->second.bytes -= bytes_;
  if (held->second.bytes <= shares_->max_bytes_) held->second.yields = false;
  if (held->second.bytes == 0) shares_->held_.erase(held);
  shares_ = nullptr;
}

bool CallerShares::Share::yields() const {
  if (shares_ == nullptr || bytes_ <= shares_->max_bytes_) return false;
  const std::lock_guard lock(shares_->mu_);
  return shares_->held_.at(caller_).yields;
}

void CallerShares::AskToYield(const std::string& caller) {
  const std::lock_guard lock(mu_);
  const auto own = held_.find(caller);
  if (own != held_.end() && own->second.bytes > max_bytes_) return;
  for (auto& [name, held] : held_) held.yields = held.yields || held.bytes > max_bytes_;
}

absl::Status CallerShares::Yielded() const {
  return core::Error(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
      absl::StrCat("the server is full: this graph is above the ", core::BytesText(max_bytes_),
                   " that one caller may have (--max-caller-bytes), which it may only while no "
                   "other needs the room; try again later"),
      {{"limit", absl::StrCat(max_bytes_)}});
}

absl::StatusOr<CallerShares::Share> CallerShares::Take(const std::string& caller, int64_t bytes) {
  if (bytes == 0) return Share();
  const std::lock_guard lock(mu_);
  const auto found = held_.find(caller);
  const int64_t held = found == held_.end() ? 0 : found->second.bytes;
  const bool may_have_more = held == 0 && single_ == Single::kMayHaveMore;
  if (!may_have_more && bytes > max_bytes_ - held) {
    return core::Error(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
        absl::StrCat("this caller's requests in flight hold ", core::BytesText(held), " of the ",
                     core::BytesText(max_bytes_),
                     " that one caller may have (--max-caller-bytes), and this graph of ",
                     core::BytesText(bytes), " does not fit; send it when they have ended"),
        {{"inflight", absl::StrCat(held)},
         {"limit", absl::StrCat(max_bytes_)},
         {"value", absl::StrCat(bytes)}});
  }
  held_[caller].bytes += bytes;
  return Share(this, caller, bytes);
}

}  // namespace spillway::server
