#include "server/base/clock.h"

#include <grpc/grpc.h>
#include <grpcpp/alarm.h>

#include <chrono>
#include <future>
#include <mutex>
#include <utility>

#include "absl/time/clock.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::server {
namespace {

// Keeps gRPC's library initialized.
class GrpcInUse {
 public:
  GrpcInUse() { grpc_init(); }
  ~GrpcInUse() { grpc_shutdown(); }
  GrpcInUse(const GrpcInUse&) = delete;
  GrpcInUse& operator=(const GrpcInUse&) = delete;
};

// The state that a timer shares with the callbacks of its alarms, which may outlive it.
class AlarmState : public std::enable_shared_from_this<AlarmState> {
 public:
  AlarmState(const Clock& clock, Clock::Callback callback)
      : clock_(clock), callback_(std::move(callback)) {}

  // Fires at `when`, unless stopped before.
  void Arm(absl::Time when) {
    if (when == absl::InfiniteFuture()) return;
    // A new alarm each time: one cannot be set again from its own callback. Alarms are created and
    // destroyed without `mu_`: both take gRPC's global lock, and a callback that runs under that
    // lock may be waiting for `mu_`.
    auto fresh = std::make_unique<grpc::Alarm>();
    std::unique_ptr<grpc::Alarm> old;
    const std::lock_guard lock(mu_);
    if (stopped_) return;
    old = std::exchange(alarm_, std::move(fresh));
    alarm_->Set(absl::ToChronoTime(absl::Now() + (when - clock_.Now())),
                [self = shared_from_this()](bool expired) { self->OnAlarm(expired); });
  }

  void Stop() {
    std::unique_ptr<grpc::Alarm> alarm;
    {
      const std::lock_guard lock(mu_);
      stopped_ = true;
      alarm = std::move(alarm_);
    }
    // Outside the lock: cancelling may run the callback at once.
    if (alarm != nullptr) alarm->Cancel();
  }

 private:
  void OnAlarm(bool expired) {
    absl::Time next;
    {
      const std::lock_guard lock(mu_);
      if (!expired || stopped_) return;
      next = callback_();  // Under the lock, so that Stop waits for it.
    }
    Arm(next);
  }

  // As long as a callback may run. Otherwise, destroying the last alarm could shut gRPC down, which
  // joins the callback's thread under the global lock, while that thread waits for the lock to
  // create its next alarm (grpc_shutdown_internal_locked and grpc_init in gRPC's init.cc).
  const GrpcInUse grpc_in_use_;
  const Clock& clock_;
  const Clock::Callback callback_;
  std::mutex mu_;  // Guards the rest.
  bool stopped_ = false;
  std::unique_ptr<grpc::Alarm> alarm_;
};

class AlarmTimer final : public Clock::Timer {
 public:
  explicit AlarmTimer(std::shared_ptr<AlarmState> state) : state_(std::move(state)) {}
  ~AlarmTimer() override { state_->Stop(); }

 private:
  const std::shared_ptr<AlarmState> state_;
};

class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override { return core::SteadyNow(); }

  std::unique_ptr<Timer> CallAt(absl::Time when, Callback callback) override {
    auto state = std::make_shared<AlarmState>(*this, std::move(callback));
    state->Arm(when);
    return std::make_unique<AlarmTimer>(std::move(state));
  }
};

}  // namespace

void Clock::SleepFor(absl::Duration duration) {
  if (duration <= absl::ZeroDuration()) return;
  std::promise<void> over;
  const std::unique_ptr<Timer> timer = CallAt(Now() + duration, [&over] {
    over.set_value();
    return absl::InfiniteFuture();
  });
  over.get_future().wait();
}

Clock& RealClock() {
  static Clock& clock = *new SteadyClock;
  return clock;
}

}  // namespace spillway::server
