// State groups: a variable, its optimizer slots, and all nodes that hold a reference or handle of
// one of them (reads, updates, initializers, checkpoints). TensorFlow's placer keeps nodes
// that a reference or handle connects on one device (colocation_graph.cc), so a group moves to the
// host whole or not at all. Its *cone* moves with it: elementwise nodes between a gradient and an
// update, of which the host makes the same bits as the GPU.
//
// A moved node keeps its name: it gets the device of the host, and loses colocations (`_class`)
// with nodes that stay, which the placer would rank above the device. All others keep their
// devices.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_STATE_GROUPS_H_
#define SPILLWAY_REWRITE_CORE_PLAN_STATE_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_edit.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

struct StateGroup {
  std::vector<NodeId> variables;  // In file order, like the other lists.
  std::vector<NodeId> holders;    // The other nodes of the group.
  std::vector<NodeId> updates;    // Of the holders, those that write in the step.
  int64_t bytes = 0;              // Of the variables on the GPU.
  GpuIndex gpu{0};
  // UNSPECIFIED: it may move. Otherwise why not, and the node that is in the way.
  v1::StateKept kept = v1::STATE_KEPT_UNSPECIFIED;
  NodeId in_the_way = kNoNode;
};

class StateGroups {
 public:
  // The groups with a variable on a GPU that the step updates, in order of their first variables.
  // Linear in the graph, but for groups of reference variables, whose readers are looked at once
  // for 64 updates. Errors: those of the facts and of `stop`. `facts` must outlive the result.
  static absl::StatusOr<StateGroups> Find(const StepFacts& facts, const StopToken& stop);

  const std::vector<StateGroup>& groups() const { return groups_; }

  // The nodes that move with these groups (indices of groups(), each once), in file order: their
  // own and the cone. Linear in the graph. Errors: those of `stop`.
  absl::StatusOr<std::vector<NodeId>> NodesOf(absl::Span<const size_t> chosen,
                                              const StopToken& stop) const;

 private:
  explicit StateGroups(const StepFacts& facts) : facts_(&facts) {}

  const StepFacts* facts_;
  std::vector<StateGroup> groups_;
};

// The state that a plan moves to the host.
struct OffloadPlan {
  std::vector<StateGroup> groups;
  std::vector<NodeId> nodes;     // All that move, in file order.
  std::vector<StateGroup> kept;  // The groups that cannot move; empty in a plan that was saved.
  int64_t state_bytes = 0;       // Of all groups of the step.

  bool empty() const { return groups.empty(); }
};

// Whether TensorFlow keeps a node of this op on the device of the variable whose reference it
// reads.
bool TakesReference(absl::string_view op, const OpInfo& info);
// Whether a node of this op may be in a cone: without state, and elementwise or a reshape.
bool MayBeInCone(absl::string_view op);
// The node of a colocation (an item of `_class`); empty if it is none.
absl::string_view ColocatedWith(absl::string_view item);

// Collects the edits that move `nodes` to the host. Errors: those of `stop`.
absl::Status WriteMoves(const Graph& graph, absl::Span<const NodeId> nodes, const StopToken& stop,
                        GraphEdit* edit);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_STATE_GROUPS_H_
