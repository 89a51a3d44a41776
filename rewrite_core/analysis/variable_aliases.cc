#include "rewrite_core/analysis/variable_aliases.h"

#include "absl/strings/match.h"
#include "rewrite_core/graph/attr_value.h"

namespace spillway::core {
namespace {

// An op whose output is a variable's buffer to begin with.
bool IsSource(const OpInfo& info) {
  return absl::StrContains(info.outputs, '&') || info.name == "ReadVariableOp" ||
         info.name == "_ReadVariablesOp";
}

// Whether this node may hand an input's buffer on, where the op's name alone does not tell.
bool MayForward(const Graph& graph, NodeId id) {
  const OpInfo& info = graph.op_info(id);
  if (!info.known) return true;  // A custom op: who knows.
  if (!info.forwards) return false;
  if (info.name == "Cast") {
    const auto from = graph.attr(id, "SrcT");
    const auto to = graph.attr(id, "DstT");
    return !from || !to || AttrType(*from) == AttrType(*to);
  }
  if (info.name == "AddN") {
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    return inputs.size() < 2 || inputs[1].is_control();  // A sum of one is that one.
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<bool>> FindVariableAliases(const Graph& graph, const StopToken& stop) {
  std::vector<bool> aliases(graph.num_nodes(), false);
  std::vector<NodeId> queue;
  StopPoller poll(stop);
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    if (!IsSource(graph.op_info(id))) continue;
    aliases[id] = true;
    queue.push_back(id);
  }
  for (size_t done = 0; done < queue.size(); ++done) {
    const Graph::Readers readers = graph.readers(queue[done]);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("analysis");
      const Graph::Reader reader = readers[i];
      if (reader.port == kControl || aliases[reader.node] || !MayForward(graph, reader.node)) {
        continue;
      }
      aliases[reader.node] = true;
      queue.push_back(reader.node);
    }
  }
  return aliases;
}

}  // namespace spillway::core
