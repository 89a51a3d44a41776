#include "rewrite_core/plan/soundness.h"

namespace spillway::core {

absl::string_view EdgeFaultText(EdgeFault fault) {
  switch (fault) {
    case EdgeFault::kNone:
      return "the edge is sound";
    case EdgeFault::kFed:
      return "one of the two nodes is fed";
    case EdgeFault::kCycle:
      return "the edge may close a cycle";
    case EdgeFault::kFrame:
      return "the two nodes are in different loop frames";
    case EdgeFault::kDeadness:
      return "the node waited for may be dead while the other is not";
    case EdgeFault::kSwitch:
      return "the node waited for is one side of a Switch";
    case EdgeFault::kExtra:
      return "the step runs only the node that would wait, and the edge would make it run the "
             "other, too";
  }
  return "";
}

EdgeFault Soundness::Wait(NodeId from, NodeId to) const {
  // The cheapest rule first: searches for triggers check very often.
  return IsBelow(from, to) ? WaitAnywhere(from, to) : EdgeFault::kCycle;
}

EdgeFault Soundness::WaitInOrder(NodeId from, NodeId to) const {
  return IsSwitch(from) ? EdgeFault::kSwitch : WaitAnywhere(from, to);
}

EdgeFault Soundness::WaitForSwapOut(NodeId producer, NodeId to) const {
  return IsSwitch(producer) ? EdgeFault::kSwitch : Wait(producer, to);
}

EdgeFault Soundness::WaitForSwapIn(NodeId producer, absl::Span<const NodeId> triggers,
                                   NodeId to) const {
  for (NodeId trigger : triggers) {
    const EdgeFault fault = Wait(trigger, to);
    if (fault != EdgeFault::kNone) return fault;
  }
  return WaitForSwapOut(producer, to);
}

EdgeFault Soundness::WaitAnywhere(NodeId from, NodeId to) const {
  const NodeFlags& needed = facts_.active_nodes().needed;
  if (needed[to] && !needed[from]) return EdgeFault::kExtra;
  const ControlFlowAnalysis& control_flow = facts_.control_flow();
  if (!control_flow.MayControl(from, to)) {
    const FrameId frame = control_flow.output_frame(from);
    return frame != kUnknownFrame && frame == control_flow.input_frame(to) ? EdgeFault::kDeadness
                                                                           : EdgeFault::kFrame;
  }
  const Shapes& shapes = facts_.shapes();
  return shapes.IsFed(from) || shapes.IsFed(to) ? EdgeFault::kFed : EdgeFault::kNone;
}

}  // namespace spillway::core
