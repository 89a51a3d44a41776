// Gates: the pace edges from a swap-in to the whole frontier of nodes that could be launched after
// its trigger. A copy waits for everything launched before it, so later nodes must not be launched
// first if the copy should overlap with kernels.
//
// Thread safety: immutable. The arguments of the constructor must outlive it.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_PACE_GATE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_PACE_GATE_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

class PaceGate {
 public:
  // How many slots after a gate are searched for nodes that must wait. Kernels are launched in
  // order of readiness: a node that waits for nothing is soon launched.
  static constexpr int32_t kReach = 4096;

  PaceGate(const StepOrder& order, const Needs& needs, const Soundness& soundness)
      : order_(order), needs_(needs), soundness_(soundness) {}

  // Returns the nodes from `slot` on that wait for none of these, and may wait for a swap-in of an
  // output of `producer` with these triggers, in order of slots, without its consumers, which wait
  // anyway.
  std::vector<NodeId> Find(NodeId producer, absl::Span<const NodeId> triggers, Slot slot,
                           absl::Span<const InputPosition> consumers) const;
  // With the nodes of the consumers.
  std::vector<NodeId> Find(NodeId producer, absl::Span<const NodeId> triggers, Slot slot,
                           const absl::flat_hash_set<NodeId>& readers) const;

 private:
  bool MayWait(NodeId node, NodeId producer, absl::Span<const NodeId> triggers) const;

  const StepOrder& order_;
  const Needs& needs_;
  const Soundness& soundness_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_PACE_GATE_H_
