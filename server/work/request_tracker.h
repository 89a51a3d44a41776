// Counts the requests in flight, and marks when new ones are to be rejected for the drain.
//
// Thread-safe. A request must have ended before the tracker is destroyed.
#ifndef SPILLWAY_SERVER_WORK_REQUEST_TRACKER_H_
#define SPILLWAY_SERVER_WORK_REQUEST_TRACKER_H_

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace spillway::server {

class RequestTracker {
 public:
  // Begins a request. Each Begin needs one End, even if the request is rejected because of a drain:
  // it is in flight until the rejection is sent.
  void Begin() {
    const std::lock_guard lock(mu_);
    ++inflight_;
  }
  void End() {
    const std::lock_guard lock(mu_);
    --inflight_;
    // Under the lock: a waiting thread may destroy this as soon as the lock is released.
    if (inflight_ == 0) none_.notify_all();
  }

  // From now on, requests are to be rejected.
  void Close() {
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

  // Waits until no request is in flight. Returns false on `timeout`.
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

#endif  // SPILLWAY_SERVER_WORK_REQUEST_TRACKER_H_
