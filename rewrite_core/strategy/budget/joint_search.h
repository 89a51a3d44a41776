// Plans that recompute nodes, with or without swaps.
//
//   alone    clones for a grid of targets within the budget, the least time first: the first that
//            fits is taken. It needs no search
//   both     clones for targets between the budget and the peak, and those of `alone` that add the
//            least time and do not fit; swaps do the rest
//   swaps    no clones
//
// Each of the last two has a lower bound, from one simulation of the step with its clones: in the
// order of these, swaps are searched for if the bound is less than the time of the best plan. Swaps
// alone may take far longer than their bound: then the first two are tried again.
//
// With a reserve, plans must fit in variations. The first one is made to; others with swaps are
// drafts, of which only the fastest are made to fit, in the end.
//
// To save memory (PlanningObjective), swaps are tried alone, and beside clones for a few shares of
// the peak: the least peak is taken.
//
// Beside the plan: its lower bound (FindBoundNs), and the gain from more recomputation
// (FindMoreRecompute).
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_JOINT_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_JOINT_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/budget_run.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// The class to recompute, by option or default (CHEAP).
v1::Recompute RecomputeOf(const v1::RewriteOptions& options);

// A lower bound (lower_bounds.h) of the step's time, on the GPU with the largest one, with any plan
// of swaps, and of clones that the options allow, that launches the kernels of these nodes in this
// order. Plans that postpone a node may be faster. 0 if an operation alone does not fit. Errors:
// those of the simulator.
absl::StatusOr<int64_t> FindBoundNs(const StepFacts& facts, const v1::RewriteOptions& options,
                                    const std::vector<NodeId>& order, PlanSimulator* simulator,
                                    const StopToken& stop);

// Leaves the best plan in `run`, of `input`. Errors: those of BudgetRun::PlanSwaps. REQUIRES:
// RecomputeOf is not OFF; run->Order().
absl::Status PlanJointly(const StrategyInput& input, SearchBudget* steps, BudgetRun* run);

// The nodes that should be recomputed beyond the options, if a plan with such clones makes a step
// clearly faster than `than_ns` (kUnlimited: nothing fits, so any plan does). `recompute` is not
// set if none was found; not all plans are tried. Errors: those of `stop`. REQUIRES: run->Order().
absl::StatusOr<v1::MoreRecompute> FindMoreRecompute(const StrategyInput& input, int64_t than_ns,
                                                    SearchBudget* steps, BudgetRun* run);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_JOINT_SEARCH_H_
