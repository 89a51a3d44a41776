// The control edges of swap nodes as the specification of TFLMS v2 lists them, on the original
// graph and from recorded levels, by simple, slow walks: the reference for the strategy `level`.
#ifndef SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_LEVEL_NAIVE_LEVEL_TRIGGERS_H_
#define SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_LEVEL_NAIVE_LEVEL_TRIGGERS_H_

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "rewrite_core/graph/graph.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/recorded_v2.h"

namespace spillway::core {

class NaiveLevelTriggers {
 public:
  using Nodes = std::set<NodeId>;

  // `per_device`: each GPU on its own; otherwise all devices but CPUs are one. `graph` must outlive
  // this.
  NaiveLevelTriggers(const testing::TestGraph& graph, const testing::RecordedLevelsV2& record,
                     bool per_device)
      : graph_(graph), per_device_(per_device), level_(graph->num_nodes(), -1) {
    inactive_.resize(graph->num_nodes(), false);
    for (const std::string& op : record.inactive) inactive_[graph.Node(op)] = true;
    for (const std::vector<std::string>& ops : record.levels) {
      std::vector<NodeId>& nodes = nodes_at_.emplace_back();
      for (const std::string& op : ops) {
        nodes.push_back(graph.Node(op));
        level_[nodes.back()] = static_cast<int32_t>(nodes_at_.size()) - 1;
      }
    }
  }

  int32_t level(NodeId id) const { return level_[id]; }

  // The sets of candidates for a swap-in of an output of `source` whose first consumer is `d`,
  // those that are not empty, in the order in which they are tried: v2 takes any op of the first.
  std::vector<Nodes> Rounds(NodeId source, NodeId d, int ahead) const {
    const int64_t highest = int64_t{level_[d]} - ahead - 1;
    const int64_t lowest = std::max<int64_t>({level_[source] + 1, highest - 9, 0});
    std::vector<Nodes> rounds;
    if (highest < lowest) return rounds;
    const Nodes leading = LeadingTo(d, lowest);
    for (int64_t level = highest; level >= lowest; --level) {
      Nodes round;
      for (NodeId id : nodes_at_[level]) {
        if (leading.count(id) > 0 && MayTrigger(id) && OnGpuOf(source, id)) round.insert(id);
      }
      if (!round.empty()) rounds.push_back(std::move(round));
    }
    return rounds;
  }

 private:
  bool OnGpuOf(NodeId source, NodeId id) const {
    if (absl::StrContains(absl::AsciiStrToUpper(graph_->device(id)), "CPU")) return false;
    return !per_device_ || absl::EqualsIgnoreCase(graph_->device(id), graph_->device(source));
  }

  bool MayTrigger(NodeId id) const {
    const absl::string_view name = graph_->name(id), op = graph_->op(id);
    if (absl::StrContains(name, "/cond/") && op != "Merge" && op != "Switch") return false;
    if (absl::StrContains(name, "while/") && op != "Enter" && op != "Exit") return false;
    return !inactive_[id];
  }

  // Ancestors of `d` over data edges between ops of this level and above.
  Nodes LeadingTo(NodeId d, int64_t lowest) const {
    Nodes seen = {d};
    std::vector<NodeId> stack = {d};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      for (const Tensor& input : graph_->inputs(id)) {
        if (input.is_control() || level_[input.node] < lowest) continue;
        if (seen.insert(input.node).second) stack.push_back(input.node);
      }
    }
    return seen;
  }

  const testing::TestGraph& graph_;
  bool per_device_;
  std::vector<int32_t> level_;  // -1: none.
  std::vector<bool> inactive_;
  std::vector<std::vector<NodeId>> nodes_at_;  // By level.
};

}  // namespace spillway::core

#endif  // SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_LEVEL_NAIVE_LEVEL_TRIGGERS_H_
