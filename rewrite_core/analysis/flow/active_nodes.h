// Which nodes one step runs: the targets and everything that they need, except for dead nodes
// (conditionals.h). TensorFlow prunes the rest, and nodes that only fed nodes need.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_ACTIVE_NODES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_ACTIVE_NODES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/backward_part.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

// Where the targets come from, for the report.
enum class TargetSource : uint8_t {
  kGiven,
  kUpdates,  // None were given: the training ops that default_targets finds.
  kSinks,    // No training ops either: every node without readers.
};

struct ActiveNodes {
  NodeFlags flags;   // Per node: whether it runs.
  NodeFlags needed;  // The same, including the dead sides of conditionals.
  // Per node: whether it computes nothing when it runs: TensorFlow makes it a NoOp
  // (grappler_noops.h), which takes no time and memory, and only orders others.
  NodeFlags only_orders;
  // Per node: whether TensorFlow makes it a constant (constant_shapes.h), so that it reads nothing.
  NodeFlags constants;
  std::vector<NodeId> targets;  // In the order given, or as found. Never empty.
  TargetSource source = TargetSource::kGiven;

  // Whether the step runs the node, not as a NoOp.
  bool Computes(NodeId id) const { return flags[id] && !only_orders[id]; }
  // Whether it only waits for the nodes of its inputs.
  bool ReadsNothing(NodeId id) const { return only_orders[id] || constants[id]; }
};

// The nodes named in step.targets, in that order. INVALID_ARGUMENT for a name that is not in the
// graph (NAME_MATCHES_NOTHING) or not a valid name (BAD_OPTION); otherwise errors of `stop`.
absl::StatusOr<std::vector<NodeId>> FindTargets(const Graph& graph, const v1::Step& step,
                                                const StopToken& stop);

// Reads step.targets and step.grappler. `backward` may be null; it is the result of
// FindBackwardPart, so as not to compute it again. Assumes that nothing is dead: `flags` equals
// `needed`. Errors: those of FindTargets. Linear in the graph.
absl::StatusOr<ActiveNodes> FindActiveNodes(const Graph& graph, const Topology& topology,
                                            const Shapes& shapes, const v1::Step& step,
                                            const BackwardPart* backward, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_ACTIVE_NODES_H_
