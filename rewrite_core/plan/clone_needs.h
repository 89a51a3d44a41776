// Nodes that a step with clones runs: if clones take over all readers of a node, the step no longer
// needs it, and no node may wait for it, since it would run only for that.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_CLONE_NEEDS_H_
#define SPILLWAY_REWRITE_CORE_PLAN_CLONE_NEEDS_H_

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/clone_plan.h"

namespace spillway::core {

// The step's nodes with the clones, which follow the nodes, without those needed only for triggers
// and updates. Errors: those of `stop`. REQUIRES: the facts kShapes and kActiveNodes.
absl::StatusOr<NodeFlags> FindNeeded(const StepFacts& facts, const ClonePlan& plan,
                                     const StopToken& stop);

// A node that would wait for another one, which the step would run only for that: for the trigger
// of a clone, or an update for the original of a clone that it does not need.
struct ExtraWait {
  NodeId node = kNoNode;  // kNoNode: none.
  NodeId source = kNoNode;
};
ExtraWait FindExtraWait(const Graph& graph, const ClonePlan& plan, const NodeFlags& needed);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_CLONE_NEEDS_H_
