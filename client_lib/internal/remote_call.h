// Internal. What every call to a server has: a context with the caller's deadline and cancellation.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_REMOTE_CALL_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_REMOTE_CALL_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "spillway/connection.h"

namespace spillway::internal {

// When a call that starts now must end: fixed once, so that a call of several attempts has one
// deadline.
struct CallLimits {
  explicit CallLimits(const CallOptions& call)
      : deadline(absl::Now() + call.timeout), cancellation(call.cancellation) {}

  const absl::Time deadline;
  const CancellationToken cancellation;
};

// One attempt: gRPC allows a context for one call only.
class RemoteCall {
 public:
  explicit RemoteCall(const CallLimits& limits)
      : on_cancel_(limits.cancellation, [this] { context_.TryCancel(); }) {
    if (limits.deadline != absl::InfiniteFuture()) {
      context_.set_deadline(absl::ToChronoTime(limits.deadline));
    }
  }

  grpc::ClientContext* context() { return &context_; }

 private:
  grpc::ClientContext context_;
  // After the context: it must be gone first.
  CancellationCallback on_cancel_;
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_REMOTE_CALL_H_
