// If nothing reads the original any more, the clone is a delayed run, not a second one: TensorFlow
// prunes the original. So that its time is not counted twice, the original takes the place of the
// clone, and an order edge makes it wait for the clone's trigger.
//
// No cycles. By rank, a clone comes after its original and its trigger, and before all nodes that
// wait for it (clone_planner.h). A postponed original has the place of its clone; its readers are
// those that waited for the clone, and no other edge leaves it.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_POSTPONE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_POSTPONE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/plan/needs.h"

namespace spillway::core {

// Removes from a plan (PlanClones) such clones, those that then have no reader, and those read only
// by nodes that the step no longer runs. `controls`: the edges of the plan's step. Adds these order
// edges, and removes those of nodes that now wait for longer, and those for which alone the step
// would run their source. `needs`, `ranks`: as for PlanClones. Errors: those of `stop`. REQUIRES:
// kActiveNodes, kBackwardPart.
absl::Status PostponeOriginals(const StepFacts& facts, const Needs& needs,
                               absl::Span<const int32_t> ranks, ClonePlan* plan,
                               std::vector<ControlEdge>* controls, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_POSTPONE_H_
