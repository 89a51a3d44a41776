// What a training step runs where nobody says it: from the graph's structure alone, whatever its
// ops are named.
//
// (1) The weight updates (backward_part.h), and what waits for any of them and nobody waits for:
//     the train op, with all that it groups; counters of steps; averages of weights. Not what only
//     reads a variable back.
// (2) Moving averages, where (1) runs none of them: plain writes (AssignSub, ...) of a value that
//     is computed from the variable itself and from what the updates are computed from. So no
//     metric, which adds up without reading, no counter and no initializer; and where the train op
//     groups some averages, as those of one of several towers, not the others.
// (3) The loss: scalars of floating point numbers that are computed, over ops on such numbers
//     alone, from where the forward part ends: from what comes of the weights and, of all that the
//     step runs, only the backward part reads. So no accuracy, which compares, no summary, which is
//     text, no learning rate, and no penalty on weights that the step does not run anyway.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_DEFAULT_TARGETS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_DEFAULT_TARGETS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/backward_part.h"
#include "rewrite_core/analysis/reachability.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// The weight updates by id, then what else there is, each of (1) to (3) by id. None without
// updates. Errors: those of `stop`. Linear in the graph.
absl::StatusOr<std::vector<NodeId>> FindDefaultTargets(const Graph& graph, const Topology& topology,
                                                       const Shapes& shapes,
                                                       const BackwardPart& backward,
                                                       const StopToken& stop);

// Flags `targets` and all that they need in `needed`, where what is flagged already came with what
// it needs. False: stopped.
bool AddNeeded(const Graph& graph, const Shapes& shapes, const std::vector<NodeId>& targets,
               StopPoller* poll, NodeFlags* needed);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_DEFAULT_TARGETS_H_
