#include "server/unary_call.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/wire_reader.h"
#include "server/graph_task.h"
#include "server/limit_error.h"
#include "server/rewrite_task.h"

namespace spillway::server {

UnaryCall::UnaryCall(grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
                     grpc::ByteBuffer& response, ServiceState& state)
    : request_(request), response_(response), call_(context, state, Method::kRewrite) {
  const absl::Status status = Guarded([this] { return Start(); });
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
  OptionCost cost;
  if (absl::Status status = Split(&cost); !status.ok()) return status;
  const int64_t graph_bytes = static_cast<int64_t>(graph_.size());
  call_.AddInputBytes(graph_bytes);
  absl::Status status = call_.Admit(StrategyOf(options_), graph_bytes + cost.charged_bytes);
  if (!status.ok()) return status;
  // Finish comes last: the call, and this, may be gone when it returns.
  return call_.RunOnWorker([this] { Finish(call_.Conclude(Run())); });
}

absl::Status UnaryCall::Split(OptionCost* cost) {
  bytes_ = OnePiece(request_);
  std::string rest;
  core::WireReader reader(View(bytes_));
  while (reader.Next()) {
    if (reader.IsBytes(v1::RewriteRequest::kGraphDefFieldNumber)) {
      graph_ = reader.bytes();
    } else {
      rest.append(reader.whole().data(), reader.whole().size());
    }
  }
  if (!reader.ok())
    rest.append(reader.rest().data(), reader.rest().size());  // Which is no message.
  v1::RewriteRequest others;
  const int64_t limit = call_.state().options.limits.max_option_bytes();
  absl::Status status = ParseOptions(rest, limit, &others, cost);
  if (status.ok()) options_ = std::move(*others.mutable_options());
  return status;
}

absl::Status UnaryCall::Run() {
  absl::StatusOr<v1::RewriteResponse> response =
      RunRewrite(graph_, options_, Framing::kOneMessage, call_.state().options, call_.stop(),
                 call_.state().metrics);
  if (!response.ok()) return response.status();
  return Guarded([&] {
    std::string graph = std::move(*response->mutable_graph_def());
    response->clear_graph_def();
    call_.AddOutputBytes(static_cast<int64_t>(graph.size()));
    response_ = graph.empty() ? ToBuffer(*response)
                              : ToBuffer(*response, v1::RewriteResponse::kGraphDefFieldNumber,
                                         ToSlice(std::move(graph)));
    return absl::OkStatus();
  });
}

}  // namespace spillway::server
