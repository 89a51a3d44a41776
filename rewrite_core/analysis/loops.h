// Loops (Enter, Merge, Switch, Exit, NextIteration): how often a step runs their bodies, in which
// order the whole runs if each body is taken to run once, and what an Exit gives out.
//
// The number of iterations is told by the condition, where it compares a counter (a loop variable
// that begins with a known value, and to which a known one is added or taken away) with what the
// loop does not change: constants, maximum_iterations, the size of a dimension; or what another
// loop counted, as that of the gradient does. Of several conditions that must hold the least
// counts: a loop that may end early is taken to its end. What is not told so may be given
// (v1::Step.loop_counts), by the loop's name, which is the attribute frame_name of its Enter nodes.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_LOOPS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_LOOPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/control_flow.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

inline constexpr int64_t kUnknownCount = -1;

class Loops {
 public:
  struct Loop {
    std::string name;
    FrameId parent = kRootFrame;
    NodeId enter = kNoNode;         // The first that enters it, by id.
    int64_t count = kUnknownCount;  // Of iterations, each time that it is entered.
    // Of it in all loops around it; those whose count is unknown are taken to run once.
    int64_t runs = 1;
    bool is_known = false;  // Its count, and of all loops around it.
  };

  // Of a graph without loops.
  Loops() = default;

  // Errors: those of `stop`; a loop count that is below 1 (BAD_OPTION), is given twice, or names no
  // loop (NAME_MATCHES_NOTHING).
  static absl::StatusOr<Loops> Find(const Graph& graph, const Topology& topology,
                                    const Shapes& shapes, const ControlFlowAnalysis& control_flow,
                                    const v1::Step& step, const StopToken& stop);

  bool empty() const { return loops_.empty(); }
  const std::vector<Loop>& loops() const { return loops_; }

  // The loop whose body the node is part of; null outside of all. Enter is before it, Exit is what
  // remains when it has ended.
  const Loop* loop(NodeId id) const {
    return empty() || loop_of_[id] < 0 ? nullptr : &loops_[loop_of_[id]];
  }
  // How often a step runs the node.
  int64_t runs(NodeId id) const { return loop(id) == nullptr ? 1 : loop(id)->runs; }

  // All nodes, producers before consumers, bodies before what their loops leave; empty where the
  // graph has no loops, or the order of its topology is all there is.
  const std::vector<NodeId>& order() const { return order_; }
  // The level of a node (Topology::level) with what makes that order: what grows along every edge,
  // and from a body to what its loop leaves. REQUIRES: order() is not empty.
  int32_t level(NodeId id) const { return level_[id]; }

  // Of an Exit, the NextIteration whose value it gives out at the end; kNoNode for other nodes, and
  // where order() is empty.
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

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_LOOPS_H_
