// Turns a sweep into a plan: clones, with the nodes that forward their outputs, the inputs that
// read them, and triggers.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_CLONE_PLANNER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_CLONE_PLANNER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/strategy/recompute/recompute_step.h"
#include "rewrite_core/strategy/recompute/recompute_sweep.h"

namespace spillway::core {

// Returns the plan; one without clones if some clone can have no trigger. `ranks`: those of all
// nodes (RankByLaunch). Errors: those of `stop`. REQUIRES: the sweep fits; kBackwardPart.
absl::StatusOr<ClonePlan> PlanClones(const RecomputeStep& step, const Sweep& sweep,
                                     const Needs& needs, absl::Span<const int32_t> ranks,
                                     const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_CLONE_PLANNER_H_
