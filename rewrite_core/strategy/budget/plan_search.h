// The search for the fastest plan that fits one GPU: plans are constructed (budget_planner.h),
// rehearsed (rehearsed_planner.h), simulated, and repaired where they ran out of memory; then the
// best one is changed in small steps as long as simulations are left.
//
// Deterministic: it uses no clock, and its own random generator, with a constant seed.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

// A variation of the step, with this much memory.
struct VariedStep {
  StepVariation variation;
  int64_t bytes = 0;
};

struct PlanSearchTerms {
  GpuIndex gpu{0};
  int64_t budget_bytes = 0;
  // The swaps of other GPUs, which have unlimited memory: every plan includes them.
  std::vector<PlannedSwap> other_swaps;
  // Other sizes of memory in which a plan must fit: since memory is placed, a plan may fit one size
  // and not a larger one.
  std::vector<int64_t> other_budgets;
  // Variations of the step in which it must fit, too.
  std::vector<VariedStep> varied_steps;
  // With varied_steps: a plan that fits, but not in all of them. Small changes of it are tried
  // first.
  std::vector<Eviction> start;
  // The step time with unlimited memory: a plan as fast as that is not improved.
  int64_t full_speed_ns = 0;
  // At most this many plans are simulated; a plan in several sizes counts once for each, and
  // variations do not count. At least 1.
  int max_simulations = 1;
};

struct FoundPlan {
  std::vector<PlannedSwap> swaps;  // Without other_swaps.
  std::vector<ControlEdge> chain;  // Besides the base's edges (order_chain.h); not by SearchPlan.
  StepResult outcome;              // With the budget.
};

struct PlanSearchResult {
  absl::optional<FoundPlan> best;
  std::vector<Eviction> evictions;  // The gaps that it uses.
  // If there is none: the outcome of the plan that got furthest.
  StepResult failure;
  int num_simulations = 0;
  int num_fitting = 0;  // Of these; a plan too slow to be simulated to its end counts as fitting.
  bool cut_short = false;  // The request's search steps (max_search_steps) ended it.
};

// `base`: the control edges and the CPU device that every plan has; `order` is that of the step
// with them. Errors: those of Simulate; spent search steps are an error only if nothing was found.
absl::StatusOr<PlanSearchResult> SearchPlan(const PlanSearchTerms& terms, const SwapPlan& base,
                                            const BudgetPlanner& planner, const StepOrder& order,
                                            PlanSimulator* simulator, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_SEARCH_H_
