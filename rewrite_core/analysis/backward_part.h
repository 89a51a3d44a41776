// Finds the backward part of a training graph from its structure alone, whatever its ops are named:
// gradients, weight updates, and what only these read. Optimizers of any kind, several losses and
// several optimizers in one graph.
//
// How. The part is made of
// (1) ops of a type that only gradients use (ReluGrad, Conv2DBackpropFilter, ...), and all that
// data
//     edges lead to from there, up to the write of a variable;
// (2) the weight updates: ops that only optimizers write variables with (ApplyMomentum, ...); plain
//     writes (AssignSub, ...) of a value from (1); and those, to a variable that these depend on,
//     of a value that depends on the last use of a trained variable. So no initializer, no step
//     counter, no moving average, no metric;
// (3) what an update reads, if it depends on that last use; ops that nothing but the part reads:
// the
//     start of the backward pass before its first op of (1), shapes, weight decay, learning rates;
//     and the gates of tf.gradients. Gradients that nobody needs, and what watches gradients, read
//     without a say: they lead to no gradient, and stand higher than the first sure one. What leads
//     to the first use of a trained variable is forward and never taken;
// (4) what (3) leads to.
//
// A call of a function with gradients in it is a gradient, too; one that writes variables is an
// update as an op would be.
//
// A second forward pass on a gradient (adversarial examples, gradient penalties) counts as
// backward. Nothing is found where the gradients hold no op of (1) and the optimizer is made of
// plain writes. Where a graph comes without its loss (pruned to the updates), ops between the last
// use of a variable and the loss may be taken as well: nothing but gradients reads them then.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_BACKWARD_PART_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_BACKWARD_PART_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/reachability.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/analysis/variables.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

struct BackwardPart {
  NodeFlags ops;                // Updates included.
  std::vector<NodeId> updates;  // The weight updates, by id.
  Variables variables;          // That it was found by.
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
