// Internal. The gRPC context of a call: the caller's deadline, cancellation and metadata.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_REMOTE_CALL_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_REMOTE_CALL_H_

#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "client_lib/internal/call_headers.h"
#include "client_lib/internal/call_limits.h"
#include "client_lib/internal/retry.h"
#include "grpcpp/client_context.h"
#include "rewrite_core/base/steady_time.h"
#include "spillway/cancellation.h"

namespace spillway::internal {

// One attempt: gRPC allows a context for one call only.
class RemoteCall {
 public:
  RemoteCall(const CallLimits& limits, const CallHeaders& headers)
      : on_cancel_(limits.cancellation(), [this] { context_.TryCancel(); }) {
    for (const auto& [name, value] : headers) context_.AddMetadata(name, value);
    if (limits.deadline() != absl::InfiniteFuture()) {
      context_.set_deadline(
          absl::ToChronoTime(absl::Now() + (limits.deadline() - core::SteadyNow())));
    }
  }

  grpc::ClientContext* context() { return &context_; }

  // Returns the server's pushback. As in gRPC, a value that is not a number means: do not retry.
  // REQUIRES: the call has ended.
  Pushback pushback() const {
    const auto& metadata = context_.GetServerTrailingMetadata();
    const auto it = metadata.find("grpc-retry-pushback-ms");
    if (it == metadata.end()) return absl::nullopt;
    int milliseconds = -1;
    if (!absl::SimpleAtoi(std::string(it->second.data(), it->second.size()), &milliseconds)) {
      milliseconds = -1;
    }
    return absl::Milliseconds(milliseconds);
  }

 private:
  grpc::ClientContext context_;
  // Declared after the context, so that it is destroyed first.
  CancellationCallback on_cancel_;
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_REMOTE_CALL_H_
