// The state that the parts of the strategy `budget` share for one request: its terms, the sizes of
// memory and the variations of the step that a plan must fit, the simulator that counts all
// simulations, and the unswapped step.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_REQUEST_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_REQUEST_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/objective.h"
#include "rewrite_core/strategy/budget/plan_trials.h"
#include "rewrite_core/strategy/common/counted_simulator.h"
#include "rewrite_core/strategy/common/op_filter.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// Plans simulated for one GPU with PLANNING_EFFORT_LOW (documented in options.proto).
inline constexpr int kLowSimulations = 32;

// Variations of the step. A plan is rejected if it does not fit in more than kMaxUnfit of them; one
// that does not fit another size of memory counts as kDoesNotFitSizes.
inline constexpr int kNumVariations = 20;
inline constexpr int kMaxUnfit = kNumVariations / 2;
inline constexpr int kDoesNotFitSizes = kNumVariations + 1;

// The maximum step time of a more robust plan, if the fastest takes `fastest_ns`.
inline constexpr int64_t kRobustCostPart = 50;
inline int64_t MaxRobustNs(int64_t fastest_ns) { return fastest_ns + fastest_ns / kRobustCostPart; }

struct BudgetRequest {
  // REQUIRES: CheckBudgetStrategy. All must outlive it. `steps`: of the whole request.
  BudgetRequest(const StrategyInput& from, SearchBudget* steps);

  int64_t budget_bytes(GpuIndex gpu) const { return facts.BudgetOf(gpu); }
  // The sizes of memory between the budget and the GPU's whole memory in which a plan must fit,
  // too: the same number for each GPU.
  std::vector<int64_t> OtherBudgets(GpuIndex gpu) const;
  // Whether there is memory for variations beyond the budget: the reserve.
  bool has_reserve() const;
  // TensorFlow runs any ready op, a link is not always as fast as its preset, and variables are
  // placed as their initializers left them. Returns the variations with which a plan for
  // `budget_bytes` is tried, each with that budget and a part of the reserve. REQUIRES:
  // has_reserve().
  std::vector<VariedStep> VariedSteps(int64_t budget_bytes) const;
  // Returns in how many `varied` steps `plan` does not fit on GPU `gpu`; stops at `most`. Moves the
  // last of these to the front. Below `most`: kDoesNotFitSizes unless the plan fits all `sizes` of
  // memory. Leaves the last outcome that did not fit in `unfit`. `by`: null, or a simulator in
  // place of `simulator`, uncounted. Errors: those of Simulate.
  absl::StatusOr<int> CountUnfit(const SwapPlan& plan, GpuIndex gpu, int most,
                                 std::vector<VariedStep>* varied,
                                 const std::vector<int64_t>& sizes = {},
                                 PlanSimulator* by = nullptr);

  // The edges that keep the operations of GPU `gpu` in the order of `step` (order_chain.h), except
  // those that `plan` has. The second one simulates the step with `budget` bytes. Errors: those of
  // Simulate.
  absl::StatusOr<std::vector<ControlEdge>> ChainOf(const SwapPlan& plan, const StepResult& step,
                                                   GpuIndex gpu, const Needs& needs,
                                                   absl::Span<const int32_t> ranks) const;
  absl::StatusOr<std::vector<ControlEdge>> ChainOf(const SwapPlan& plan, GpuIndex gpu,
                                                   int64_t budget, const Needs& needs,
                                                   absl::Span<const int32_t> ranks);

  // The number of plans simulated for one GPU: that of the effort, or fewer if several GPUs are
  // planned, so that each has its share of the request's steps.
  int max_simulations() const;

  int64_t MaxStepTime() const { return objective.MaxStepTime(full_speed_ns); }
  bool IsTooSlow(int64_t step_time_ns) const { return step_time_ns > MaxStepTime(); }
  // A step time that is fast enough: a search ends there, or slightly above.
  int64_t FastEnough() const;

  const StrategyInput& input;
  const StepFacts& facts;
  const Eligibility& eligibility;
  const v1::RewriteOptions& options;
  const StopToken& stop;
  const v1::PlanningEffort effort;
  const Objective objective;
  CountedSimulator simulator;
  size_t num_planned_gpus = 1;
  absl::optional<SwapFilters> filters;  // Set first by the strategy.
  // Parts of every plan: the device of swap nodes, and control edges.
  SwapPlan base;
  // The unswapped step, with `base` and unlimited memory, operations recorded; set first by the
  // strategy.
  StepResult unswapped;
  // Plans are also made in other ways, so that searches with less of the budget are short, and an
  // error need not name a sufficient budget.
  bool is_one_of_several = false;
  // kMayComeLate once a plan was found only so.
  FedInputs fed_inputs = FedInputs::kStay;
  // A plan that takes at least this long will not be taken, so it need not fit in variations.
  int64_t worth_ns = kUnlimited;
  StepResult unfit;  // Of CountUnfit.
  // The time of the user's graph with unlimited memory; 0: not yet set from `unswapped`.
  int64_t full_speed_ns = 0;
};

// Returns a share of `bytes`; exactly `bytes` for 1.
int64_t ShareOf(int64_t bytes, double share);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_REQUEST_H_
