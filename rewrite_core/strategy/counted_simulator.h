// A simulator whose simulations count in the request's budget of search steps: with many GPUs, or
// nodes, they are most of what a request takes.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COUNTED_SIMULATOR_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COUNTED_SIMULATOR_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/search_budget.h"

namespace spillway::core {

class CountedSimulator final : public PlanSimulator {
 public:
  // To simulate one node costs about as much as so many steps of a search. (Measured: 170 ns a
  // node, two modes, where a step is to take 10; but a million nodes must still be tuned with the
  // default of max_search_steps, in some 200 simulations.)
  static constexpr int64_t kStepsPerNode = 3;

  // `simulator` may be null, if nobody simulates; `remedy` (SearchBudget::status) is a constant.
  // All must outlive this.
  CountedSimulator(PlanSimulator* simulator, int32_t num_nodes, SearchBudget* budget,
                   absl::string_view remedy)
      : simulator_(simulator),
        steps_(kStepsPerNode * num_nodes),
        budget_(budget),
        remedy_(remedy) {}

  // Errors of both: also RESOURCE_EXHAUSTED (SEARCH_TOO_LONG).
  absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                      const StopToken& stop) override {
    if (budget_->Spend(steps_)) {
      return budget_->status("the fastest plan that fits", remedy_);
    }
    return simulator_->Simulate(plan, terms, stop);
  }
  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const std::vector<OpId>& order,
                                                        const StopToken& stop) override {
    // About as long as a simulation.
    if (budget_->Spend(steps_)) return budget_->status("the bounds of a step", remedy_);
    return simulator_->LowerBounds(order, stop);
  }

  // Simulations that the request's steps are enough for.
  int64_t simulations_left() const { return budget_->steps_left() / std::max<int64_t>(1, steps_); }

 private:
  PlanSimulator* const simulator_;
  const int64_t steps_;
  SearchBudget* const budget_;
  const absl::string_view remedy_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COUNTED_SIMULATOR_H_
