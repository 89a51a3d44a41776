#include "rewrite_core/apply/clone_match.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/node_writer.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

absl::StatusOr<CloneMatch> CloneMatch::Create(const Graph& graph,
                                              const absl::flat_hash_set<absl::string_view>& ops,
                                              const absl::flat_hash_set<NodeId>& fed,
                                              const StopToken& stop) {
  auto topology = Topology::Build(graph, stop);
  if (!topology.ok()) return topology.status();
  CloneMatch match;
  for (NodeId id(0); id < graph.num_nodes(); ++id) match.same_.push_back(id);
  match.kinds_ = match.same_;
  StopPoller poll(stop);
  for (NodeId id : topology->order()) {
    if (poll.Tick()) return stop.status("verify");
    if (!ops.contains(graph.op(id)) || fed.contains(id) ||
        graph.op_info(id).run_again == RunAgain::kNever || IsAddedNode(graph, id)) {
      continue;  // Nodes from earlier rewrites are not originals.
    }
    const absl::string_view node_def = graph.node_bytes(id);
    if (poll.Tick(static_cast<int64_t>(node_def.size() / 16))) return stop.status("verify");
    std::vector<Tensor> inputs, same;
    std::vector<NodeId> controls;
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("verify");
      if (input.is_control()) {
        controls.push_back(input.node);
        continue;
      }
      inputs.push_back(input);
      same.push_back({match.same_[input.node], input.port});
    }
    Class& of = match.classes_[KeyOf(node_def, same)];
    of.nodes.push_back(id);
    of.num_controls.insert(controls.size());
    match.same_[id] = of.nodes[0];
    match.kinds_[id] = of.by_key.try_emplace(match.KindOf(inputs, controls), id).first->second;
    if (match.kinds_[id] == id) of.kinds.push_back(id);
  }
  return match;
}

absl::Span<const NodeId> CloneMatch::Find(absl::string_view node_def,
                                          std::vector<Tensor> inputs) const {
  const Class* found = FindClass(node_def, std::move(inputs));
  return found == nullptr ? absl::Span<const NodeId>() : found->nodes;
}

std::vector<NodeId> CloneMatch::FindKinds(absl::string_view node_def, std::vector<Tensor> inputs,
                                          absl::Span<const NodeId> controls) const {
  const Class* of = FindClass(node_def, inputs);
  if (of == nullptr || of->kinds.size() <= kMaxKinds) {
    return of == nullptr ? std::vector<NodeId>() : of->kinds;
  }
  std::vector<NodeId> found;
  for (size_t count = 0; count <= controls.size(); ++count) {
    if (!of->num_controls.contains(count)) continue;
    const auto kind = of->by_key.find(KindOf(inputs, controls.subspan(0, count)));
    if (kind != of->by_key.end()) found.push_back(kind->second);
  }
  return found;
}

const CloneMatch::Class* CloneMatch::FindClass(absl::string_view node_def,
                                               std::vector<Tensor> inputs) const {
  for (Tensor& input : inputs) {
    if (input.node == kNoNode) return nullptr;
    input.node = same_[input.node];
  }
  const auto found = classes_.find(KeyOf(node_def, inputs));
  return found == classes_.end() ? nullptr : &found->second;
}

// Of a node of a class: its ports are those of the class.
std::string CloneMatch::KindOf(absl::Span<const Tensor> inputs,
                               absl::Span<const NodeId> controls) const {
  std::string key;
  for (Tensor input : inputs) absl::StrAppend(&key, kinds_[input.node].value(), ",");
  for (NodeId control : controls) absl::StrAppend(&key, "^", control.value());
  return key;
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
