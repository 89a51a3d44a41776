#include "rewrite_core/plan/swap_plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "rewrite_core/base/saturating.h"

namespace spillway::core {

void SortSwaps(std::vector<PlannedSwap>* swaps) {
  std::stable_sort(swaps->begin(), swaps->end(), [](const PlannedSwap& a, const PlannedSwap& b) {
    return std::make_pair(a.tensor.node, a.tensor.port) <
           std::make_pair(b.tensor.node, b.tensor.port);
  });
}

int64_t SwappedBytes(const SwapPlan& plan) {
  int64_t bytes = 0;
  for (const PlannedSwap& swap : plan.swaps) {
    if (swap.size_bytes != kUnknownSize) bytes = SaturatingAdd(bytes, swap.size_bytes);
  }
  return bytes;
}

void MergeSwaps(std::vector<PlannedSwap>* swaps) {
  size_t kept = 0;
  for (size_t i = 1; i < swaps->size(); ++i) {
    PlannedSwap& last = (*swaps)[kept];
    PlannedSwap& next = (*swaps)[i];
    if (!(next.tensor == last.tensor)) {
      if (++kept < i) (*swaps)[kept] = std::move(next);
      continue;
    }
    std::move(next.swap_ins.begin(), next.swap_ins.end(), std::back_inserter(last.swap_ins));
    last.deadlines.insert(last.deadlines.end(), next.deadlines.begin(), next.deadlines.end());
  }
  if (!swaps->empty()) swaps->resize(kept + 1);
}

absl::StatusOr<SwapPlan> MovePlan(const SwapPlan& plan, const Graph& from, const Graph& to,
                                  const StopToken& stop) {
  SwapPlan moved = plan;
  StopPoller poll(stop);
  bool stopped = false;
  const auto move = [&](NodeId* id) {
    stopped = stopped || poll.Tick();
    if (stopped) return;
    *id = *id < from.num_nodes() ? to.Find(from.name(*id))
                                 : NodeId(to.num_nodes() + (*id - from.num_nodes()));
  };
  for (PlannedSwap& swap : moved.swaps) {
    move(&swap.tensor.node);
    swap.buffer = kNoBuffer;  // Buffer ids belong to one graph.
    for (PlannedSwapIn& swap_in : swap.swap_ins) {
      for (NodeId& trigger : swap_in.triggers) move(&trigger);
      for (NodeId& node : swap_in.paces) move(&node);
      for (InputPosition& consumer : swap_in.consumers) move(&consumer.node);
    }
    for (NodeId& node : swap.deadlines) move(&node);
  }
  for (ControlEdge& control : moved.controls) {
    move(&control.from);
    move(&control.to);
  }
  if (stopped) return stop.status("strategy");
  return moved;
}

}  // namespace spillway::core
