// Finds cycles that a plan closes in its graph.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_PLAN_CYCLE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_PLAN_CYCLE_H_

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/swap_plan.h"

namespace spillway::core {

// Returns a node of the graph on a cycle that the plan closes; kNoNode if it closes none. A loop's
// outputs come after the whole loop, so nothing that the loop waits for may wait for them; with
// several loop variables, paths of edges alone need not imply this. Linear in both, except for a
// sort. Errors: those of `stop`. REQUIRES: the graph has no cycles except those of its loops.
absl::StatusOr<NodeId> FindPlanCycle(const Graph& graph, const ControlFlowAnalysis& control_flow,
                                     const SwapPlan& plan, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_PLAN_CYCLE_H_
