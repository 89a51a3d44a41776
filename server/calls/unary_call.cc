#include "server/calls/unary_call.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "server/base/limit_error.h"
#include "server/memory/guarded.h"

namespace spillway::server {

UnaryCall::UnaryCall(grpc::CallbackServerContext& context, ServiceState& state)
    : call_(context, state, Method::kRewrite) {
  const absl::Status status = Guarded([this] { return call_.Enter(); });
  if (status.ok()) {
    StartRead(&request_);
  } else {
    Finish(call_.Conclude(status));
  }
}

void UnaryCall::OnReadDone(bool ok) {
  const absl::Status status = Guarded([&] {
    return ok ? Start()
              : core::InvalidError(v1::ERROR_REASON_BAD_STREAM,
                                   "the call has no message; send one RewriteRequest");
  });
  if (!status.ok()) Finish(call_.Conclude(status));
}

absl::Status UnaryCall::Start() {
  const int64_t message_bytes = static_cast<int64_t>(request_.Length());
  const int64_t limit = call_.state().options.limits.max_unary_bytes();
  if (message_bytes > limit) {
    return LimitError(
        absl::StrCat("the request has ", message_bytes, " bytes and Rewrite takes at most ", limit,
                     ": use StreamRewrite"),
        message_bytes, limit);
  }
  bytes_ = OnePiece(request_);
  request_.Clear();
  if (absl::Status status = Split(); !status.ok()) return status;
  const int64_t graph_bytes = static_cast<int64_t>(graph_.size());
  call_.AddInputBytes(graph_bytes);
  if (Simulates(options_)) call_.ExpectSimulation();
  absl::Status status = call_.Admit(StrategyOf(options_), graph_bytes, graph_bytes);
  if (!status.ok()) return status;
  return call_.RunOnWorker([this] { Run(); });
}

absl::Status UnaryCall::Split() {
  std::string rest;
  graph_ = SplitField(v1::RewriteRequest::kGraphDefFieldNumber, View(bytes_), &rest);
  v1::RewriteRequest others;
  const int64_t limit = call_.state().options.limits.max_option_bytes();
  absl::Status status = ParseOptions(
      rest, limit, [this](int64_t bytes) { return call_.HoldOptions(bytes); }, &others);
  // A newer client's field, even outside the options, has an unknown meaning.
  if (status.ok()) status = core::CheckKnownFields(others);
  if (!status.ok()) return status;
  options_ = std::move(*others.mutable_options());
  SetDefaults(call_.state().options, &options_);
  return absl::OkStatus();
}

void UnaryCall::Run() {
  if (absl::Status status = call_.BeginWork(); !status.ok()) return Finish(call_.Conclude(status));
  rewrite_.Run(graph_, options_, [this](const std::shared_ptr<RewriteAnswer>& answer) {
    const absl::Status status =
        call_.RunCharged([&] { return Guarded([&] { return Respond(answer); }); });
    // The end comes last: this may be deleted when it returns.
    const grpc::Status end = call_.Conclude(status);
    if (!end.ok()) return Finish(end);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), end);
  });
}

absl::Status UnaryCall::Respond(const std::shared_ptr<RewriteAnswer>& answer) {
  ServiceState& state = call_.state();
  absl::Status status =
      TakeAnswer(*answer, options_, Framing::kOneMessage, state.options, state.metrics);
  if (!status.ok()) return status;
  call_.AddOutputBytes(static_cast<int64_t>(answer->graph.size()));
  const std::shared_ptr<const std::string> graph = GraphOf(answer);
  response_ = graph->empty() ? ToBuffer(answer->response)
                             : ToBuffer(answer->response, v1::RewriteResponse::kGraphDefFieldNumber,
                                        SharedSlice(graph, 0, graph->size()));
  return absl::OkStatus();
}

}  // namespace spillway::server
