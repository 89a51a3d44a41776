// The step for which `budget` plans: the unswapped one, with the order edges that pay off
// (order_edges.h). They cost no copy, so they come first.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ORDERED_STEP_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ORDERED_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/budget_request.h"

namespace spillway::core {

class OrderedStep {
 public:
  // `request` must outlive it.
  explicit OrderedStep(BudgetRequest* request);

  // Adds edges for operations on `gpus`. REQUIRES: the unswapped step is set. Errors: those
  // of Simulate.
  absl::Status AddEdges(const std::vector<GpuIndex>& gpus);

  // The order edges, and the CPU device that every plan has.
  const SwapPlan& base() const { return base_; }
  // The step with base() and unlimited memory, operations recorded.
  const StepResult& step() const { return step_; }
  // The ranks of all nodes (RankByLaunch), with base().
  const std::vector<int32_t>& ranks() const { return ranks_; }

  // Returns the lower bounds of the GPU, in the order with the order edges. Errors: those of
  // Simulate.
  absl::StatusOr<DeviceBounds> BoundsOf(GpuIndex gpu);

 private:
  absl::Status AddEdges(const std::vector<GpuIndex>& gpus, int64_t least_part, double gain);

  BudgetRequest& request_;
  SwapPlan base_;
  StepResult step_;
  std::vector<int32_t> ranks_;
  std::vector<DeviceBounds> bounds_;  // By GPU, of step_; empty: not computed yet.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ORDERED_STEP_H_
