// The default targets of a training step: found from the graph's structure alone, not its names.
//
// (1) The weight updates (backward_part.h), and the final nodes that wait for any of them: the
//     train op, with everything that it groups; step counters; averages of weights. Not nodes that
//     only read a variable back.
// (2) Moving averages, if (1) runs none of them: plain writes (AssignSub, ...) of a value that is
//     computed from the variable itself and from the sources of the updates. This excludes metrics,
//     which accumulate without reading, counters and initializers; and if the train op groups some
//     averages, such as those of one of several towers, the others.
// (3) The loss: floating-point scalars that are computed, by floating-point ops alone, from the end
//     of the forward part: from values that depend on the weights and that only the backward part
//     reads, among the nodes that the step runs. This excludes accuracies, which compare,
//     summaries, which are strings, learning rates, and weight penalties that the step does not run
//     anyway.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_DEFAULT_TARGETS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_DEFAULT_TARGETS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/backward_part.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

// The weight updates by id, then the other targets, each of (1) to (3) by id. Empty if there are no
// updates. Errors: those of `stop`. Linear in the graph.
absl::StatusOr<std::vector<NodeId>> FindDefaultTargets(const Graph& graph, const Topology& topology,
                                                       const Shapes& shapes,
                                                       const BackwardPart& backward,
                                                       const StopToken& stop);

// Flags `targets` and everything they need in `needed`, whose flagged nodes must already include
// all they need. False if stopped.
bool AddNeeded(const Graph& graph, const Shapes& shapes, const std::vector<NodeId>& targets,
               StopPoller* poll, NodeFlags* needed);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_DEFAULT_TARGETS_H_
