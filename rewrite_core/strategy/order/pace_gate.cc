#include "rewrite_core/strategy/order/pace_gate.h"

#include <algorithm>

namespace spillway::core {
namespace {

// The maximum number of nodes in a gate. No network tried needs as many (usually 1 to 12).
constexpr size_t kMaxGate = 64;

}  // namespace

std::vector<NodeId> PaceGate::Find(NodeId producer, absl::Span<const NodeId> triggers, Slot slot,
                                   absl::Span<const InputPosition> consumers) const {
  absl::flat_hash_set<NodeId> readers;  // There may be very many.
  for (const InputPosition& consumer : consumers) readers.insert(consumer.node);
  return Find(producer, triggers, slot, readers);
}

std::vector<NodeId> PaceGate::Find(NodeId producer, absl::Span<const NodeId> triggers, Slot slot,
                                   const absl::flat_hash_set<NodeId>& readers) const {
  std::vector<NodeId> gate;
  const Slot end = std::min(order_.num_slots(), Slot(slot + kReach));
  const auto add = [&](Slot s) {
    if (order_.latest_before(s) >= slot) return;
    const NodeId node = order_.node(s);
    if (!readers.contains(node) && MayWait(node, producer, triggers)) gate.push_back(node);
  };
  if (slot < end) add(slot);
  for (Slot s = order_.NextFarWait(Slot(slot + 1), slot); s < end && gate.size() < kMaxGate;
       s = order_.NextFarWait(Slot(s + 1), slot)) {
    add(s);
  }
  return gate;
}

bool PaceGate::MayWait(NodeId node, NodeId producer, absl::Span<const NodeId> triggers) const {
  if (soundness_.IsConstant(node)) return false;
  const auto may_wait = [&](NodeId from) {
    return needs_.MayWait(node, from) && soundness_.WaitInOrder(from, node) == EdgeFault::kNone;
  };
  return may_wait(producer) && std::all_of(triggers.begin(), triggers.end(), may_wait) &&
         soundness_.WaitForSwapIn(producer, triggers, node) == EdgeFault::kNone;
}

}  // namespace spillway::core
