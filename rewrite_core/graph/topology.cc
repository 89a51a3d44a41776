#include "rewrite_core/graph/topology.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

// `waiting` counts the inputs a node still waits for; those above 0 are on a cycle or after one.
absl::Status CycleError(const Graph& graph, const std::vector<int32_t>& waiting) {
  // Walking backwards among waiting nodes never ends, so it reaches a visited node within num_nodes
  // steps.
  NodeId node(0);
  while (waiting[node] == 0) ++node;
  std::vector<bool> seen(graph.num_nodes(), false);
  std::vector<NodeId> path;
  while (!seen[node]) {
    seen[node] = true;
    path.push_back(node);
    for (Tensor input : graph.inputs(node)) {
      if (waiting[input.node] > 0 && !IsBackEdge(graph, input.node, node)) {
        node = input.node;
        break;
      }
    }
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), node));
  std::reverse(path.begin(), path.end());  // Now in the direction of the edges.
  constexpr size_t kMaxShown = 8;
  std::string text = Quoted(graph.name(path.back()));
  for (size_t i = 0; i < path.size() && i < kMaxShown; ++i) {
    absl::StrAppend(&text, " -> ", Quoted(graph.name(path[i])));
  }
  if (path.size() > kMaxShown) absl::StrAppend(&text, " -> ... (", path.size(), " nodes)");
  return InvalidError(v1::ERROR_REASON_CYCLE,
                      absl::StrCat("the graph has a cycle: ", text,
                                   "; only an edge NextIteration -> Merge may close one"),
                      {{"node", graph.name(path.back())},
                       {"field", "input"},
                       {"cycle_length", absl::StrCat(path.size())}});
}

}  // namespace

absl::StatusOr<Topology> Topology::Build(const Graph& graph, const StopToken& stop) {
  const int32_t n = graph.num_nodes();
  const bool loops = graph.has_control_flow();
  std::vector<int32_t> waiting(n);
  Topology topology;
  topology.level_.assign(n, 0);
  topology.order_.reserve(n);
  StopPoller poll(stop);
  for (NodeId id(0); id < n; ++id) {
    if (poll.Tick()) return stop.status("analysis");
    waiting[id] = static_cast<int32_t>(graph.inputs(id).size());
    if (loops && graph.op_info(id).control_flow == ControlFlow::kMerge) {
      for (Tensor input : graph.inputs(id)) waiting[id] -= IsBackEdge(graph, input.node, id);
    }
    if (waiting[id] == 0) topology.order_.push_back(id);
  }
  for (size_t done = 0; done < topology.order_.size(); ++done) {
    const NodeId id = topology.order_[done];
    const int32_t next_level = topology.level_[id] + 1;
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("analysis");
      const NodeId reader = readers[i].node;
      if (loops && IsBackEdge(graph, id, reader)) continue;
      topology.level_[reader] = std::max(topology.level_[reader], next_level);
      if (--waiting[reader] == 0) topology.order_.push_back(reader);
    }
  }
  if (topology.order_.size() < static_cast<size_t>(n)) return CycleError(graph, waiting);
  return topology;
}

}  // namespace spillway::core
