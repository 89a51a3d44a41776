// Plans that run nodes again, alone or beside swaps.
//
//   alone    clones for a grid of targets within the budget, the least time first: the first that
//            fits is taken. It needs no search
//   both     clones for targets between the budget and the peak; what is left is swapped
//   swaps    as without this
//
// Each of the last two has a lower bound, from one simulation of the step with its clones: in the
// order of these, swaps are searched for where the bound is less than the time of the best plan.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_JOINT_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_JOINT_SEARCH_H_

#include "absl/status/status.h"
#include "rewrite_core/strategy/budget/budget_run.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// Whether the options allow clones: with the other objectives, nothing runs again.
bool MayRecompute(const v1::RewriteOptions& options);

// Leaves the fastest plan in `run`, of `input`. Errors: those of BudgetRun::PlanSwaps. REQUIRES:
// MayRecompute; run->Order().
absl::Status PlanJointly(const StrategyInput& input, SearchBudget* steps, BudgetRun* run);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_JOINT_SEARCH_H_
