#include "rewrite_core/strategy/order/order_chain.h"

#include <algorithm>

#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {
namespace {

// A node that may not wait for the previous one waits for one of the kLookBack before it.
constexpr size_t kLookBack = 8;

// Returns the slots that make a buffer, or use it last, ascending.
std::vector<Slot> ChangingSlots(const StepOrder& order) {
  std::vector<bool> changes(order.num_slots(), false);
  for (OrderBuffer i(0); i < order.num_buffers(); ++i) {
    changes[order.made(i)] = changes[order.last_used(i)] = true;
  }
  std::vector<Slot> slots;
  for (Slot slot(0); slot < order.num_slots(); ++slot) {
    if (changes[slot]) slots.push_back(slot);
  }
  return slots;
}

bool Reads(const Graph& graph, NodeId node, NodeId from) {
  const absl::Span<const Tensor> inputs = graph.inputs(node);
  return std::any_of(inputs.begin(), inputs.end(),
                     [from](Tensor input) { return input.node == from; });
}

}  // namespace

absl::StatusOr<std::vector<ControlEdge>> ChainInOrder(const StepFacts& facts, const Needs& needs,
                                                      absl::Span<const int32_t> ranks,
                                                      const StepResult& step, GpuIndex gpu,
                                                      const StopToken& stop) {
  std::vector<ControlEdge> chain;
  if (ranks.empty()) return chain;
  auto order = StepOrder::Create(facts, gpu, step, stop);
  if (!order.ok()) return order.status();
  const Soundness soundness(facts);
  const std::vector<Slot> slots = ChangingSlots(*order);
  StopPoller poll(stop);
  for (size_t i = 1; i < slots.size(); ++i) {
    const NodeId node = order->node(slots[i]);
    for (size_t back = 1; back <= std::min(i, kLookBack); ++back) {
      if (poll.Tick()) return stop.status("strategy");
      const Slot before = slots[i - back];
      const NodeId from = order->node(before);
      if (order->latest_before(slots[i]) == before || Reads(facts.graph(), node, from)) {
        break;  // It already waits.
      }
      if (ranks[from] >= ranks[node] || !needs.MayWait(node, from) ||
          soundness.WaitInOrder(from, node) != EdgeFault::kNone) {
        continue;
      }
      chain.push_back({from, node, v1::EDGE_KIND_SERIALIZATION});
      break;
    }
  }
  return chain;
}

}  // namespace spillway::core
