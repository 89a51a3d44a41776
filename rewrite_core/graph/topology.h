// The topological order of a whole graph, and each node's level: the longest path to it over data
// and control edges. The back edges of loops (NextIteration -> Merge) do not count.
//
// Thread safety: immutable after Build.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_TOPOLOGY_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_TOPOLOGY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

class Topology {
 public:
  // INVALID_ARGUMENT (CYCLE), naming the nodes of one cycle, if there is a cycle other than a
  // loop's.
  static absl::StatusOr<Topology> Build(const Graph& graph, const StopToken& stop);

  // All nodes, producers before consumers; ties in an order that depends only on the graph.
  const std::vector<NodeId>& order() const { return order_; }

  // 0 for a node without inputs; otherwise one more than the highest level among its inputs. So
  // adding edges u -> v with level(u) < level(v) never creates a cycle, however many are added.
  int32_t level(NodeId id) const { return level_[id]; }

 private:
  std::vector<NodeId> order_;
  std::vector<int32_t> level_;
};

// Whether an edge between these two is the back edge of a loop.
inline bool IsBackEdge(const Graph& graph, NodeId from, NodeId to) {
  return graph.op_info(from).control_flow == ControlFlow::kNextIteration &&
         graph.op_info(to).control_flow == ControlFlow::kMerge;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_TOPOLOGY_H_
