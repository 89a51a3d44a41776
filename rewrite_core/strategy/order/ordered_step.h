// The step for which plans are made: the unswapped one, with the order edges that pay off
// (order_edges.h). They cost no copy, so they come first.
//
// Thread safety: immutable.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_ORDERED_STEP_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_ORDERED_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"

namespace spillway::core {

// Which order edges are tried together, and kept: those for outputs of at least 1/least_part of the
// peak, if they lower the peak left by the edges so far by more than the share `gain`.
struct OrderEdgeTerms {
  int64_t least_part;
  double gain;
};
// Outputs smaller than this part of the peak are not worth an edge.
inline constexpr OrderEdgeTerms kLargeOutputs = {256, 0};

struct OrderedStep {
  // The order edges, added to `base`.
  SwapPlan base;
  // The step with `base` and unlimited memory, operations recorded.
  StepResult step;
  // The ranks of all nodes (RankByLaunch), with the order edges.
  std::vector<int32_t> ranks;

  // `base`: a plan without swaps. `unswapped`: the step with it and unlimited memory, operations
  // recorded. Edges are for operations on `gpus`; a step with them that takes longer than `most_ns`
  // is not taken. Errors: those of Simulate.
  static absl::StatusOr<OrderedStep> Create(const StepFacts& facts, const SwapPlan& base,
                                            const StepResult& unswapped,
                                            const std::vector<GpuIndex>& gpus,
                                            absl::Span<const OrderEdgeTerms> terms, int64_t most_ns,
                                            PlanSimulator* simulator, const StopToken& stop);
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_ORDERED_STEP_H_
