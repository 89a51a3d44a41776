#include "rewrite_core/strategy/budget/budget_decisions.h"

#include <utility>

namespace spillway::core {
namespace {

std::pair<NodeId, int32_t> KeyOf(Tensor tensor) { return {tensor.node, tensor.port}; }

}  // namespace

absl::StatusOr<std::vector<TensorDecision>> DecideTensors(
    const StepFacts& facts, const Eligibility& eligibility, const SwapFilters& filters,
    const SwapPlan& plan, const std::set<int32_t>& has_gap, const std::set<DeviceId>& idle,
    const StopToken& stop) {
  const Graph& graph = facts.graph();
  std::set<std::pair<NodeId, int32_t>> swapped;
  for (const PlannedSwap& swap : plan.swaps) swapped.insert(KeyOf(swap.tensor));
  const auto reason_for = [&](Tensor tensor) {
    if (swapped.count(KeyOf(tensor)) > 0) return v1::REASON_SWAPPED;
    const v1::Reason reason = eligibility.ReasonFor(tensor);
    if (reason != v1::REASON_SWAPPED) return reason;
    const v1::Reason filtered = filters.outputs.ReasonFor(tensor.node);
    if (filtered != v1::REASON_SWAPPED) return filtered;
    if (!facts.active_nodes().flags[tensor.node]) return v1::REASON_INACTIVE;
    if (idle.count(graph.device_id(tensor.node)) > 0) return v1::REASON_NOT_NEEDED;
    return has_gap.count(facts.buffers().buffer_of(tensor)) > 0 ? v1::REASON_NOT_CHOSEN
                                                                : v1::REASON_NO_LATE_CONSUMER;
  };
  std::vector<TensorDecision> decisions;
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    // In order of ports, control edges first.
    const Graph::Readers readers = graph.readers(id);
    int32_t last = kControl;
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      const Tensor tensor{id, readers[i].port};
      if (tensor.port == kControl || tensor.port == last) continue;
      last = tensor.port;
      decisions.push_back({tensor, reason_for(tensor), facts.shapes().size_bytes(tensor),
                           facts.shapes().why_unknown(tensor)});
    }
  }
  return decisions;
}

}  // namespace spillway::core
