// How the server measures the passage of time: for timeouts, quotas and intervals. Tests pass their
// own clock (tests/server/manual_clock.h), so that none of them has to sleep.
//
// Monotonic, with an arbitrary epoch: its times are not dates. Deadlines and durations of requests
// use core::SteadyNow(), which the real clock shows; absl::Now() is for dates in log and journal,
// and for times that gRPC takes and returns.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_BASE_CLOCK_H_
#define SPILLWAY_SERVER_BASE_CLOCK_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace spillway::server {

class Clock {
 public:
  // Cancels the callback when destroyed: it does not run afterwards. Waits for it if it is running.
  class Timer {
   public:
    virtual ~Timer() = default;
  };

  // Returns when it is to be called next; absl::InfiniteFuture(): never again. Must not destroy its
  // timer.
  using Callback = std::function<absl::Time()>;

  virtual ~Clock() = default;

  virtual absl::Time Now() const = 0;

  // Calls `callback` once `when` has passed, on another thread, possibly before this returns. An
  // infinite `when` never passes. The clock must outlive the timer.
  [[nodiscard]] virtual std::unique_ptr<Timer> CallAt(absl::Time when, Callback callback) = 0;

  // Blocks for `duration`; returns immediately unless it is positive.
  void SleepFor(absl::Duration duration);
};

// The monotonic clock of this machine, with gRPC's alarms as timers. Never destroyed.
Clock& RealClock();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_CLOCK_H_
