#include "server/unary_call.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "server/rewrite_task.h"

namespace spillway::server {

UnaryCall::UnaryCall(grpc::CallbackServerContext& context, const v1::RewriteRequest& request,
                     v1::RewriteResponse& response, ServiceState& state)
    : request_(request), response_(response), call_(context, state, Method::kRewrite) {
  if (absl::Status status = Start(); !status.ok()) Finish(call_.Conclude(status));
}

absl::Status UnaryCall::Start() {
  const int64_t graph_bytes = request_.graph_def().size();
  call_.AddInputBytes(graph_bytes);
  if (absl::Status status = call_.Admit(StrategyOf(request_.options()), graph_bytes);
      !status.ok()) {
    return status;
  }
  const int64_t message_bytes = request_.ByteSizeLong();
  const int64_t limit = call_.state().options.limits.max_unary_bytes();
  if (message_bytes > limit) {
    return core::Error(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
        absl::StrCat("the request has ", message_bytes, " bytes and Rewrite takes at most ", limit,
                     ": use StreamRewrite"),
        {{"value", absl::StrCat(message_bytes)}, {"limit", absl::StrCat(limit)}});
  }
  // Finish comes last: the call, and this, may be gone when it returns.
  return call_.RunOnWorker([this] { Finish(call_.Conclude(Run())); });
}

absl::Status UnaryCall::Run() {
  absl::StatusOr<v1::RewriteResponse> response =
      RunRewrite(request_.graph_def(), request_.options(), Framing::kOneMessage,
                 call_.state().options, call_.stop(), call_.state().metrics);
  if (!response.ok()) return response.status();
  response_ = *std::move(response);
  call_.AddOutputBytes(response_.graph_def().size());
  return absl::OkStatus();
}

}  // namespace spillway::server
