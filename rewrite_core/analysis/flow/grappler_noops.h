// Operations that TensorFlow's dependency optimizer removes from a step before it runs: Grappler,
// which every session and function runs by default, makes an operation a NoOp if only control edges
// leave it, and its inputs are then no longer needed, unless others read them. In TensorFlow 1
// these are above all the gradients of scalars and constants, for which `tuple/group_deps` waits.
//
// The rule is that of SafeToConvertToNoOp and SafeToRemoveIdentity in
// tensorflow/core/grappler/optimizers/dependency_optimizer.cc, with IsFreeOfSideEffect in
// core/grappler/op_types.cc: the op has outputs and no state, writes nothing, is not control flow,
// and is not fetched or fed. Fetches beside the step's targets are not known here.
//
// The graph's own NoOps are not among them. Linear in the graph.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_GRAPPLER_NOOPS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_GRAPPLER_NOOPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

// Whether an Identity that reads this stays an Identity: of a variable, or one side of a
// conditional, or of an Identity of one. (TensorFlow makes a NoOp of the last, which is equally
// dead. Here it stays, so that a swap between the two changes nothing: an Identity has no memory of
// its own.)
bool KeepsIdentity(const Graph& graph, const Shapes& shapes, Tensor read);

// Flags the nodes among `needed` (by `targets`) that become NoOps: none if step.grappler is AS_IS.
// `constants` read nothing (constant_shapes.h). Errors: those of `stop`.
absl::StatusOr<NodeFlags> FindGrapplerNoOps(const Graph& graph, const Topology& topology,
                                            const Shapes& shapes, const v1::Step& step,
                                            const NodeFlags& needed, const NodeFlags& constants,
                                            const std::vector<NodeId>& targets,
                                            const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_GRAPPLER_NOOPS_H_
