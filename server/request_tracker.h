// Counts the requests in flight and closes the door when the server drains.
//
// Thread-safe. A request must have ended before the tracker is destroyed.
#ifndef SPILLWAY_SERVER_REQUEST_TRACKER_H_
#define SPILLWAY_SERVER_REQUEST_TRACKER_H_

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace spillway::server {

class RequestTracker {
 public:
  // A request begins. Each Begin needs one End, also of those that find the door closed: they are
  // in flight until their refusal is sent.
  void Begin() {
    const std::lock_guard lock(mu_);
    ++inflight_;
  }
  void End() {
    const std::lock_guard lock(mu_);
    --inflight_;
    // Under the lock: who waits may destroy this as soon as it is let go.
    if (inflight_ == 0) none_.notify_all();
  }

  // From now on requests are to be refused.
  void CloseDoor() {
    const std::lock_guard lock(mu_);
    closed_ = true;
  }
  bool closed() const {
    const std::lock_guard lock(mu_);
    return closed_;
  }

  int inflight() const {
    const std::lock_guard lock(mu_);
    return inflight_;
  }

  // True once no request is in flight; false if that is not so within `timeout`.
  bool AwaitNone(absl::Duration timeout) {
    std::unique_lock lock(mu_);
    const auto none = [this] { return inflight_ == 0; };
    if (timeout == absl::InfiniteDuration()) {
      none_.wait(lock, none);
      return true;
    }
    return none_.wait_for(lock, absl::ToChronoNanoseconds(timeout), none);
  }

 private:
  mutable std::mutex mu_;  // Guards the rest.
  std::condition_variable none_;
  int inflight_ = 0;
  bool closed_ = false;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REQUEST_TRACKER_H_
