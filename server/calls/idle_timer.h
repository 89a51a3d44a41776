// Calls back once if the server waits for the peer for too long.
//
//   IdleTimer timer(clock, absl::Seconds(60), [context] { context->TryCancel(); });
//   timer.Wait();   // The server waits for the peer from now on. Again: restarts the time.
//   timer.Pause();  // The server is working: no time runs.
//
// Once the timer is destroyed, the callback does not run any more; the destructor waits for it if
// it is running.
//
// Thread-safe. Wait and Pause are an atomic store each; the timer reads it when it fires.
#ifndef SPILLWAY_SERVER_CALLS_IDLE_TIMER_H_
#define SPILLWAY_SERVER_CALLS_IDLE_TIMER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/base/clock.h"

namespace spillway::server {

class IdleTimer {
 public:
  // Starts paused. An infinite `timeout` never fires. `on_idle` must not destroy the timer.
  // `clock` must outlive it.
  IdleTimer(Clock& clock, absl::Duration timeout, std::function<void()> on_idle);
  IdleTimer(const IdleTimer&) = delete;
  IdleTimer& operator=(const IdleTimer&) = delete;

  void Wait();
  void Pause();

 private:
  // Calls on_idle_, or returns when it may be due.
  absl::Time OnTimer();

  Clock& clock_;
  const absl::Duration timeout_;
  const std::function<void()> on_idle_;
  std::atomic<int64_t> waiting_since_ns_;
  std::unique_ptr<Clock::Timer> timer_;  // Last, so that it stops before the rest is destroyed.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_IDLE_TIMER_H_
