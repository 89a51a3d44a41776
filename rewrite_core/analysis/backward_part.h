// Finds the backward part of a training graph from its structure alone, whatever its ops are named:
// gradients, weight updates, and what only these read. Optimizers of any kind, several losses and
// several optimizers in one graph.
//
// How. (1) Ops of a type that only gradients use (ReluGrad, Conv2DBackpropFilter, ...), and all
// that data edges lead to from there, up to the write of a variable. (2) The weight updates: ops
// that optimizers write variables with (ApplyMomentum, ...), and plain writes (AssignSub, ...) to a
// variable that the gradients depend on, of a value that depends on gradients or on other variables
// (so no initializer, no step counter, no moving average, no metric). (3) Ops that nothing but (1)
// to (3) reads: the start of the backward pass before its first op of (1), shapes, weight decay,
// learning rates; and gradients that nobody needs, which tf.gradients ties to the others by control
// edges alone. What leads to the first use of a trained variable is forward and
// never taken. (4) What (1) to (3) lead to.
//
// Nothing is found where the gradients hold no op of (1) and the optimizer is made of plain writes.
// Where a graph without its loss (pruned to the updates) is given, ops between the last use of a
// variable and the loss may be taken as well: nothing but gradients reads them then.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_BACKWARD_PART_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_BACKWARD_PART_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/reachability.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/stop_token.h"

namespace spillway::core {

struct BackwardPart {
  NodeFlags ops;                // Updates included.
  std::vector<NodeId> updates;  // The weight updates, by id.
};

// Linear in the size of the graph. Finding nothing is no error: `ops` flags none then. Errors:
// those of `stop`.
absl::StatusOr<BackwardPart> FindBackwardPart(const Graph& graph, const Topology& topology,
                                              const StopToken& stop);

// Whether only the gradient of something is computed by ops of this type. BackpropInput is none: it
// is the transposed convolution of a forward pass as well.
bool IsGradientOpType(absl::string_view op);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_BACKWARD_PART_H_
