// The strategy `budget`: for each GPU the fastest plan found that fits its memory, buffer by buffer
// (README.md, How `budget` plans).
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_STRATEGY_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_STRATEGY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/strategy/common/strategy_result.h"

namespace spillway::core {

// INVALID_ARGUMENT (UNKNOWN_OPTION) naming planning_effort or recompute, if this build does not
// know its value; and the errors of CheckObjective (objective.h) and SwapFilters::Check.
absl::Status CheckBudgetStrategy(const v1::RewriteOptions& options, const StopToken& stop);

// REQUIRES: the options were checked; a simulator, and the facts that it computes. INVALID_ARGUMENT
// for an unknown batch size, or more than kMaxGpus GPUs; FAILED_PRECONDITION (DOES_NOT_FIT) if no
// fitting plan is found, naming the failed allocation, and how much memory would suffice;
// RESOURCE_EXHAUSTED (SEARCH_TOO_LONG) if max_search_steps are spent before a plan is found.
absl::StatusOr<StrategyResult> PlanBudget(const StrategyInput& input);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_STRATEGY_H_
