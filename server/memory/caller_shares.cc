#include "server/memory/caller_shares.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::server {

void CallerShares::Share::Release() {
  if (shares_ == nullptr) return;
  const std::lock_guard lock(shares_->mu_);
  const auto held = shares_->held_.find(caller_);
  held->second -= bytes_;
  if (held->second == 0) shares_->held_.erase(held);
  shares_ = nullptr;
}

absl::StatusOr<CallerShares::Share> CallerShares::Take(const std::string& caller, int64_t bytes) {
  if (bytes == 0) return Share();
  const std::lock_guard lock(mu_);
  const auto [held, is_first] = held_.try_emplace(caller, 0);
  if (!is_first && bytes > max_bytes_ - held->second) {
    return core::Error(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
        absl::StrCat("this caller's requests in flight hold ", core::BytesText(held->second),
                     " of the ", core::BytesText(max_bytes_),
                     " that one caller may have (--max-caller-bytes), and this graph of ",
                     core::BytesText(bytes), " does not fit; send it when they have ended"),
        {{"inflight", absl::StrCat(held->second)},
         {"limit", absl::StrCat(max_bytes_)},
         {"value", absl::StrCat(bytes)}});
  }
  held->second += bytes;
  return Share(this, caller, bytes);
}

}  // namespace spillway::server
