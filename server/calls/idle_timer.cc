#include "server/calls/idle_timer.h"

#include <utility>

namespace spillway::server {
namespace {

// In waiting_since_ns_: not waiting.
constexpr int64_t kPaused = -1;

}  // namespace

IdleTimer::IdleTimer(Clock& clock, absl::Duration timeout, std::function<void()> on_idle)
    : clock_(clock),
      timeout_(timeout),
      on_idle_(std::move(on_idle)),
      waiting_since_ns_(kPaused),
      timer_(clock.CallAt(clock.Now() + timeout, [this] { return OnTimer(); })) {}

void IdleTimer::Wait() {
  waiting_since_ns_.store(absl::ToUnixNanos(clock_.Now()), std::memory_order_relaxed);
}

void IdleTimer::Pause() { waiting_since_ns_.store(kPaused, std::memory_order_relaxed); }

absl::Time IdleTimer::OnTimer() {
  const int64_t since = waiting_since_ns_.load(std::memory_order_relaxed);
  const absl::Time now = clock_.Now();
  const absl::Time idle_at = (since == kPaused ? now : absl::FromUnixNanos(since)) + timeout_;
  if (idle_at > now) return idle_at;
  on_idle_();
  return absl::InfiniteFuture();
}

}  // namespace spillway::server
