// Walks over data edges: the nodes that a set of nodes reaches, or that lead to it.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_REACHABILITY_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_REACHABILITY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// One flag per node.
using NodeFlags = std::vector<bool>;

// The nodes that a walk over data edges reaches from `from`, including those. Nodes flagged in
// `barred` (may be null) are not entered.
absl::StatusOr<NodeFlags> ReachedFrom(const Graph& graph, const std::vector<NodeId>& from,
                                      const NodeFlags* barred, const StopToken& stop);

// The nodes from which a walk over data edges leads to a node flagged in `to`, including those.
absl::StatusOr<NodeFlags> LeadingTo(const Graph& graph, const NodeFlags& to, const StopToken& stop);

// Extends `leading`, the result of LeadingTo for a set of nodes, to that set plus `more`, walking
// only over new nodes.
absl::Status AddLeadingTo(const Graph& graph, const std::vector<NodeId>& more,
                          const StopToken& stop, NodeFlags* leading);

// A set of nodes that can be cleared in constant time, for many small walks over one graph.
class VisitMarks {
 public:
  explicit VisitMarks(int32_t num_nodes) : mark_(num_nodes, 0) {}
  void Clear() { ++current_; }
  // True if the node was not in the set before.
  bool Insert(NodeId id) {
    if (mark_[id] == current_) return false;
    mark_[id] = current_;
    return true;
  }

 private:
  std::vector<uint32_t> mark_;
  uint32_t current_ = 1;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_REACHABILITY_H_
