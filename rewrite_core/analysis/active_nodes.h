// Which nodes one step runs: the targets and all that they need. TensorFlow prunes the rest, and
// what only fed nodes would need.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_ACTIVE_NODES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_ACTIVE_NODES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/backward_part.h"
#include "rewrite_core/analysis/reachability.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// Where the targets come from; the report says it.
enum class TargetSource : uint8_t {
  kGiven,
  kUpdates,  // None were given: the weight updates that backward_part finds.
  kSinks,    // There are none of those either: every node that nobody reads.
};

struct ActiveNodes {
  NodeFlags flags;              // Per node: whether it runs.
  std::vector<NodeId> targets;  // In the order given, or by id. Never empty.
  TargetSource source = TargetSource::kGiven;
};

// `names`: nodes or tensors (`node:port`). `backward` (may be null): as FindBackwardPart found it,
// to spare finding it again. INVALID_ARGUMENT (BAD_OPTION) for a name that the graph does not have;
// otherwise errors of `stop`. Linear in the graph.
absl::StatusOr<ActiveNodes> FindActiveNodes(const Graph& graph, const Topology& topology,
                                            const Shapes& shapes,
                                            const std::vector<std::string>& names,
                                            const BackwardPart* backward, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_ACTIVE_NODES_H_
