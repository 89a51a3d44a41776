#include "server/rewrite_task.h"

#include <algorithm>
#include <exception>
#include <new>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::server {
namespace {

// An empty list means graph and report.
bool AsksForReport(const v1::RewriteOptions& options) {
  const auto& outputs = options.outputs();
  return outputs.empty() ||
         std::find(outputs.begin(), outputs.end(), v1::OUTPUT_REPORT) != outputs.end();
}

// `options`, and the figures that the metrics need.
v1::RewriteOptions WithReport(v1::RewriteOptions options) {
  options.add_outputs(v1::OUTPUT_REPORT);
  // The list of decisions is the long part of a report, and nobody would read it.
  if (options.decision_detail() == v1::DECISION_DETAIL_UNSPECIFIED ||
      options.decision_detail() == v1::DECISION_DETAIL_ALL) {
    options.set_decision_detail(v1::DECISION_DETAIL_NONE);
  }
  return options;
}

absl::StatusOr<v1::RewriteResponse> RewriteOrCatch(absl::string_view graph_def,
                                                   const v1::RewriteOptions& rewrite_options,
                                                   const Options& options,
                                                   const core::StopToken& stop) {
  try {
    return options.rewrite(graph_def, rewrite_options, options.limits, stop);
  } catch (const std::bad_alloc&) {
    return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
                       "the server has not enough memory for this graph now; try again later");
  } catch (const std::exception& error) {
    return core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                       absl::StrCat("unexpected ", core::Quoted(error.what()),
                                    " in the rewriter; please report it"));
  }
}

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
  const bool asks_for_report = AsksForReport(rewrite_options);
  absl::StatusOr<v1::RewriteResponse> response = RewriteOrCatch(
      graph_def, asks_for_report ? rewrite_options : WithReport(rewrite_options), options, stop);
  if (!response.ok()) return response;
  v1::RewriteReport report;
  if (!asks_for_report) {
    report.Swap(response->mutable_report());
    response->clear_report();
  }
  if (absl::Status status = CheckSize(*response, framing, options.max_response_bytes);
      !status.ok()) {
    return status;
  }
  metrics.CountReport(StrategyOf(rewrite_options), asks_for_report ? response->report() : report);
  return response;
}

}  // namespace spillway::server
