// The option `pace` of the strategy `level`: adds to every plan, like the strategy `budget`, order
// edges (order/order_edges.h) and a gate for each swap-in (order/pace_gate.h).
//
// No cycles: every edge of the graph and of the plan follows one order of all nodes. Soundness
// takes its ranks in place of topological levels. The order follows the launch of kernels, so that
// gates are complete. If levels are serialized, which imposes its own order, there are no order
// edges, and topological levels stay.
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PACING_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PACING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

class LevelPacing {
 public:
  // Whether the plan serializes the operations of each level (serialization.h).
  enum class Serialization { kOff, kOn };

  // `base`: the other edges that every plan has. `gpus`: those that get order edges. `facts` must
  // outlive the result. Errors: those of Simulate.
  static absl::StatusOr<std::unique_ptr<LevelPacing>> Create(
      const StepFacts& facts, const SwapPlan& base, const std::vector<GpuIndex>& gpus,
      Serialization serialization, PlanSimulator* simulator, const StopToken& stop);
  LevelPacing(const LevelPacing&) = delete;
  LevelPacing& operator=(const LevelPacing&) = delete;

  const std::vector<ControlEdge>& order_edges() const { return order_edges_; }
  // The ranks for Soundness; empty: topological levels.
  absl::Span<const int32_t> ranks() const { return ranks_; }
  // The unswapped step, with unlimited memory.
  const StepResult& unswapped() const { return unswapped_; }

  bool Paces(GpuIndex gpu) const { return orders_.count(gpu) > 0; }
  // Removes the triggers that the step does not run from a swap-in with a consumer that it runs:
  // the swap-in would make them run for nothing.
  void LeaveOutIdle(PlannedSwapIn* swap_in) const;
  // Returns the nodes that wait for a swap-in of an output of `producer`, which is on GPU `gpu`;
  // none if the step does not run it, or no trigger of it is there.
  std::vector<NodeId> Gate(GpuIndex gpu, NodeId producer, const PlannedSwapIn& swap_in) const;

 private:
  LevelPacing(const StepFacts& facts, Needs needs) : facts_(facts), needs_(std::move(needs)) {}

  // Whether the step that is planned for runs one of its consumers.
  bool Runs(const PlannedSwapIn& swap_in) const;

  const StepFacts& facts_;
  const Needs needs_;
  StepResult unswapped_;
  std::vector<ControlEdge> order_edges_;
  std::vector<int32_t> ranks_;
  std::map<GpuIndex, StepOrder> orders_;  // By GPU, with the order edges.
  std::unique_ptr<Soundness> soundness_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PACING_H_
