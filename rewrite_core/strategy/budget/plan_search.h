// The search for the fastest plan that fits one GPU. It is one loop over a table of *moves*, each
// of which makes plans and tries them on the simulator (plan_trials.h), until its share of the
// simulations is used, or no plan is left to try:
//
//   rehearse targets  plans for a grid of targets (budget_planner.h) that fit in rehearsals
//                     (memory_rehearsal.h), the fastest there first
//   lower targets     plans without rehearsals, down to the first that fits
//   raise targets     the best plan's targets, raised in some run of slots
//   keep gaps         the best plan without a run of its gaps, ever shorter ones
//   change gaps       the best plan, with the action, the trigger or the gate of a gap changed
//
// The measured gain of each move: tests/benchmarks/README.md, Moves of the search.
//
// Deterministic: it uses no clock, and its own random generator, with a constant seed.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_SEARCH_H_

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/budget/plan_trials.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

// `base`: the control edges and the CPU device that every plan has; `order` is that of the step
// with them. Errors: those of Simulate; spent search steps are an error only if nothing was found.
absl::StatusOr<PlanSearchResult> SearchPlan(const PlanSearchTerms& terms, const SwapPlan& base,
                                            const BudgetPlanner& planner, const StepOrder& order,
                                            PlanSimulator* simulator, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_SEARCH_H_
