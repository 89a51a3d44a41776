// What TensorFlow's dependency optimizer takes out of a step before it runs: Grappler, which every
// session and function runs by default, makes an operation a NoOp if only control edges leave it,
// and what it reads is then needed no more, unless others read it. In TensorFlow 1 these are above
// all the gradients of scalars and constants, for which `tuple/group_deps` waits.
//
// The rule is that of SafeToConvertToNoOp and SafeToRemoveIdentity in
// tensorflow/core/grappler/optimizers/dependency_optimizer.cc, with IsFreeOfSideEffect in
// core/grappler/op_types.cc: the op has outputs and no state, writes nothing, is no control flow,
// and is not fetched or fed. What is fetched beside the step's targets is not known here.
//
// The graph's NoOps are not among them: they are what they are. Linear in the graph.
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

// Whether an Identity that reads this stays what it is: of a variable, or one side of a
// conditional, or of an Identity of one. (TensorFlow makes a NoOp of the last, which is no less
// dead. Here it stays, so that a swap between the two changes nothing: an Identity has no memory of
// its own.)
bool KeepsIdentity(const Graph& graph, const Shapes& shapes, Tensor read);

// Flags the nodes among `needed` (what `targets` need) that become NoOps: none if step.grappler is
// AS_IS. `constants` read nothing (constant_shapes.h). Errors: those of `stop`.
absl::StatusOr<NodeFlags> FindGrapplerNoOps(const Graph& graph, const Topology& topology,
                                            const Shapes& shapes, const v1::Step& step,
                                            const NodeFlags& needed, const NodeFlags& constants,
                                            const std::vector<NodeId>& targets,
                                            const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_GRAPPLER_NOOPS_H_
