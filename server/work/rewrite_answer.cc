#include "server/work/rewrite_answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/crc32c.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/sha256.h"
#include "rewrite_core/planned_step.h"
#include "rewrite_core/request_check.h"
#include "rewrite_core/strategy/strategies.h"
#include "server/memory/guarded.h"
#include "server/memory/memory_account.h"

namespace spillway::server {
namespace {

// Overhead of a field of type bytes: its number and its length.
constexpr int64_t kFieldBytes = 6;

absl::Status CheckSize(const RewriteAnswer& answer, Framing framing, int64_t limit) {
  const int64_t graph_bytes = static_cast<int64_t>(answer.graph.size());
  int64_t message_bytes = static_cast<int64_t>(answer.response.ByteSizeLong());
  if (framing == Framing::kOneMessage && graph_bytes > 0)
    message_bytes += graph_bytes + kFieldBytes;
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

void SetDefaults(const Options& server, v1::RewriteOptions* options) {
  // Removing edits is not a rewrite, and stays possible while nothing may be rewritten.
  if (server.dry_run && !options->has_strip()) options->set_dry_run(true);
  if (core::StrategyOf(*options) != v1::STRATEGY_BUDGET) return;
  // The core's defaults are not set: requests that leave them open stay as short as they were.
  if (server.default_recompute != v1::RECOMPUTE_CHEAP &&
      options->budget().recompute() == v1::RECOMPUTE_UNSPECIFIED) {
    options->mutable_budget()->set_recompute(server.default_recompute);
  }
  // A live graph's state stays: a patch cannot move it, and TensorFlow's plug-in, which keeps
  // calls, sees a graph whose variables exist already.
  const bool is_live = core::AsksFor(v1::OUTPUT_PATCH, *options) ||
                       options->inline_calls() == v1::INLINE_CALLS_NEVER;
  if (server.default_offload != v1::OFFLOAD_OFF && !is_live &&
      options->budget().offload() == v1::OFFLOAD_UNSPECIFIED) {
    options->mutable_budget()->set_offload(server.default_offload);
  }
}

void SetDefaults(const Options& server, v1::ExploreOptions* options) {
  if (options->swapping() && options->recompute() == v1::RECOMPUTE_UNSPECIFIED)
    options->set_recompute(server.default_recompute);
}

bool Simulates(const v1::RewriteOptions& options) {
  const core::PlanningStrategy* const strategy = core::FindStrategy(options);
  return strategy != nullptr && strategy->needs_simulator(options);
}

RewriteAnswer::~RewriteAnswer() {
  const MemoryAccount::Scope nobody(nullptr);
  response.Clear();
  v1::RewriteResponse().Swap(&response);
  v1::RewriteReport().Swap(&figures);
  std::string().swap(graph);
  plan.reset();
}

absl::Status RewriteAnswer::Announce(Digests digests, const core::StopToken& stop,
                                     v1::GraphHeader* header) {
  const bool with_sha256 = digests == Digests::kCrc32cAndSha256;
  {
    const std::lock_guard lock(announced_mu_);
    *header = announced_;
  }
  // Not under the lock: no request waits for a digest that it did not ask for.
  if (!header->has_crc32c()) {
    const absl::StatusOr<uint32_t> crc32c = core::Crc32cOf(graph, stop);
    if (!crc32c.ok()) return crc32c.status();
    header->set_crc32c(*crc32c);
  }
  if (with_sha256 && header->sha256().empty()) {
    absl::StatusOr<std::string> sha256 = core::Sha256Of(graph, stop);
    if (!sha256.ok()) return sha256.status();
    header->set_sha256(*std::move(sha256));
  }
  {
    const std::lock_guard lock(announced_mu_);
    announced_.MergeFrom(*header);
  }
  if (!with_sha256) header->clear_sha256();
  header->set_total_size_bytes(static_cast<int64_t>(graph.size()));
  return absl::OkStatus();
}

std::shared_ptr<RewriteAnswer> MakeAnswer(absl::string_view graph_def,
                                          const v1::RewriteOptions& rewrite_options,
                                          const Options& options, const core::StopToken& stop,
                                          std::shared_ptr<const core::PlannedStep> plan) {
  auto answer = std::make_shared<RewriteAnswer>();
  core::PlanReuse reuse;
  reuse.given = std::move(plan);
  auto response = Guarded(
      [&] { return options.rewrite(graph_def, rewrite_options, options.limits, stop, &reuse); });
  if (!response.ok()) {
    answer->status = response.status();
    return answer;
  }
  answer->plan = std::move(reuse.made);
  answer->graph = std::move(*response->mutable_graph_def());
  response->clear_graph_def();
  if (!core::AsksFor(v1::OUTPUT_REPORT, rewrite_options)) {
    answer->figures.Swap(response->mutable_report());
    response->clear_report();
  }
  answer->response.Swap(&*response);
  return answer;
}

absl::Status TakeAnswer(const RewriteAnswer& answer, const v1::RewriteOptions& rewrite_options,
                        Framing framing, const Options& options, Metrics& metrics) {
  if (!answer.status.ok()) return answer.status;
  absl::Status status = CheckSize(answer, framing, options.max_response_bytes);
  if (!status.ok()) return status;
  metrics.CountReport(StrategyOf(rewrite_options), answer.report());
  return absl::OkStatus();
}

absl::Status SendAnswer(const std::shared_ptr<RewriteAnswer>& answer,
                        const v1::StreamRewriteHeader& header, const WorkContext& context,
                        AnswerSink& sink) {
  absl::Status status =
      TakeAnswer(*answer, header.options(), Framing::kStream, context.options, context.metrics);
  if (!status.ok()) return status;
  v1::StreamRewriteResponse first;
  v1::StreamRewriteResult& result = *first.mutable_header();
  v1::RewriteResponse copy;
  if (answer->is_shared) copy = answer->response;
  v1::RewriteResponse& rest = answer->is_shared ? copy : answer->response;
  if (rest.has_report()) result.mutable_report()->Swap(rest.mutable_report());
  if (rest.has_patch()) result.mutable_patch()->Swap(rest.mutable_patch());
  if (rest.has_plan()) result.mutable_plan()->Swap(rest.mutable_plan());
  if (!answer->graph.empty()) {
    status =
        answer->Announce(header.graph().sha256().empty() ? RewriteAnswer::Digests::kCrc32c
                                                         : RewriteAnswer::Digests::kCrc32cAndSha256,
                         context.stop, result.mutable_graph());
    if (!status.ok()) return status;
    sink.SendBytes(v1::StreamRewriteResponse::kChunkFieldNumber, GraphOf(answer));
  }
  return sink.Send(first);
}

}  // namespace spillway::server
