// Loops (Enter, Merge, Switch, Exit, NextIteration): how often a step runs their bodies, the order
// of the whole graph if each body runs once, and the value of an Exit.
//
// The number of iterations follows from the condition if it compares a counter (a loop variable
// with a known initial value, incremented or decremented by a known step) with a loop invariant: a
// constant, maximum_iterations, the size of a dimension; or with another loop's count, as gradient
// loops do. If several conditions must hold, the smallest count applies: a loop that may end early
// is assumed not to. Unknown counts may be given (v1::Step.loop_counts) by the loop's name, which
// is the attribute frame_name of its Enter nodes.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_LOOPS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_LOOPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

inline constexpr int64_t kUnknownCount = -1;

class Loops {
 public:
  struct Loop {
    std::string name;
    FrameId parent = kRootFrame;
    NodeId enter = kNoNode;         // Its first Enter node, by id.
    int64_t count = kUnknownCount;  // Iterations each time that it is entered.
    // Iterations in total, over all enclosing loops; loops of unknown count run once.
    int64_t runs = 1;
    bool is_known = false;  // Whether its count and those of all enclosing loops are known.
  };

  // For a graph without loops.
  Loops() = default;

  // Errors: those of `stop`; a loop count that is below 1 (BAD_OPTION), is given twice, or names no
  // loop (NAME_MATCHES_NOTHING).
  static absl::StatusOr<Loops> Find(const Graph& graph, const Topology& topology,
                                    const Shapes& shapes, const ControlFlowAnalysis& control_flow,
                                    const v1::Step& step, const StopToken& stop);

  bool empty() const { return loops_.empty(); }
  const std::vector<Loop>& loops() const { return loops_; }

  // The innermost loop whose body contains the node; null outside all loops. A loop's Enter comes
  // before its body, and its Exit after it.
  const Loop* loop(NodeId id) const {
    return empty() || loop_of_[id] < 0 ? nullptr : &loops_[loop_of_[id]];
  }
  // How often a step runs the node.
  int64_t runs(NodeId id) const { return loop(id) == nullptr ? 1 : loop(id)->runs; }

  // All nodes, producers before consumers, loop bodies before the Exits; empty if the graph has no
  // loops, or if a loop body depends on its own Exits (TensorFlow would hang).
  const std::vector<NodeId>& order() const { return order_; }
  // The level of a node (Topology::level) for that order: it increases along every edge, and from a
  // loop's body to its Exits. REQUIRES: order() is not empty.
  int32_t level(NodeId id) const { return level_[id]; }

  // For an Exit, the NextIteration whose final value it outputs; kNoNode for other nodes, and if
  // order() is empty.
  NodeId last_value(NodeId exit) const {
    const auto found = last_values_.find(exit);
    return found == last_values_.end() ? kNoNode : found->second;
  }

 private:
  friend class LoopFinder;

  std::vector<Loop> loops_;
  std::vector<int32_t> loop_of_;  // By node; -1: none.
  std::vector<NodeId> order_;
  std::vector<int32_t> level_;
  absl::flat_hash_map<NodeId, NodeId> last_values_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_LOOPS_H_
