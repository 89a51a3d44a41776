#include "rewrite_core/strategy/scope/scope_order.h"

#include <algorithm>
#include <utility>

namespace spillway::core {
namespace {

std::vector<NodeId> FlaggedNodes(const NodeFlags& flags) {
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < static_cast<NodeId>(flags.size()); ++id) {
    if (flags[id]) nodes.push_back(id);
  }
  return nodes;
}

}  // namespace

absl::StatusOr<ScopeOrder> BuildScopeOrder(const Graph& graph, const Topology& topology,
                                           const NodeFlags& backward,
                                           const std::vector<NodeId>& seeds,
                                           const StopToken& stop) {
  auto visited = ReachedFrom(graph, seeds, nullptr, stop);
  if (!visited.ok()) return visited.status();
  auto leading = LeadingTo(graph, backward, stop);
  if (!leading.ok()) return leading.status();
  auto behind = ReachedFrom(graph, FlaggedNodes(backward), nullptr, stop);
  if (!behind.ok()) return behind.status();

  const int32_t n = graph.num_nodes();
  ScopeOrder result;
  result.level.assign(n, kNoOrder);
  int32_t level_count = 0;
  StopPoller poll(stop);
  for (NodeId id : topology.order()) {
    if (!(*visited)[id]) continue;
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    const bool has_data_input = !inputs.empty() && !inputs[0].is_control();
    int32_t level = 0;
    for (Tensor input : inputs) {
      if (poll.Tick()) return stop.status("analysis");
      const bool counts = (*visited)[input.node] && (*leading)[input.node];
      if ((!counts && has_data_input) || IsBackEdge(graph, input.node, id)) continue;
      // An op outside the walk is on level 0.
      int32_t& of_input = result.level[input.node];
      of_input = std::max(of_input, 0);
      level = std::max(level, of_input + 1);
    }
    result.level[id] = std::max(result.level[id], level);
    level_count = std::max(level_count, result.level[id] + 1);
  }

  std::vector<bool> has_forward_op(level_count, false);
  for (NodeId id = 0; id < n; ++id) {
    const int32_t level = result.level[id];
    if (level != kNoOrder && !backward[id]) has_forward_op[level] = true;
  }
  const auto dropped = [&](NodeId id) {
    return backward[id] ? has_forward_op[result.level[id]] : (*behind)[id];
  };
  // Number the levels that are not empty.
  std::vector<int32_t> number(level_count, kNoOrder);
  for (NodeId id = 0; id < n; ++id) {
    if (result.level[id] != kNoOrder && !dropped(id)) number[result.level[id]] = 0;
  }
  for (int32_t& level : number) {
    if (level != kNoOrder) level = result.level_count++;
  }
  result.order.assign(n, kNoOrder);
  for (NodeId id = 0; id < n; ++id) {
    if (result.level[id] == kNoOrder || dropped(id)) continue;
    result.order[id] = number[result.level[id]];
    if (backward[id] &&
        (result.backward_start == kNoOrder || result.order[id] < result.backward_start)) {
      result.backward_start = result.order[id];
    }
  }
  result.leads_to_backward = *std::move(leading);
  return result;
}

}  // namespace spillway::core
