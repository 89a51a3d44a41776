// Gates: the pace edges from a swap-in to the whole frontier of nodes that could be launched behind
// its trigger. A copy waits for all that was launched before it, so nothing later may be, if it is
// to overlap with kernels.
//
// Thread safety: immutable; what it is made of must outlive it.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PACE_GATE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PACE_GATE_H_

#include <vector>

#include "absl/types/span.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/budget/step_order.h"

namespace spillway::core {

class PaceGate {
 public:
  // What has to wait is looked for so many slots behind a gate. Kernels are launched in order of
  // readiness: what waits for nothing is soon launched.
  static constexpr Slot kReach = 4096;

  PaceGate(const StepOrder& order, const Needs& needs, const Soundness& soundness)
      : order_(order), needs_(needs), soundness_(soundness) {}

  // The nodes from `slot` on that wait for nothing from there on, and may wait for a swap-in of an
  // output of `producer` with these triggers; its consumers do so anyway. In order of their slots.
  std::vector<NodeId> Find(NodeId producer, absl::Span<const NodeId> triggers, Slot slot,
                           absl::Span<const InputPosition> consumers) const;

 private:
  bool MayWait(NodeId node, NodeId producer, absl::Span<const NodeId> triggers) const;

  const StepOrder& order_;
  const Needs& needs_;
  const Soundness& soundness_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PACE_GATE_H_
