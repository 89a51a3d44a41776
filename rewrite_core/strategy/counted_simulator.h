// A simulator whose plays count in the request's budget of search steps: with many GPUs, or nodes,
// they are most of what a request takes.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COUNTED_SIMULATOR_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COUNTED_SIMULATOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/search_budget.h"

namespace spillway::core {

class CountedSimulator final : public PlanSimulator {
 public:
  // A play of one node costs about as much as so many steps of a search. (Measured: 170 ns a node,
  // two modes, where a step is to take 10; but a million nodes must still be tuned with the default
  // of max_search_steps, in some 200 plays.)
  static constexpr int64_t kStepsPerNode = 3;

  // `simulator` may be null, if nobody simulates. Both must outlive this.
  CountedSimulator(PlanSimulator* simulator, int32_t num_nodes, SearchBudget* budget)
      : simulator_(simulator), steps_(kStepsPerNode * num_nodes), budget_(budget) {}

  // Errors: also RESOURCE_EXHAUSTED (SEARCH_TOO_LONG).
  absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                      const StopToken& stop) override {
    if (budget_->Spend(steps_)) {
      return budget_->status("the fastest plan that fits",
                             "name some of the GPUs with devices, give swapout_threshold, "
                             "swapin_ahead and swapin_groupby, or raise the limit");
    }
    return simulator_->Simulate(plan, terms, stop);
  }

 private:
  PlanSimulator* const simulator_;
  const int64_t steps_;
  SearchBudget* const budget_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COUNTED_SIMULATOR_H_
