// TensorFlow's dataflow control flow: in which loop frame a node runs, and when it is dead.
//
// Frames (Enter, Exit, NextIteration): an added edge must not lead from one frame to another.
// Deadness (Switch, Merge): a node is dead if it depends, directly or not, on the side of a Switch
// that is not taken. A control edge from a dead node kills its reader, so an added edge u -> v is
// sound only if v is dead whenever u is.
//
// Each node has a set of conditions ("this predicate takes this side", "that Merge is alive") that
// all hold exactly when it is alive. Sets are shared, so a graph without control flow costs
// nothing. Functional control flow (If, While) needs none of this: seen from outside it is one
// node.
//
// Thread safety: immutable after Build.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONTROL_FLOW_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONTROL_FLOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/base/strong_id.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

// A loop frame. The root frame holds the nodes outside all loops. kUnknownFrame: inputs from
// several frames, or an Enter without a name; TensorFlow would refuse to run such a node.
using FrameId = StrongId<struct FrameIdTag>;
inline constexpr FrameId kRootFrame(0);
inline constexpr FrameId kUnknownFrame(-1);

class ControlFlowAnalysis {
 public:
  static absl::StatusOr<ControlFlowAnalysis> Build(const Graph& graph, const Topology& topology,
                                                   const StopToken& stop);

  // The frame in which the node reads its inputs, and the one in which its outputs are read. They
  // differ only for Enter and Exit.
  FrameId input_frame(NodeId id) const { return trivial_ ? kRootFrame : input_frame_[id]; }
  FrameId output_frame(NodeId id) const { return trivial_ ? kRootFrame : output_frame_[id]; }

  // Whether `v` is certainly dead whenever `u` is (in one iteration of one frame). May return false
  // although it is true, never the reverse.
  bool DeadWhenever(NodeId v, NodeId u) const;

  // Whether a control edge u -> v would be sound: both in one known frame, and no new deadness.
  bool MayControl(NodeId u, NodeId v) const {
    return trivial_ || (output_frame_[u] != kUnknownFrame && output_frame_[u] == input_frame_[v] &&
                        DeadWhenever(v, u));
  }

 private:
  friend class ControlFlowBuilder;

  bool trivial_ = true;  // No control flow in the graph.
  std::vector<FrameId> input_frame_, output_frame_;
  // Per node: which of sets_ holds when it is alive. Set 0 is empty: always alive.
  std::vector<int32_t> alive_;
  std::vector<std::vector<int32_t>> sets_;  // Sorted condition ids.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_CONTROL_FLOW_H_
