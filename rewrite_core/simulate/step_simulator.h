// StepSimulator: simulates one training step under many plans. The workload of the unswapped step
// is built once and a plan is patched into it, so that the cost of a simulation is that of the run,
// plus that of patching.
//
// The result is that of the workload which BuildWorkload (workload_builder.h) makes of graph and
// plan, except for the ids (see StepResult::ops).
//
// Two stages. Memory is counted first. If the bytes fit, fragmentation may still keep them from
// being placed, so a step that takes more than a quarter of a budget is placed as well. One run
// serves for both if placing changes nothing. StepTerms::placed_alone skips the first stage.
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
  // the facts, and of Simulate for the unswapped step.
  static absl::StatusOr<std::unique_ptr<StepSimulator>> Create(const StepFacts& facts,
                                                               const StopToken& stop);
  ~StepSimulator() override;

  absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                      const StopToken& stop) override;

  // Frees the patching data, and the fact kCosts. From now on only the unswapped step may be
  // simulated, and Become called.
  void EndPlanning();
  // Makes the step with `plan` the one that is simulated without a plan, to save memory. REQUIRES:
  // EndPlanning was called. Afterwards unswapped() and LowerBounds may not be called, and nothing
  // can be recorded. Errors: those of BuildWorkload.
  absl::Status Become(const SwapPlan& plan, const StopToken& stop);

  // REQUIRES: EndPlanning was not called. Errors: those of ComputeLowerBounds.
  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const std::vector<NodeId>& order,
                                                        const std::vector<bool>& may_run_again,
                                                        const StopToken& stop) override;
  // In the step's own order.
  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const StopToken& stop) {
    return LowerBounds({}, {}, stop);
  }

  const StepFacts& facts() const;
  // The workload of the unswapped step, and the warnings for forecasts from it.
  const Workload& unswapped() const;
  const WorkloadNotes& notes() const;

 private:
  class Impl;
  explicit StepSimulator(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_STEP_SIMULATOR_H_
