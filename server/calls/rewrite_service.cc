#include "server/calls/rewrite_service.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include "google/protobuf/descriptor.h"
#include "rewrite_core/rewriter.h"
#include "server/base/status_to_grpc.h"
#include "server/calls/check_caller.h"
#include "server/calls/streamed_call.h"
#include "server/calls/unary_call.h"
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
  const absl::Status status = CheckCaller(*context, "GetCapabilities", state_);
  if (status.ok()) {
    *response = core::Capabilities(state_.options.limits);
    response->set_dry_run(state_.options.dry_run);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace spillway::server
