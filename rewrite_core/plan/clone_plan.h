// ClonePlan: nodes that run a second time in a step, so that the memory of their outputs is free in
// between (recomputation, rematerialization). A plain value: strategies make it, apply/ writes it
// into the graph.
//
// A clone has the op, attributes, device and control inputs of its original. Each of its data
// inputs reads the same tensor of the original graph, from the original producer or from a clone of
// it; and so does each input that is moved to a clone.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_CLONE_PLAN_H_
#define SPILLWAY_REWRITE_CORE_PLAN_CLONE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/base/strong_id.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/swap_plan.h"

namespace spillway::core {

// An index in ClonePlan::clones.
using CloneIndex = StrongId<struct CloneIndexTag>;
inline constexpr CloneIndex kNoClone(-1);

struct PlannedClone {
  // A data input that reads a clone of its producer, at the producer's port.
  struct Input {
    int32_t index = 0;
    CloneIndex from = kNoClone;  // An earlier clone.
  };

  NodeId original = kNoNode;
  std::vector<Input> inputs;  // By index; the others read the original producers.
  // It waits for this node, which its original does not wait for: otherwise it would run as early
  // as its original, and TensorFlow would merge the two. kNoNode: none, for a clone that reads
  // another one.
  NodeId trigger = kNoNode;
  // Inputs of original nodes that read it instead of its original, at the same port.
  std::vector<InputPosition> consumers;
  // Updates of a variable that the original reads by reference: they wait for the clone.
  std::vector<NodeId> updates;
};

struct ClonePlan {
  std::vector<PlannedClone> clones;  // In an order in which they may run.
};

// Removes clones that nothing reads, directly or through clones.
void DropUnread(ClonePlan* plan);

// Converts a plan for `from` to one for `to`, which has all the nodes of `from` under the same
// names. Errors: those of `stop`.
absl::StatusOr<ClonePlan> MoveClones(const ClonePlan& plan, const Graph& from, const Graph& to,
                                     const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_CLONE_PLAN_H_
