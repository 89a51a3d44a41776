#include "rewrite_core/rewriter.h"

#include <limits>

#include "rewrite_core/graph/error.h"

namespace spillway::core {

absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                            const v1::RewriteOptions& options,
                                            const v1::Limits&, const StopToken&) {
  if (graph_def.empty()) {
    return InvalidError(v1::ERROR_REASON_EMPTY_GRAPH, "the graph has no nodes");
  }
  v1::RewriteResponse response;
  response.set_graph_def(std::string(graph_def));
  response.mutable_report()->set_outcome(v1::OUTCOME_NOTHING_TO_DO);
  response.mutable_report()->set_strategy(options.has_strip() ? "strip" : "scope");
  return response;
}

v1::Limits DefaultLimits() {
  constexpr int64_t kMiB = 1 << 20;
  v1::Limits limits;
  limits.set_max_graph_bytes(std::numeric_limits<int32_t>::max());
  limits.set_max_unary_bytes(64 * kMiB);
  limits.set_max_chunk_bytes(4 * kMiB);
  limits.set_max_node_count(20'000'000);
  limits.set_max_input_count(200'000'000);
  limits.set_max_search_steps(4'000'000'000);
  limits.set_max_concurrent_requests(0);  // 0: one per core.
  limits.set_max_inflight_bytes(4096 * kMiB);
  return limits;
}

std::vector<std::string> Strategies() { return {"scope", "strip"}; }

std::string Version() { return SPILLWAY_VERSION; }

}  // namespace spillway::core
