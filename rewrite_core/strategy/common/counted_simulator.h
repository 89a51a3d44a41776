// A simulator whose simulations count against the request's search steps: with many GPUs, or nodes,
// they are most of the cost of a request.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_COUNTED_SIMULATOR_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_COUNTED_SIMULATOR_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/common/search_budget.h"

namespace spillway::core {

class CountedSimulator final : public PlanSimulator {
 public:
  // Simulating one node costs as much as this many steps of a search. (Measured: 170 ns a node for
  // both modes, while a step should take 10; but the default of max_search_steps must suffice to
  // tune a million nodes, in some 200 simulations.)
  static constexpr int64_t kStepsPerNode = 3;

  // `simulator` may be null if Simulate is never called; `remedy` (SearchBudget::status) is a
  // constant. All must outlive this.
  CountedSimulator(PlanSimulator* simulator, int32_t num_nodes, SearchBudget* budget,
                   absl::string_view remedy)
      : simulator_(simulator),
        steps_(kStepsPerNode * num_nodes),
        budget_(budget),
        remedy_(remedy) {}

  // Errors of both also include RESOURCE_EXHAUSTED (SEARCH_TOO_LONG).
  absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                      const StopToken& stop) override {
    if (budget_->Spend(steps_)) {
      return budget_->status("the fastest plan that fits", remedy_);
    }
    auto outcome = simulator_->Simulate(plan, terms, stop);
    if (outcome.ok() && terms.budgets == StepTerms::Budgets::kOneGpu) {
      // A step that is slower than the best known is not simulated to its end.
      budget_->CountSimulation(terms.gpu.value(), outcome->fits || outcome->is_partial);
    }
    return outcome;
  }
  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const std::vector<NodeId>& order,
                                                        const std::vector<bool>& may_run_again,
                                                        const StopToken& stop) override {
    // Takes about as long as a simulation.
    if (budget_->Spend(steps_)) return budget_->status("the bounds of a step", remedy_);
    return simulator_->LowerBounds(order, may_run_again, stop);
  }

  // How many simulations the request's remaining steps allow.
  int64_t simulations_left() const { return budget_->steps_left() / std::max<int64_t>(1, steps_); }

 private:
  PlanSimulator* const simulator_;
  const int64_t steps_;
  SearchBudget* const budget_;
  const absl::string_view remedy_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_COUNTED_SIMULATOR_H_
