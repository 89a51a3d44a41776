// StepSimulator: simulates one training step under plan after plan. The step as the graph is, its
// workload, is built once; a plan is patched into it, so that a simulation costs what the plan
// touches and the step itself.
//
// A plan is simulated as if it were in the graph: exactly as BuildWorkload (workload_builder.h)
// makes the workload of graph and plan, but for the ids (StepResult::ops says what they stand for).
//
// The ladder. Memory is counted first. Where the bytes suffice, there may still be no place for
// them: what then takes more than a quarter of a budget is placed. Both come of one run where
// placing changes nothing. Of StepTerms::placed_alone there is but the upper rung.
//
// Thread safety: one call at a time. It keeps memory from one simulation to the next.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_STEP_SIMULATOR_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_STEP_SIMULATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/lower_bounds.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/simulate/workload_builder.h"

namespace spillway::core {

class StepSimulator : public PlanSimulator {
 public:
  // Computes the facts kCosts and kActiveNodes. `facts` must outlive the result. Errors: those of
  // the facts, and of Simulate for the step as the graph is, but for not fitting.
  static absl::StatusOr<std::unique_ptr<StepSimulator>> Create(const StepFacts& facts,
                                                               const StopToken& stop);
  ~StepSimulator() override;

  absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                      const StopToken& stop) override;

  // For one plan more at most, which SimulateLast gets: from now on no plan can be patched in, and
  // the memory that this takes is free, with that of the fact kCosts.
  void EndPlanning();
  // As Simulate, once, after EndPlanning. The step with the plan takes the place of the step as the
  // graph is: nothing but facts() and notes() may be called from then on.
  absl::StatusOr<StepResult> SimulateLast(const SwapPlan& plan, const StepTerms& terms,
                                          const StopToken& stop);

  // Not after EndPlanning. Errors: those of ComputeLowerBounds.
  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const std::vector<OpId>& order,
                                                        const StopToken& stop) override;
  // In the step's own order.
  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const StopToken& stop) {
    return LowerBounds({}, stop);
  }

  const StepFacts& facts() const;
  // The workload of the step as the graph is, and what a forecast from it has to warn of.
  const Workload& unswapped() const;
  const WorkloadNotes& notes() const;

 private:
  class Impl;
  explicit StepSimulator(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_STEP_SIMULATOR_H_
