#include "server/calls/rewrite_service.h"

#include <string>

#include "rewrite_core/rewriter.h"
#include "server/access/credentials.h"
#include "server/base/caller.h"
#include "server/base/logging.h"
#include "server/base/status_to_grpc.h"
#include "server/calls/answer_call.h"
#include "server/calls/stream_call.h"
#include "server/calls/unary_call.h"
#include "server/memory/guarded.h"
#include "server/work/graph_task.h"
#include "server/work/question_tasks.h"
#include "server/work/rewrite_task.h"

namespace spillway::server {

// Reactors delete themselves when gRPC is done with them.

grpc::ServerUnaryReactor* RewriteService::Rewrite(grpc::CallbackServerContext* context,
                                                  const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return new UnaryCall(*context, *request, *response, state_);
}

RewriteService::BidiReactor* RewriteService::StreamRewrite(grpc::CallbackServerContext* context) {
  return new StreamCall<StreamRewriteTask>(*context, state_);
}

RewriteService::BidiReactor* RewriteService::Inspect(grpc::CallbackServerContext* context) {
  return new StreamCall<InspectTask>(*context, state_);
}

RewriteService::BidiReactor* RewriteService::Explore(grpc::CallbackServerContext* context) {
  return new StreamCall<ExploreTask>(*context, state_);
}

RewriteService::ReadReactor* RewriteService::Simulate(grpc::CallbackServerContext* context,
                                                      grpc::ByteBuffer* response) {
  return new AnswerCall<SimulateTask>(*context, *response, state_);
}

RewriteService::ReadReactor* RewriteService::Diff(grpc::CallbackServerContext* context,
                                                  grpc::ByteBuffer* response) {
  return new AnswerCall<DiffTask>(*context, *response, state_);
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
