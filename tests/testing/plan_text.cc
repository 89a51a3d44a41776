#include "tests/testing/plan_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace spillway::testing {

std::string PrintPlan(const core::Graph& graph, const core::SwapPlan& plan) {
  std::string text;
  for (const core::PlannedSwap& swap : plan.swaps) {
    for (const core::PlannedSwapIn& swap_in : swap.swap_ins) {
      absl::StrAppend(
          &text, TensorName(graph, swap.tensor), " (",
          swap.size_bytes == core::kUnknownSize ? "?" : absl::StrCat(swap.size_bytes), " bytes",
          swap.buffer == core::kNoBuffer ? "" : absl::StrCat(" of buffer ", swap.buffer.value()),
          ") -> ",
          absl::StrJoin(swap_in.consumers, ", ",
                        [&graph](std::string* out, const core::InputPosition& consumer) {
                          absl::StrAppend(out, graph.name(consumer.node), "[", consumer.index, "]");
                        }));
      const auto name = [&graph](std::string* out, core::NodeId id) {
        absl::StrAppend(out, graph.name(id));
      };
      if (!swap_in.triggers.empty()) {
        absl::StrAppend(&text, " after ", absl::StrJoin(swap_in.triggers, ", ", name));
      }
      absl::StrAppend(&text, "\n");
      for (core::NodeId node : swap_in.paces) {
        absl::StrAppend(&text, TensorName(graph, swap.tensor), " in => ", graph.name(node), "\n");
      }
    }
    for (core::NodeId node : swap.deadlines) {
      absl::StrAppend(&text, TensorName(graph, swap.tensor), " out => ", graph.name(node), "\n");
    }
  }
  for (const core::ControlEdge& control : plan.controls) {
    absl::StrAppend(&text, graph.name(control.from), " => ", graph.name(control.to),
                    control.kind == v1::EDGE_KIND_ORDER ? " (order)\n" : "\n");
  }
  return text;
}

}  // namespace spillway::testing
