// All analyses of one graph, computed once and shared: what strategies and the eligibility table
// decide upon.
//
// Thread safety: immutable after Compute.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPH_FACTS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPH_FACTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/control_flow.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

struct GraphFacts {
  // `graph` must outlive the result. Errors are those of the analyses.
  static absl::StatusOr<GraphFacts> Compute(const Graph& graph, const v1::Step& step,
                                            const StopToken& stop);

  const Graph* graph;
  Topology topology;
  ControlFlowAnalysis control_flow;
  std::vector<bool> variable_aliases;
  Shapes shapes;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPH_FACTS_H_
