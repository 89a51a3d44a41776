// One rewrite as the server runs it on a worker: the core, counted and kept from doing harm. Knows
// nothing of gRPC. And the task of StreamRewrite (graph_task.h).
#ifndef SPILLWAY_SERVER_REWRITE_TASK_H_
#define SPILLWAY_SERVER_REWRITE_TASK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "server/graph_task.h"
#include "server/metrics.h"
#include "server/options.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// How an answer travels, which decides how large it may be.
enum class Framing {
  kOneMessage,  // Graph, report and patch share one message.
  kStream,      // The graph goes in chunks; report and patch share one message.
};

// options.rewrite, which is core::Rewrite, with options.limits. What was done is counted in
// `metrics` also when the caller did not ask for the report. Does not throw.
//
// Errors: those of core::Rewrite; OUT_OF_RANGE, RESULT_TOO_LARGE if the answer would be above
// options.max_response_bytes; RESOURCE_EXHAUSTED, OVERLOADED if memory runs out. Nothing is counted
// then.
absl::StatusOr<v1::RewriteResponse> RunRewrite(absl::string_view graph_def,
                                               const v1::RewriteOptions& rewrite_options,
                                               Framing framing, const Options& options,
                                               const core::StopToken& stop, Metrics& metrics);

// Sends a header with report and patch, then the graph in chunks.
struct StreamRewriteTask {
  using Request = v1::StreamRewriteRequest;
  using Response = v1::StreamRewriteResponse;
  using Sink = StreamSink<Response>;
  static constexpr Method kMethod = Method::kStreamRewrite;

  static v1::Strategy Strategy(const v1::StreamRewriteHeader& header) {
    return StrategyOf(header.options());
  }
  // Of the graph alone.
  static int64_t SentBytes(const Response& response) {
    return static_cast<int64_t>(response.chunk().size());
  }
  static absl::Status Run(const v1::StreamRewriteHeader& header, const TaskContext& context,
                          Sink& sink);
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REWRITE_TASK_H_
