// The levels of TFLMS v2, by which the strategy `level` measures distances: an op's level is the
// length of the longest path to it over data and control edges. Inside loops only Enter, Merge
// (without its NextIteration input), Switch (without its LoopCond input) and Exit take part. An op
// that depends on an op without a level has none either.
//
// TFLMS v2 recognizes ops inside a loop by `while/` in their names; here ops that run in a loop's
// frame count too, under any name.
//
// Thread safety: immutable after Build.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_ORDER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/plan/control_edge.h"

namespace spillway::core {

inline constexpr int32_t kNoLevel = -1;

class LevelOrder {
 public:
  // With `added`, the levels that the graph would have with these edges, which must not close a
  // cycle. Errors: those of `stop`.
  static absl::StatusOr<LevelOrder> Build(const Graph& graph, const Topology& topology,
                                          const ControlFlowAnalysis& control_flow,
                                          absl::Span<const ControlEdge> added,
                                          const StopToken& stop);

  // From 0 on, or kNoLevel.
  int32_t level(NodeId id) const { return level_[id]; }
  int32_t num_levels() const { return num_levels_; }

 private:
  std::vector<int32_t> level_;
  int32_t num_levels_ = 0;
};

// Flags the ops inside loops. Linear. Errors: those of `stop`.
absl::StatusOr<NodeFlags> FindInsideLoops(const Graph& graph,
                                          const ControlFlowAnalysis& control_flow,
                                          const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_ORDER_H_
