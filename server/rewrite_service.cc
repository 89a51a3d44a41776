#include "server/rewrite_service.h"

#include <string>

#include "rewrite_core/rewriter.h"
#include "server/answer_call.h"
#include "server/question_tasks.h"
#include "server/rewrite_task.h"
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
  return new StreamCall<StreamRewriteTask>(*context, state_);
}

grpc::ServerBidiReactor<v1::InspectRequest, v1::InspectResponse>* RewriteService::Inspect(
    grpc::CallbackServerContext* context) {
  return new StreamCall<InspectTask>(*context, state_);
}

grpc::ServerReadReactor<v1::SimulateRequest>* RewriteService::Simulate(
    grpc::CallbackServerContext* context, v1::SimulateResponse* response) {
  return new AnswerCall<SimulateTask>(*context, *response, state_);
}

grpc::ServerBidiReactor<v1::ExploreRequest, v1::ExploreResponse>* RewriteService::Explore(
    grpc::CallbackServerContext* context) {
  return new StreamCall<ExploreTask>(*context, state_);
}

grpc::ServerReadReactor<v1::DiffRequest>* RewriteService::Diff(grpc::CallbackServerContext* context,
                                                               v1::DiffResponse* response) {
  return new AnswerCall<DiffTask>(*context, *response, state_);
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
