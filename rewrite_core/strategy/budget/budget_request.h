// What the parts of the strategy `budget` share while they answer one request: what it asks for,
// the simulator that all simulations are counted by, and the step as the graph came.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_REQUEST_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_REQUEST_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/objective.h"
#include "rewrite_core/strategy/counted_simulator.h"
#include "rewrite_core/strategy/op_filter.h"
#include "rewrite_core/strategy/search_budget.h"
#include "rewrite_core/strategy/strategy_result.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// Plans simulated for one GPU with PLANNING_EFFORT_LOW (options.proto says so).
inline constexpr int kLowSimulations = 32;

struct BudgetRequest {
  // REQUIRES: CheckBudgetStrategy. `from` must outlive it.
  explicit BudgetRequest(const StrategyInput& from);

  // Of a GPU, by its index in Placement::devices().
  int64_t budget_bytes(int32_t gpu) const { return facts.BudgetOf(gpu); }
  // The sizes of memory between the budget and all of the GPU's in which a plan has to fit, too:
  // as many for each GPU.
  std::vector<int64_t> OtherBudgets(int32_t gpu) const;
  // Plans that are simulated for one GPU: those of the effort, or, where several GPUs are planned,
  // as many of them as leave the others their part of the request's steps.
  int max_simulations() const;

  bool IsTooSlow(int64_t step_time_ns) const;
  // Fast enough is what comes within this: a search ends there, or hardly above.
  int64_t FastEnough() const;

  const StrategyInput& input;
  const StepFacts& facts;
  const Eligibility& eligibility;
  const v1::RewriteOptions& options;
  const StopToken& stop;
  const v1::PlanningEffort effort;
  const Objective objective;
  SearchBudget steps;  // Of all GPUs.
  CountedSimulator simulator;
  size_t num_planned_gpus = 1;
  absl::optional<SwapFilters> filters;  // The strategy makes them first of all.
  // With unlimited memory, operations recorded; the strategy simulates it first.
  StepResult unswapped;
};

// A share of `bytes`; all of them for 1.
int64_t ShareOf(int64_t bytes, double share);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_REQUEST_H_
