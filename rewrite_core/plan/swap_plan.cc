#include "rewrite_core/plan/swap_plan.h"

#include <iterator>
#include <utility>

#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/saturating.h"

namespace spillway::core {

bool SortSwaps(std::vector<PlannedSwap>* swaps, const StopToken& stop) {
  const auto is_before = [](const PlannedSwap& a, const PlannedSwap& b) {
    return std::make_pair(a.tensor.node, a.tensor.port) <
           std::make_pair(b.tensor.node, b.tensor.port);
  };
  StopPoller poll(stop);
  return PolledSort(swaps->begin(), swaps->end(), is_before, &poll);
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
  SwapPlan moved;
  moved.cpu_device = plan.cpu_device;
  moved.controls = plan.controls;
  moved.swaps.reserve(plan.swaps.size());
  StopPoller poll(stop);
  bool stopped = false;
  const auto move = [&](NodeId* id) {
    stopped = stopped || poll.Tick();
    if (stopped) return;
    *id = *id < from.num_nodes() ? to.Find(from.name(*id))
                                 : NodeId(to.num_nodes() + (*id - from.num_nodes()));
  };
  // Copied one by one: a plan may have very many.
  for (const PlannedSwap& from_swap : plan.swaps) {
    PlannedSwap& swap = moved.swaps.emplace_back();
    swap.tensor = from_swap.tensor;
    swap.dtype = from_swap.dtype;
    swap.size_bytes = from_swap.size_bytes;
    swap.deadlines = from_swap.deadlines;
    move(&swap.tensor.node);
    for (const PlannedSwapIn& from_swap_in : from_swap.swap_ins) {
      PlannedSwapIn& swap_in = swap.swap_ins.emplace_back(from_swap_in);
      for (NodeId& trigger : swap_in.triggers) move(&trigger);
      for (NodeId& node : swap_in.paces) move(&node);
      for (InputPosition& consumer : swap_in.consumers) move(&consumer.node);
      if (stopped) return stop.status("strategy");
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
