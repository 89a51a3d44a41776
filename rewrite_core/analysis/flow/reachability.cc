#include "rewrite_core/analysis/flow/reachability.h"

namespace spillway::core {

absl::StatusOr<NodeFlags> ReachedFrom(const Graph& graph, const std::vector<NodeId>& from,
                                      const NodeFlags* barred, const StopToken& stop) {
  NodeFlags reached(graph.num_nodes(), false);
  std::vector<NodeId> queue;
  const auto enter = [&](NodeId id) {
    if (reached[id] || (barred != nullptr && (*barred)[id])) return;
    reached[id] = true;
    queue.push_back(id);
  };
  for (NodeId id : from) enter(id);
  StopPoller poll(stop);
  for (size_t done = 0; done < queue.size(); ++done) {
    const Graph::Readers readers = graph.readers(queue[done]);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("analysis");
      if (readers[i].port != kControl) enter(readers[i].node);
    }
  }
  return reached;
}

absl::StatusOr<NodeFlags> LeadingTo(const Graph& graph, const NodeFlags& to,
                                    const StopToken& stop) {
  NodeFlags leading(graph.num_nodes(), false);
  std::vector<NodeId> nodes;
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (to[id]) nodes.push_back(id);
  }
  if (absl::Status s = AddLeadingTo(graph, nodes, stop, &leading); !s.ok()) return s;
  return leading;
}

absl::Status AddLeadingTo(const Graph& graph, const std::vector<NodeId>& more,
                          const StopToken& stop, NodeFlags* leading) {
  std::vector<NodeId> queue;
  for (NodeId id : more) {
    if ((*leading)[id]) continue;
    (*leading)[id] = true;
    queue.push_back(id);
  }
  StopPoller poll(stop);
  for (size_t done = 0; done < queue.size(); ++done) {
    for (Tensor input : graph.inputs(queue[done])) {
      if (poll.Tick()) return stop.status("analysis");
      if (input.is_control() || (*leading)[input.node]) continue;
      (*leading)[input.node] = true;
      queue.push_back(input.node);
    }
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
