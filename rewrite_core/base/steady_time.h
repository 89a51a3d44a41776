// The time by a clock that cannot be set, for deadlines and durations.
//
// Thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_BASE_STEADY_TIME_H_
#define SPILLWAY_REWRITE_CORE_BASE_STEADY_TIME_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace spillway::core {

// Monotonic, with an arbitrary epoch: not a date, and not to be compared with absl::Now().
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Something that happens once. (absl::Notification waits until a date: setting the clock ends or
// prolongs such a wait.)
class Event {
 public:
  // Idempotent.
  void Notify() {
    const std::lock_guard lock(mu_);
    happened_ = true;
    changed_.notify_all();  // Under the lock: the waiter may destroy this.
  }

  // Waits until it happens, or for `duration`, of which at most a year counts. Returns whether it
  // has happened.
  bool WaitFor(absl::Duration duration) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock,
                             absl::ToChronoNanoseconds(std::min(duration, absl::Hours(365 * 24))),
                             [this] { return happened_; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool happened_ = false;  // Guarded by mu_.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_STEADY_TIME_H_
