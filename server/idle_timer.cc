#include "server/idle_timer.h"

#include <grpcpp/alarm.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace spillway::server {
namespace {

// In waiting_since_ns: it is our turn.
constexpr int64_t kPaused = -1;

}  // namespace

struct IdleTimer::State : std::enable_shared_from_this<State> {
  State(absl::Duration timeout_in, std::function<void()> on_idle_in)
      : timeout(timeout_in), on_idle(std::move(on_idle_in)) {}

  // Fires at `when`, unless stopped before.
  void Arm(absl::Time when) {
    // A new alarm each time: one cannot be set again from its own callback. Alarms are made and
    // destroyed without `mu`: both take gRPC's global lock, under which a callback may run and
    // want `mu`.
    auto fresh = std::make_unique<grpc::Alarm>();
    std::unique_ptr<grpc::Alarm> old;
    absl::MutexLock lock(&mu);
    if (stopped) return;
    old = std::exchange(alarm, std::move(fresh));
    alarm->Set(absl::ToChronoTime(when),
               [self = shared_from_this()](bool expired) { self->OnAlarm(expired); });
  }

  void OnAlarm(bool expired) {
    absl::Time idle_at;
    {
      absl::MutexLock lock(&mu);
      if (!expired || stopped) return;
      const int64_t since = waiting_since_ns.load(std::memory_order_relaxed);
      const absl::Time now = absl::Now();
      idle_at = (since == kPaused ? now : absl::FromUnixNanos(since)) + timeout;
      if (idle_at <= now) {
        stopped = true;
        on_idle();  // Under the lock, so that Stop waits for it.
        return;
      }
    }
    Arm(idle_at);
  }

  const absl::Duration timeout;
  const std::function<void()> on_idle;
  std::atomic<int64_t> waiting_since_ns{kPaused};
  absl::Mutex mu;
  bool stopped ABSL_GUARDED_BY(mu) = false;
  std::unique_ptr<grpc::Alarm> alarm ABSL_GUARDED_BY(mu);
};

IdleTimer::IdleTimer(absl::Duration timeout, std::function<void()> on_idle)
    : state_(std::make_shared<State>(timeout, std::move(on_idle))) {
  if (timeout == absl::InfiniteDuration()) return;
  state_->Arm(absl::Now() + timeout);
}

void IdleTimer::Wait() {
  state_->waiting_since_ns.store(absl::ToUnixNanos(absl::Now()), std::memory_order_relaxed);
}

void IdleTimer::Pause() { state_->waiting_since_ns.store(kPaused, std::memory_order_relaxed); }

void IdleTimer::Stop() {
  std::unique_ptr<grpc::Alarm> alarm;
  {
    absl::MutexLock lock(&state_->mu);
    state_->stopped = true;
    alarm = std::move(state_->alarm);
  }
  // Outside the lock: cancelling may run the callback at once.
  if (alarm != nullptr) alarm->Cancel();
}

}  // namespace spillway::server
