#include "server/calls/half_open_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::server {
namespace {

// Cancelled at a time, while new calls wait: some milliseconds.
constexpr int kMostAtOnce = 64;

}  // namespace

HalfOpenCalls::HalfOpenCalls(Clock& clock, Metrics& metrics, int64_t max_message_bytes,
                             int64_t min_rate)
    : clock_(clock),
      metrics_(metrics),
      longest_(kTimeout + absl::Seconds(1) * max_message_bytes / std::max<int64_t>(min_rate, 1)),
      due_bytes_(std::max<int64_t>(min_rate * absl::ToInt64Seconds(kTimeout), 1)),
      timer_(clock.CallAt(clock.Now() + kTimeout, [this] { return CancelLate(); })) {}

absl::Status HalfOpenCalls::CheckRoom(const std::string& host) const {
  const auto of_host = of_host_.find(host);
  if (of_host == of_host_.end() || of_host->second < kMostOfHost) return absl::OkStatus();
  metrics_.CountRejected(RejectReason::kHalfOpen);
  return core::Error(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
      absl::StrCat(of_host->second, " calls from ", host, " have sent no message yet, and ",
                   kMostOfHost, " may: send a call's message with its headers"),
      {{"limit", absl::StrCat(kMostOfHost)}, {"value", absl::StrCat(of_host->second)}});
}

absl::Status HalfOpenCalls::Check(const grpc::CallbackServerContext& context) {
  const std::string host = CallerOf(context).host();
  const std::lock_guard lock(mu_);
  return CheckRoom(host);
}

HalfOpenCalls::Wait::Wait(HalfOpenCalls& calls, std::string peer, std::string host, Message message,
                          std::function<void()> cancel)
    : calls_(calls) {
  const absl::Time now = calls_.clock_.Now();
  int64_t received = 0;
  if (message == Message::kMayBeLarge && calls_.received_bytes_ != nullptr) {
    received = calls_.received_bytes_(peer);
  }
  const std::lock_guard lock(calls_.mu_);
  status_ = calls_.CheckRoom(host);
  if (!status_.ok()) return;
  ++calls_.of_host_[host];
  const absl::Time due = now + kTimeout;
  const absl::Time last_due = message == Message::kSmall ? due : now + calls_.longest_;
  entry_ = calls_.waits_.insert(
      calls_.waits_.end(),
      {std::move(peer), std::move(host), std::move(cancel), due, last_due, received, false});
  waits_ = true;
}

void HalfOpenCalls::Wait::End() {
  if (!std::exchange(waits_, false)) return;
  const std::lock_guard lock(calls_.mu_);
  const auto of_host = calls_.of_host_.find(entry_->host);
  if (--of_host->second == 0) calls_.of_host_.erase(of_host);
  (entry_->is_late ? calls_.late_ : calls_.waits_).erase(entry_);
}

bool HalfOpenCalls::Arrives(Entry& entry, absl::Time now) const {
  if (now >= entry.last_due) return false;
  if (received_bytes_ == nullptr) return true;
  const int64_t received = received_bytes_(entry.peer);
  if (received < 0) return true;
  return received - std::exchange(entry.received, received) >= due_bytes_;
}

absl::Time HalfOpenCalls::CancelLate() {
  const std::lock_guard lock(mu_);
  const absl::Time now = clock_.Now();
  for (int i = 0; !waits_.empty() && waits_.front().due <= now; ++i) {
    if (i == kMostAtOnce) return now;
    Entry& entry = waits_.front();
    if (Arrives(entry, now)) {
      entry.due = now + kTimeout;
      waits_.splice(waits_.end(), waits_, waits_.begin());
    } else {
      entry.cancel();
      entry.is_late = true;
      late_.splice(late_.end(), waits_, waits_.begin());
    }
  }
  return waits_.empty() ? now + kTimeout : waits_.front().due;
}

}  // namespace spillway::server
