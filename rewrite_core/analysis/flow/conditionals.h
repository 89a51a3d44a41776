// Which side of each conditional (Switch, Merge) the step takes, and which nodes are therefore
// dead: TensorFlow propagates deadness through them without running them.
//
// A predicate is followed back through Identity, LogicalNot and Switch. If its value is known (fed,
// or computed from known values), that decides. Otherwise all Switches on it are assumed to take
// the more expensive side: the one whose needed nodes, including the backward part, allocate more
// bytes of device memory, not counting outputs that only forward memory; true on a tie. Predicates
// are decided one by one in topological order, so nested conditionals are only weighed if their
// side is taken. The default of a placeholder is not used as a value: usually it is the one for
// evaluation, and training feeds the other.
//
// Loop conditions and _SwitchN are not decided: all their sides are alive.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONDITIONALS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONDITIONALS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

class Conditionals {
 public:
  // A predicate of unknown value.
  struct Choice {
    Tensor predicate;                // Where the predicate originates.
    bool value = true;               // The assumed value.
    std::array<int64_t, 2> bytes{};  // By value: bytes that the nodes of that side allocate.
    int32_t num_switches = 0;        // The live ones on it.
  };

  // For a graph without conditionals.
  Conditionals() = default;

  // `needed`: by node, whether the targets need it. Errors: those of `stop`. Linear in the graph
  // for each level of nested conditionals, and bounded.
  static absl::StatusOr<Conditionals> Find(const Graph& graph, const Topology& topology,
                                           const Shapes& shapes, const Placement& placement,
                                           const NodeFlags& needed, const StopToken& stop);

  // Whether the node does not run because a side is not taken, in the graph as it is.
  bool IsDead(NodeId id) const { return !dead_.empty() && dead_[id]; }
  // Whether the tensor (for kControl, the end of its node) is dead.
  bool IsDead(Tensor tensor) const {
    return !dead_.empty() &&
           (dead_[tensor.node] || (!tensor.is_control() && dead_port_[tensor.node] == tensor.port));
  }

  // In the order in which they were decided.
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  friend class SideFinder;

  NodeFlags dead_;  // By node; empty if none is dead.
  // By node: the output of a Switch that is not taken, or kNoPort.
  std::vector<int8_t> dead_port_;
  std::vector<Choice> choices_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONDITIONALS_H_
