// A clone whose original nobody would read any more is no second run, but a later one: TensorFlow
// prunes the original. It is written as what it is, so that its time is not counted twice: the
// original takes the place of the clone, and an order edge makes it wait for the clone's trigger.
//
// No cycles. By rank, a clone comes after its original and its trigger, and before all that waits
// for it (clone_planner.h). A postponed original has the place of its clone; its readers are those
// that waited for that, and no edge leads from it to anything else.
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

// Takes such clones, and those that are read by none then, out of a plan (PlanClones), and those
// that are read only by what the step does not run any more. `controls`: the edges of the step that
// it is for; with these order edges then, and without those that held back what waits for longer
// now, or for which alone the step would run their source. `needs`, `ranks`: as for PlanClones.
// Errors: those of `stop`. REQUIRES: kActiveNodes, kBackwardPart.
absl::Status PostponeOriginals(const StepFacts& facts, const Needs& needs,
                               absl::Span<const int32_t> ranks, ClonePlan* plan,
                               std::vector<ControlEdge>* controls, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_POSTPONE_H_
