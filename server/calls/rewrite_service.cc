#include "server/calls/rewrite_service.h"

#include "google/protobuf/descriptor.h"
#include "rewrite_core/rewriter.h"
#include "server/base/status_to_grpc.h"
#include "server/base/wire.h"
#include "server/calls/check_caller.h"
#include "server/calls/one_message_call.h"
#include "server/calls/streamed_call.h"
#include "server/calls/unary_call.h"
#include "server/work/stream_methods.h"

namespace spillway::server {

RewriteService::RewriteService(ServiceState& state) : state_(state) {
  const google::protobuf::ServiceDescriptor& service =
      *v1::RewriteRequest::descriptor()->file()->FindServiceByName("RewriteService");
  // Reactors of refused calls would be costly to make.
  const auto serve = [&](const std::string& name, const auto& make) {
    Serve(service.FindMethodByName(name)->index(),
          [this, make](grpc::CallbackServerContext* context) -> RawReactor* {
            const absl::Status status = state_.half_open.Check(*context);
            if (!status.ok()) return new RefusedCall(ToGrpcStatus(status));
            return make(*context);
          });
  };
  for (const StreamMethod& method : StreamMethods()) {
    serve(MethodName(method.method), [this, &method](grpc::CallbackServerContext& context) {
      return new StreamedCall(context, state_, method);
    });
  }
  serve("Rewrite",
        [this](grpc::CallbackServerContext& context) { return new UnaryCall(context, state_); });
  Serve(service.FindMethodByName("GetCapabilities")->index(),
        [this](grpc::CallbackServerContext* context) { return GetCapabilities(*context); });
}

RawReactor* RewriteService::GetCapabilities(grpc::CallbackServerContext& context) {
  // The request is empty.
  return new QuestionCall(context, state_.half_open,
                          [this, &context](const grpc::ByteBuffer&, grpc::ByteBuffer* response) {
                            const absl::Status status =
                                CheckCaller(context, "GetCapabilities", state_);
                            if (!status.ok()) return ToGrpcStatus(status);
                            auto capabilities = core::Capabilities(state_.options.limits);
                            capabilities.set_dry_run(state_.options.dry_run);
                            *response = ToBuffer(capabilities);
                            return grpc::Status::OK;
                          });
}

}  // namespace spillway::server
