#include "rewrite_core/plan/clone_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/node_writer.h"

namespace spillway::core {

absl::StatusOr<std::vector<std::string>> WriteClones(const Graph& graph, const ClonePlan& plan,
                                                     const StopToken& stop, GraphEdit* edit) {
  StopPoller poll(stop);
  std::vector<std::string> names;
  names.reserve(plan.clones.size());
  for (const PlannedClone& clone : plan.clones) {
    if (edit->too_large()) break;
    const absl::Span<const Tensor> inputs = graph.inputs(clone.original);
    // The node is read as a whole.
    const absl::string_view node_def = graph.node_bytes(clone.original);
    if (poll.Tick(1 + static_cast<int64_t>(node_def.size() / 16))) return stop.status("apply");
    NodeSpec node = ReadCleanNode(node_def);
    node.name = edit->UniqueName(absl::StrCat(kCloneMark, NameStem(node.name)));
    for (const PlannedClone::Input& input : clone.inputs) {
      node.inputs[input.index] = Spelling(names[input.from], inputs[input.index].port);
    }
    if (clone.trigger != kNoNode) {
      node.inputs.push_back(absl::StrCat("^", graph.name(clone.trigger)));
    }
    names.push_back(node.name);
    edit->AddNode(std::move(node));
    for (const InputPosition& consumer : clone.consumers) {
      if (poll.Tick()) return stop.status("apply");
      const int32_t port = graph.inputs(consumer.node)[consumer.index].port;
      edit->RewireInput(consumer.node, consumer.index, Spelling(names.back(), port));
    }
    for (NodeId update : clone.updates) {
      if (poll.Tick()) return stop.status("apply");
      edit->AddControlInput(update, names.back(), v1::EDGE_KIND_ORDER);
    }
  }
  return names;
}

}  // namespace spillway::core
