// One rewrite as the server runs it on a worker: the core, with metrics and guarded against
// exceptions. Independent of gRPC.
#ifndef SPILLWAY_SERVER_WORK_REWRITE_ANSWER_H_
#define SPILLWAY_SERVER_WORK_REWRITE_ANSWER_H_

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
#include "server/base/options.h"
#include "server/memory/admission.h"
#include "server/observe/metrics.h"
#include "server/work/stream_methods.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// How an answer is sent, which determines its maximum size.
enum class Framing {
  kOneMessage,  // Graph, report, patch and plan share one message.
  kStream,      // The graph goes in chunks; report, patch and plan share one message.
};

// The result of a rewrite. Several calls may share one, and then only read it.
struct RewriteAnswer {
  RewriteAnswer() = default;
  ~RewriteAnswer();  // Credits no account for its memory.

  enum class Digests { kCrc32c, kCrc32cAndSha256 };
  // Fills in the graph's size and digests, which are kept for later calls. Errors: those of `stop`
  // and of core::Sha256Of. Thread-safe.
  absl::Status Announce(Digests digests, const core::StopToken& stop, v1::GraphHeader* header);

  const v1::RewriteReport& report() const {
    return response.has_report() ? response.report() : figures;
  }

  absl::Status status;
  v1::RewriteResponse response;  // Patch and plan, and the report if requested.
  v1::RewriteReport figures;     // The report if it was not requested.
  std::string graph;
  std::shared_ptr<const core::PlannedStep> plan;  // The plan that was made, if any.
  Admission::Ticket memory;                       // For all of the above.
  bool is_shared = false;                         // Other calls may read it.

 private:
  std::mutex announced_mu_;
  v1::GraphHeader announced_;
};

// Runs options.rewrite, which is core::Rewrite, with options.limits. `plan`, unless null, is
// applied instead of making one. Errors, in the answer: those of core::Rewrite; RESOURCE_EXHAUSTED
// (OVERLOADED) if memory runs out. May throw std::bad_alloc.
std::shared_ptr<RewriteAnswer> MakeAnswer(absl::string_view graph_def,
                                          const v1::RewriteOptions& rewrite_options,
                                          const Options& options, const core::StopToken& stop,
                                          std::shared_ptr<const core::PlannedStep> plan = nullptr);

// Counts the rewrite in `metrics`, even if the caller did not request the report. Errors, which are
// not counted: that of the answer; OUT_OF_RANGE (RESULT_TOO_LARGE) if it would exceed
// options.max_response_bytes.
absl::Status TakeAnswer(const RewriteAnswer& answer, const v1::RewriteOptions& rewrite_options,
                        Framing framing, const Options& options, Metrics& metrics);

// Returns the answer's graph, and keeps the answer alive.
inline std::shared_ptr<const std::string> GraphOf(std::shared_ptr<RewriteAnswer> answer) {
  const std::string* const graph = &answer->graph;
  return {std::move(answer), graph};
}

// Fills in this server's defaults: dry_run; default_recompute and default_offload if the request
// does not say.
void SetDefaults(const Options& server, v1::RewriteOptions* options);
void SetDefaults(const Options& server, v1::ExploreOptions* options);

// Whether the strategy that `options` select simulates plans.
bool Simulates(const v1::RewriteOptions& options);

// Answers a StreamRewrite: TakeAnswer, then sends a header with report, patch and plan, then the
// graph in chunks. Uses all of `context` except the graphs.
absl::Status SendAnswer(const std::shared_ptr<RewriteAnswer>& answer,
                        const v1::StreamRewriteHeader& header, const WorkContext& context,
                        AnswerSink& sink);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_REWRITE_ANSWER_H_
