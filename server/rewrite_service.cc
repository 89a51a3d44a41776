#include "server/rewrite_service.h"

#include <string>

#include "rewrite_core/rewriter.h"
#include "server/stream_call.h"
#include "server/unary_call.h"

namespace spillway::server {

// The reactors delete themselves when gRPC is done with them.

grpc::ServerUnaryReactor* RewriteService::Rewrite(grpc::CallbackServerContext* context,
                                                  const v1::RewriteRequest* request,
                                                  v1::RewriteResponse* response) {
  return new UnaryCall(*context, *request, *response, state_);
}

grpc::ServerBidiReactor<v1::StreamRewriteRequest, v1::StreamRewriteResponse>*
RewriteService::StreamRewrite(grpc::CallbackServerContext* context) {
  return new StreamCall(*context, state_);
}

grpc::ServerUnaryReactor* RewriteService::GetCapabilities(grpc::CallbackServerContext* context,
                                                          const v1::GetCapabilitiesRequest*,
                                                          v1::GetCapabilitiesResponse* response) {
  *response = core::Capabilities(state_.options.limits);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace spillway::server
