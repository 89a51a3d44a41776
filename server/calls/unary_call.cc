#include "server/calls/unary_call.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/known_fields.h"
#include "server/base/limit_error.h"
#include "server/memory/guarded.h"

namespace spillway::server {

UnaryCall::UnaryCall(grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
                     grpc::ByteBuffer& response, ServiceState& state)
    : response_(response), call_(context, state, Method::kRewrite) {
  const absl::Status status = Guarded([&] { return Start(request); });
  if (!status.ok()) Finish(call_.Conclude(status));
}

absl::Status UnaryCall::Start(const grpc::ByteBuffer& request) {
  if (absl::Status status = call_.Enter(); !status.ok()) return status;
  const int64_t message_bytes = static_cast<int64_t>(request.Length());
  const int64_t limit = call_.state().options.limits.max_unary_bytes();
  if (message_bytes > limit) {
    return LimitError(
        absl::StrCat("the request has ", message_bytes, " bytes and Rewrite takes at most ", limit,
                     ": use StreamRewrite"),
        message_bytes, limit);
  }
  bytes_ = OnePiece(request);
  // gRPC keeps the pieces until the end of the call, in its own buffer that only this call reads.
  const_cast<grpc::ByteBuffer&>(request).Clear();
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
    // Finish comes last: this may be deleted when it returns.
    Finish(
        call_.Conclude(call_.RunCharged([&] { return Guarded([&] { return Respond(answer); }); })));
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
