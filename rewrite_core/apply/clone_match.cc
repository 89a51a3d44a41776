#include "rewrite_core/apply/clone_match.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/node_writer.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/plan/clone_rules.h"

namespace spillway::core {

absl::StatusOr<CloneMatch> CloneMatch::Create(const Graph& graph,
                                              const absl::flat_hash_set<absl::string_view>& ops,
                                              const absl::flat_hash_set<NodeId>& fed,
                                              const StopToken& stop) {
  auto topology = Topology::Build(graph, stop);
  if (!topology.ok()) return topology.status();
  CloneMatch match;
  for (NodeId id(0); id < graph.num_nodes(); ++id) match.same_.push_back(id);
  StopPoller poll(stop);
  for (NodeId id : topology->order()) {
    if (poll.Tick()) return stop.status("verify");
    if (!ops.contains(graph.op(id)) || fed.contains(id) ||
        RunAgainOf(graph.op_info(id)) == RunAgain::kNever || IsAddedNode(graph, id)) {
      continue;  // What an earlier rewrite added is no original.
    }
    const absl::string_view node_def = graph.node_bytes(id);
    if (poll.Tick(static_cast<int64_t>(node_def.size() / 16))) return stop.status("verify");
    std::vector<Tensor> inputs;
    for (Tensor input : graph.inputs(id)) {
      if (input.is_control()) break;
      inputs.push_back({match.same_[input.node], input.port});
    }
    std::vector<NodeId>& nodes = match.nodes_[KeyOf(node_def, inputs)];
    nodes.push_back(id);
    match.same_[id] = nodes[0];
  }
  return match;
}

absl::Span<const NodeId> CloneMatch::Find(absl::string_view node_def,
                                          std::vector<Tensor> inputs) const {
  for (Tensor& input : inputs) {
    if (input.node == kNoNode) return {};
    input.node = same_[input.node];
  }
  const auto found = nodes_.find(KeyOf(node_def, inputs));
  return found == nodes_.end() ? absl::Span<const NodeId>() : found->second;
}

// Each part with its size, so that different parts never give the same text.
std::string CloneMatch::KeyOf(absl::string_view node_def, absl::Span<const Tensor> inputs) {
  const NodeSpec node = ReadCleanNode(node_def);
  std::string key;
  const auto add = [&key](absl::string_view part) {
    absl::StrAppend(&key, part.size(), ":", part);
  };
  add(node.op);
  add(node.device);
  for (const auto& [name, value] : node.attrs) {
    add(name);
    add(value);
  }
  for (Tensor input : inputs) absl::StrAppend(&key, "|", input.node.value(), ":", input.port);
  return key;
}

}  // namespace spillway::core
