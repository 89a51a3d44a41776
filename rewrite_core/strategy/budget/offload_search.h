// Plans with optimizer state in host memory (BudgetStrategy.offload): which state groups move is
// decided first; the step with these moved is then planned like any other. A step with state on the
// host is slower than one that fits well without, so this is for steps with no other plan, or with
// a slow one.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_OFFLOAD_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_OFFLOAD_SEARCH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rewrite_core/strategy/budget/budget_run.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/common/strategy_result.h"

namespace spillway::core {

// Plans one graph. `full_speed_ns`: the step's time with unlimited memory before anything moved.
using PlanGraph = absl::StatusOr<StrategyResult> (*)(const StrategyInput& input,
                                                     int64_t full_speed_ns, SearchBudget* steps);

// `plain`: the result of `unmoved`, the run on the graph given: a plan, or DOES_NOT_FIT. Returns
// that plan, or one with all state on the host if it is faster. For the error, returns the fastest
// plan found with as little state on the host as it takes; if no plan fits either, an error with
// the bytes moved in vain. Errors: also those of `plan_graph`.
absl::StatusOr<StrategyResult> PlanOffloaded(const StrategyInput& input, const BudgetRun& unmoved,
                                             absl::StatusOr<StrategyResult> plain,
                                             PlanGraph plan_graph, SearchBudget* steps);

// Whether a step with this plan is slow enough that state on the host may make it faster.
bool IsWorthOffloading(const StrategyResult& plain, const BudgetRun& unmoved);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_OFFLOAD_SEARCH_H_
