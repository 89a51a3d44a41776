#include "server/calls/rewrite_service.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <string>

#include "google/protobuf/descriptor.h"
#include "rewrite_core/rewriter.h"
#include "server/access/credentials.h"
#include "server/base/caller.h"
#include "server/base/logging.h"
#include "server/base/status_to_grpc.h"
#include "server/calls/streamed_call.h"
#include "server/calls/unary_call.h"
#include "server/memory/guarded.h"
#include "server/work/stream_methods.h"

namespace spillway::server {

// Reactors delete themselves when gRPC is done with them.

// What the generated classes do for each method of its own kind. Here all that take chunks are
// bidirectional: to gRPC's transport a single answer is a stream of one.
RewriteService::RewriteService(ServiceState& state) : state_(state) {
  using Handler = grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
  const google::protobuf::ServiceDescriptor& service =
      *v1::RewriteRequest::descriptor()->file()->FindServiceByName("RewriteService");
  for (const StreamMethod& method : StreamMethods()) {
    MarkMethodRawCallback(service.FindMethodByName(MethodName(method.method))->index(),
                          new Handler([this, &method](grpc::CallbackServerContext* context) {
                            return new StreamedCall(*context, state_, method);
                          }));
  }
}

grpc::ServerUnaryReactor* RewriteService::Rewrite(grpc::CallbackServerContext* context,
                                                  const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return new UnaryCall(*context, *request, *response, state_);
}

grpc::ServerUnaryReactor* RewriteService::GetCapabilities(grpc::CallbackServerContext* context,
                                                          const v1::GetCapabilitiesRequest*,
                                                          v1::GetCapabilitiesResponse* response) {
  const absl::Status status = CheckCaller(*context);
  if (status.ok()) *response = core::Capabilities(state_.options.limits);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

absl::Status RewriteService::CheckCaller(const grpc::CallbackServerContext& context) {
  if (state_.access == nullptr) return absl::OkStatus();
  return Guarded([&] {
    const Caller caller = CallerOf(context);
    absl::Status status = state_.access->Find(CredentialsOf(context, caller)).status();
    if (status.ok()) return status;
    // Attempts to guess tokens are counted.
    state_.metrics.CountRejected(RejectReason::kUnknownCaller);
    Log(LogLevel::kInfo, "request",
        {{"method", "GetCapabilities"},
         {"code", CodeName(status.code())},
         {"peer", caller.peer},
         {"error", std::string(status.message())}});
    return status;
  });
}

}  // namespace spillway::server
