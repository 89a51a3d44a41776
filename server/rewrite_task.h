// One rewrite as the server runs it on a worker: the core, counted and kept from doing harm. Knows
// nothing of gRPC. And the task of StreamRewrite (graph_task.h).
#ifndef SPILLWAY_SERVER_REWRITE_TASK_H_
#define SPILLWAY_SERVER_REWRITE_TASK_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/planned_step.h"
#include "server/admission.h"
#include "server/graph_task.h"
#include "server/metrics.h"
#include "server/options.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// How an answer travels, which decides how large it may be.
enum class Framing {
  kOneMessage,  // Graph, report, patch and plan share one message.
  kStream,      // The graph goes in chunks; report, patch and plan share one message.
};

// What a rewrite came to. Several calls may answer with one, and then only read it.
struct RewriteAnswer {
  RewriteAnswer() = default;
  ~RewriteAnswer();  // Charges nobody for what it frees.

  // Announces the graph: its size, its CRC-32C, and its SHA-256 if `digests` has it, which are kept
  // for who asks later. Errors: those of `stop` and of core::Sha256Of. Thread-safe.
  enum class Digests { kCrc32c, kSha256Too };
  absl::Status Announce(Digests digests, const core::StopToken& stop, v1::GraphHeader* header);

  const v1::RewriteReport& report() const {
    return response.has_report() ? response.report() : figures;
  }

  absl::Status status;
  v1::RewriteResponse response;  // Patch and plan, and the report if it was asked for.
  v1::RewriteReport figures;     // The report if it was not.
  std::string graph;
  std::shared_ptr<const core::PlannedStep> plan;  // The one that was made, if one was.
  Admission::Ticket memory;                       // What all this takes.
  bool is_shared = false;                         // Others may read it.

 private:
  std::mutex announced_mu_;
  v1::GraphHeader announced_;
};

// options.rewrite, which is core::Rewrite, with options.limits; `plan`, unless it is null, is to be
// written instead of making one. Errors, in the answer: those of
// core::Rewrite; RESOURCE_EXHAUSTED, OVERLOADED if memory runs out. May throw std::bad_alloc.
std::shared_ptr<RewriteAnswer> MakeAnswer(absl::string_view graph_def,
                                          const v1::RewriteOptions& rewrite_options,
                                          const Options& options, const core::StopToken& stop,
                                          std::shared_ptr<const core::PlannedStep> plan = nullptr);

// Counts what was done in `metrics`, also where the caller did not ask for the report. Errors: that
// of the answer; OUT_OF_RANGE, RESULT_TOO_LARGE if it would be above options.max_response_bytes.
// Nothing is counted then.
absl::Status TakeAnswer(const RewriteAnswer& answer, const v1::RewriteOptions& rewrite_options,
                        Framing framing, const Options& options, Metrics& metrics);

// Its graph, which lives as long as the answer.
inline std::shared_ptr<const std::string> GraphOf(std::shared_ptr<RewriteAnswer> answer) {
  const std::string* const graph = &answer->graph;
  return {std::move(answer), graph};
}

// Whether the strategy that `options` ask for simulates plans.
bool Simulates(const v1::RewriteOptions& options);

// Sends a header with report, patch and plan, then the graph in chunks.
struct StreamRewriteTask {
  using Request = v1::StreamRewriteRequest;
  using Response = v1::StreamRewriteResponse;
  using Sink = StreamSink<Response>;
  static constexpr Method kMethod = Method::kStreamRewrite;
  static constexpr bool kIsShared = true;

  static v1::Strategy Strategy(const v1::StreamRewriteHeader& header) {
    return StrategyOf(header.options());
  }
  static bool Simulates(const v1::StreamRewriteHeader& header) {
    return server::Simulates(header.options());
  }
  // Of the graph alone.
  static int64_t SentBytes(const Response& response) {
    return static_cast<int64_t>(response.chunk().size());
  }
  // Of `context` all but the graphs.
  static absl::Status Respond(const std::shared_ptr<RewriteAnswer>& answer,
                              const v1::StreamRewriteHeader& header, const TaskContext& context,
                              Sink& sink);
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REWRITE_TASK_H_
