#include "rewrite_core/plan/swap_plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace spillway::core {

void SortSwaps(std::vector<PlannedSwap>* swaps) {
  std::sort(swaps->begin(), swaps->end(), [](const PlannedSwap& a, const PlannedSwap& b) {
    return std::make_pair(a.tensor.node, a.tensor.port) <
           std::make_pair(b.tensor.node, b.tensor.port);
  });
}

absl::StatusOr<SwapPlan> MovePlan(const SwapPlan& plan, const Graph& from, const Graph& to,
                                  const StopToken& stop) {
  SwapPlan moved = plan;
  StopPoller poll(stop);
  bool stopped = false;
  const auto move = [&](NodeId* id) {
    stopped = stopped || poll.Tick();
    if (!stopped) *id = to.Find(from.name(*id));
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

std::string PrintPlan(const Graph& graph, const SwapPlan& plan) {
  std::string text;
  for (const PlannedSwap& swap : plan.swaps) {
    for (const PlannedSwapIn& swap_in : swap.swap_ins) {
      absl::StrAppend(
          &text, TensorName(graph, swap.tensor), " (",
          swap.size_bytes == kUnknownSize ? "?" : absl::StrCat(swap.size_bytes), " bytes",
          swap.buffer == kNoBuffer ? "" : absl::StrCat(" of buffer ", swap.buffer), ") -> ",
          absl::StrJoin(swap_in.consumers, ", ",
                        [&graph](std::string* out, const InputPosition& consumer) {
                          absl::StrAppend(out, graph.name(consumer.node), "[", consumer.index, "]");
                        }));
      const auto name = [&graph](std::string* out, NodeId id) {
        absl::StrAppend(out, graph.name(id));
      };
      if (!swap_in.triggers.empty()) {
        absl::StrAppend(&text, " after ", absl::StrJoin(swap_in.triggers, ", ", name));
      }
      absl::StrAppend(&text, "\n");
      for (NodeId node : swap_in.paces) {
        absl::StrAppend(&text, TensorName(graph, swap.tensor), " in => ", graph.name(node), "\n");
      }
    }
    for (NodeId node : swap.deadlines) {
      absl::StrAppend(&text, TensorName(graph, swap.tensor), " out => ", graph.name(node), "\n");
    }
  }
  for (const ControlEdge& control : plan.controls) {
    absl::StrAppend(&text, graph.name(control.from), " => ", graph.name(control.to),
                    control.kind == v1::EDGE_KIND_ORDER ? " (order)\n" : "\n");
  }
  return text;
}

}  // namespace spillway::core
