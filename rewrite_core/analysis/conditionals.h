// Which side of each conditional (Switch, Merge) the step takes, and what is dead for it: what
// TensorFlow hands on without running it.
//
// A predicate is followed back through Identity, LogicalNot and Switch. Where its value is known
// (fed, or computed from what is), it decides. Where it is not, all Switches on it are taken to go
// the worse way: to the side whose nodes that the step needs make more bytes of device memory,
// outputs that merely hand memory on left out, the backward part included; true where both make as
// much. Decided predicate by predicate in topological order, so that of conditionals in one another
// the inner ones are weighed if the side that they are on is taken. The default of a placeholder is
// no value: as a rule it is what an evaluation runs, and training feeds the other.
//
// Not decided, so that both sides are alive: the condition of a loop, and _SwitchN.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_CONDITIONALS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_CONDITIONALS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/placement.h"
#include "rewrite_core/analysis/reachability.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

class Conditionals {
 public:
  // A predicate of unknown value.
  struct Choice {
    Tensor predicate;                // Where it was followed back to.
    bool value = true;               // What it is taken for.
    std::array<int64_t, 2> bytes{};  // By value: what the nodes of that side make.
    int32_t num_switches = 0;        // That are alive.
  };

  // As of a graph without conditionals.
  Conditionals() = default;

  // `needed`: by node, whether the targets need it. Errors: those of `stop`. Linear in the graph
  // for each level of conditionals in one another, and within a bound.
  static absl::StatusOr<Conditionals> Find(const Graph& graph, const Topology& topology,
                                           const Shapes& shapes, const Placement& placement,
                                           const NodeFlags& needed, const StopToken& stop);

  // Whether the node is not run for a side that is not taken, in the graph as it is.
  bool IsDead(NodeId id) const { return !dead_.empty() && dead_[id]; }
  // Whether the tensor, or for kControl the end of its node, comes without a value.
  bool IsDead(Tensor tensor) const {
    return !dead_.empty() &&
           (dead_[tensor.node] || (!tensor.is_control() && dead_port_[tensor.node] == tensor.port));
  }

  // In the order in which they were decided.
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  friend class SideFinder;

  NodeFlags dead_;  // By node; empty where nothing is.
  // By node: the output of a Switch that is not taken, or kNoPort.
  std::vector<int8_t> dead_port_;
  std::vector<Choice> choices_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_CONDITIONALS_H_
