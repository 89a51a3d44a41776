// Finds the backward part of a training graph from its structure alone, not its names: gradients,
// weight updates, and nodes that only these read. Handles any optimizer, several losses, and
// several optimizers in one graph.
//
// The backward part consists of
// (1) ops of a type that only gradients use (ReluGrad, Conv2DBackpropFilter, ...), and everything
//     reached from them over data edges, up to the write of a variable;
// (2) the weight updates: ops that only optimizers write variables with (ApplyMomentum, ...); plain
//     writes (AssignSub, ...) of a value from (1); and plain writes to a variable that (1) or an
//     update depends on, of a value that depends on the last use of a trained variable. This
//     excludes initializers, step counters, moving averages and metrics;
// (3) an update's inputs that depend on that last use; ops that only the backward part reads: the
//     start of the backward pass before its first op of (1), shapes, weight decay, learning rates;
//     and the gates of tf.gradients. Readers that are unused gradients or only watch gradients are
//     ignored: they lead to no gradient, and are at a higher level than the first certain one.
//     Ancestors of the first use of a trained variable are forward and never included;
// (4) everything reached from (3).
//
// A call of a function that contains gradients is a gradient, too; one that writes variables is an
// update, as an op would be.
//
// A second forward pass on a gradient (adversarial examples, gradient penalties) counts as
// backward. Nothing is found if the gradients contain no op of (1) and the optimizer uses plain
// writes only. If the graph has been pruned to the updates, without its loss, ops between the last
// use of a variable and the loss may be included, because only gradients read them then.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_BACKWARD_PART_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_BACKWARD_PART_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/flow/variables.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

struct BackwardPart {
  NodeFlags ops;                // Updates included.
  std::vector<NodeId> updates;  // The weight updates, by id.
  Variables variables;          // The variables it was found from.
};

// Linear in the size of the graph. Finding nothing is not an error: `ops` then flags none. Errors:
// those of `stop`.
absl::StatusOr<BackwardPart> FindBackwardPart(const Graph& graph, const Topology& topology,
                                              const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_BACKWARD_PART_H_
