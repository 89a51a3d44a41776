// What a step with clones runs: where clones take over all that reads a node, the step needs the
// node no more, and nothing may wait for it, since it would then run for nothing else.
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

// What the step runs with the clones, which follow the nodes, but for what only triggers and
// updates wait for. Errors: those of `stop`. REQUIRES: the facts kShapes and kActiveNodes.
absl::StatusOr<NodeFlags> FindNeeded(const StepFacts& facts, const ClonePlan& plan,
                                     const StopToken& stop);

// A node that would wait for another one, which the step would run for nothing else: for the
// trigger of a clone, or an update for the original of a clone that it does not need.
struct ExtraWait {
  NodeId node = kNoNode;  // kNoNode: there is none.
  NodeId source = kNoNode;
};
ExtraWait FindExtraWait(const Graph& graph, const ClonePlan& plan, const NodeFlags& needed);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_CLONE_NEEDS_H_
