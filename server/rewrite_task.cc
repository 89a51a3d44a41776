#include "server/rewrite_task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/sha256.h"
#include "rewrite_core/request_check.h"

namespace spillway::server {
namespace {

absl::Status CheckSize(const v1::RewriteResponse& response, Framing framing, int64_t limit) {
  const int64_t graph_bytes = response.graph_def().size();
  int64_t message_bytes = response.ByteSizeLong();
  if (framing == Framing::kStream) message_bytes -= graph_bytes;
  const int64_t bytes = std::max(graph_bytes, message_bytes);
  if (bytes <= limit) return absl::OkStatus();
  const bool stream_would_do = framing == Framing::kOneMessage && graph_bytes <= limit;
  return core::Error(
      absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
      absl::StrCat(
          "the answer has ", bytes, " bytes and one protobuf message holds at most ", limit,
          stream_would_do ? ": use StreamRewrite, or ask for fewer outputs"
                          : ": swap fewer tensors (n_tensors), or keep weights in checkpoints"),
      {{"value", absl::StrCat(bytes)}, {"limit", absl::StrCat(limit)}});
}

}  // namespace

absl::StatusOr<v1::RewriteResponse> RunRewrite(absl::string_view graph_def,
                                               const v1::RewriteOptions& rewrite_options,
                                               Framing framing, const Options& options,
                                               const core::StopToken& stop, Metrics& metrics) {
  // The caller may have gone while the request waited for a worker.
  if (stop.ShouldStop(1)) return stop.status("queue");
  auto response =
      Guarded([&] { return options.rewrite(graph_def, rewrite_options, options.limits, stop); });
  if (!response.ok()) return response;
  v1::RewriteReport figures;
  const bool asks_for_report = core::AsksFor(v1::OUTPUT_REPORT, rewrite_options);
  if (!asks_for_report) {
    figures.Swap(response->mutable_report());
    response->clear_report();
  }
  if (absl::Status status = CheckSize(*response, framing, options.max_response_bytes);
      !status.ok()) {
    return status;
  }
  metrics.CountReport(StrategyOf(rewrite_options), asks_for_report ? response->report() : figures);
  return response;
}

absl::Status StreamRewriteTask::Run(const v1::StreamRewriteHeader& header,
                                    const TaskContext& context, Sink& sink) {
  auto rewritten = RunRewrite(context.graphs[0], header.options(), Framing::kStream,
                              context.options, context.stop, context.metrics);
  if (!rewritten.ok()) return rewritten.status();
  Response first;
  v1::StreamRewriteResult& result = *first.mutable_header();
  if (rewritten->has_report()) result.mutable_report()->Swap(rewritten->mutable_report());
  if (rewritten->has_patch()) result.mutable_patch()->Swap(rewritten->mutable_patch());
  std::string graph = std::move(*rewritten->mutable_graph_def());
  if (!graph.empty()) {
    absl::StatusOr<std::string> digest = core::Sha256Of(graph, context.stop);
    if (!digest.ok()) return digest.status();
    result.mutable_graph()->set_total_size_bytes(static_cast<int64_t>(graph.size()));
    result.mutable_graph()->set_sha256(*std::move(digest));
    sink.SendBytes(Response::kChunkFieldNumber, std::move(graph));
  }
  return sink.Send(std::move(first));
}

}  // namespace spillway::server
