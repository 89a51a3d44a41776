// Internal. What every call to a server has: a context with the caller's deadline and cancellation.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_REMOTE_CALL_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_REMOTE_CALL_H_

#include "absl/time/time.h"
#include "client_lib/internal/call_limits.h"
#include "grpcpp/client_context.h"
#include "spillway/cancellation.h"

namespace spillway::internal {

// One attempt: gRPC allows a context for one call only.
class RemoteCall {
 public:
  explicit RemoteCall(const CallLimits& limits)
      : on_cancel_(limits.cancellation(), [this] { context_.TryCancel(); }) {
    if (limits.deadline() != absl::InfiniteFuture()) {
      context_.set_deadline(absl::ToChronoTime(limits.deadline()));
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
