// Counts the requests in flight and closes the door when the server drains.
//
// Thread-safe. A request must have ended before the tracker is destroyed.
#ifndef SPILLWAY_SERVER_REQUEST_TRACKER_H_
#define SPILLWAY_SERVER_REQUEST_TRACKER_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace spillway::server {

class RequestTracker {
 public:
  // A request begins. Each Begin needs one End, also of those that find the door closed: they are
  // in flight until their refusal is sent.
  void Begin() {
    absl::MutexLock lock(&mu_);
    ++inflight_;
  }
  void End() {
    absl::MutexLock lock(&mu_);
    --inflight_;
  }

  // From now on requests are to be refused.
  void CloseDoor() {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }
  bool closed() const {
    absl::MutexLock lock(&mu_);
    return closed_;
  }

  int inflight() const {
    absl::MutexLock lock(&mu_);
    return inflight_;
  }

  // True once no request is in flight; false if that is not so within `timeout`.
  bool AwaitNone(absl::Duration timeout) {
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(
                                    +[](int* n) { return *n == 0; }, &inflight_),
                                timeout);
  }

 private:
  mutable absl::Mutex mu_;
  int inflight_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REQUEST_TRACKER_H_
