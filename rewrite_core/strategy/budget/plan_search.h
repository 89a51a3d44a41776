// The search for the fastest plan of one GPU that fits: plans are constructed (budget_planner.h),
// rehearsed (rehearsed_planner.h), simulated, and mended where they ran out of memory; then the
// best one is changed in small steps for as long as simulations are left.
//
// Deterministic: no clock; random numbers from a generator of its own, with a constant seed.
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
#include "rewrite_core/strategy/budget/step_order.h"

namespace spillway::core {

// A step as it may be, too, with so much memory.
struct VariedStep {
  StepVariation variation;
  int64_t bytes = 0;
};

struct PlanSearchTerms {
  int32_t gpu = 0;  // An index into Placement::devices().
  int64_t budget_bytes = 0;
  // Of other GPUs, which have unlimited memory: every plan has them.
  std::vector<PlannedSwap> other_swaps;
  // Other sizes of memory in which a plan has to fit: what fits is not monotonic, since memory is
  // placed.
  std::vector<int64_t> other_budgets;
  // And what else the step may be like in which it has to fit.
  std::vector<VariedStep> varied_steps;
  // If there are any: a plan that fits but for them. Small changes of it are tried first.
  std::vector<Away> start;
  // What the step takes with unlimited memory: a plan as fast as that is not improved.
  int64_t full_speed_ns = 0;
  // At most so many plans are simulated; one in several sizes counts once for each, variations do
  // not count. At least 1.
  int max_simulations = 1;
};

struct FoundPlan {
  std::vector<PlannedSwap> swaps;  // Without other_swaps.
  std::vector<ControlEdge> chain;  // Besides the base's edges (order_chain.h); of a search none.
  StepResult outcome;              // With the budget.
};

struct PlanSearchResult {
  absl::optional<FoundPlan> best;
  std::vector<Away> aways;  // What is away in it.
  // If there is none: of the plans that do not fit, the one that got furthest.
  StepResult failure;
  int num_simulations = 0;
  int num_fitting = 0;  // Of these; what is too slow to be simulated to its end counts as fitting.
  bool cut_short = false;  // The request's search steps (max_search_steps) ended it.
};

// `base`: the control edges and the CPU device that every plan has; `order` is that of the step
// with them. Errors: those of Simulate; that the request's steps are spent only where nothing was
// found.
absl::StatusOr<PlanSearchResult> SearchPlan(const PlanSearchTerms& terms, const SwapPlan& base,
                                            const BudgetPlanner& planner, const StepOrder& order,
                                            PlanSimulator* simulator, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_SEARCH_H_
