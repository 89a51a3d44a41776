// Calls back once if the peer keeps us waiting for too long.
//
//   IdleTimer timer(absl::Seconds(60), [context] { context->TryCancel(); });
//   timer.Wait();   // We wait for the peer from now on. Again: the time starts anew.
//   timer.Pause();  // It is our turn; no time runs.
//   timer.Stop();   // The callback does not run any more, now or later.
//
// Thread-safe. Wait and Pause are an atomic store each; the timer looks at it when it fires.
#ifndef SPILLWAY_SERVER_IDLE_TIMER_H_
#define SPILLWAY_SERVER_IDLE_TIMER_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace spillway::server {

class IdleTimer {
 public:
  // Starts paused. An infinite `timeout` never fires. `on_idle` must not call the timer.
  IdleTimer(absl::Duration timeout, std::function<void()> on_idle);
  IdleTimer(const IdleTimer&) = delete;
  IdleTimer& operator=(const IdleTimer&) = delete;
  ~IdleTimer() { Stop(); }

  void Wait();
  void Pause();
  void Stop();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // The alarm's callback shares it.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_IDLE_TIMER_H_
