#include "rewrite_core/analysis/flow/grappler_noops.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/op_registry.h"

namespace spillway::core {
namespace {

// Whether an op of this type computes its outputs and does nothing else that counts.
bool IsPureOp(absl::string_view op, const OpInfo& info) {
  // SafeToConvertToNoOp's own exceptions, and IsPlaceholder.
  constexpr absl::string_view kKept[] = {"Assert",        "CheckNumerics",         "_Retval",
                                         "_Arg",          "_ParallelConcatUpdate", "TPUExecute",
                                         "TPUCompile",    "ControlTrigger",        "Placeholder",
                                         "PlaceholderV2", "PlaceholderWithDefault"};
  return info.known && !info.is_stateful && !info.outputs.empty() &&
         info.control_flow == ControlFlow::kNone &&
         std::find(std::begin(kKept), std::end(kKept), op) == std::end(kKept) &&
         !absl::StrContains(info.outputs, '&') && !absl::StrContains(op, "Queue") &&
         !absl::StrContains(absl::AsciiStrToLower(op), "inplace");
}

bool IsTrue(const Graph& graph, NodeId id, absl::string_view attr) {
  const auto value = graph.attr(id, attr);
  return value && AttrBool(*value);
}

// Whether the node itself may become a NoOp; its readers are another matter.
bool MayBeNoOp(const Graph& graph, const Shapes& shapes, NodeId id) {
  const absl::string_view op = graph.op(id);
  if (!IsPureOp(op, graph.op_info(id)) || shapes.IsFed(id)) return false;
  if (IsTrue(graph, id, "in_place") || IsTrue(graph, id, "inplace")) return false;
  const absl::Span<const Tensor> inputs = graph.inputs(id);
  for (Tensor input : inputs) {
    if (input.is_control()) break;
    // A legacy op that takes a reference may write; one that only reads is rare.
    if (shapes.type(input).is_ref) return false;
  }
  if (op != "Identity" && op != "IdentityN") return true;
  return !inputs.empty() && !inputs[0].is_control() && !KeepsIdentity(graph, shapes, inputs[0]);
}

}  // namespace

bool KeepsIdentity(const Graph& graph, const Shapes& shapes, Tensor read) {
  constexpr int kMaxHops = 16;  // Identities in a row are few.
  for (int hop = 0; hop < kMaxHops; ++hop) {
    const absl::string_view op = graph.op(read.node);
    if (shapes.type(read).is_ref || IsVariableOp(op) || op == "ReadVariableOp" || op == "_Recv" ||
        graph.op_info(read.node).control_flow == ControlFlow::kSwitch) {
      return true;
    }
    const absl::Span<const Tensor> inputs = graph.inputs(read.node);
    if (op != "Identity" || inputs.empty() || inputs[0].is_control()) return false;
    read = inputs[0];
  }
  return false;
}

absl::StatusOr<NodeFlags> FindGrapplerNoOps(const Graph& graph, const Topology& topology,
                                            const Shapes& shapes, const v1::Step& step,
                                            const NodeFlags& needed, const NodeFlags& constants,
                                            const std::vector<NodeId>& targets,
                                            const StopToken& stop) {
  NodeFlags kept(graph.num_nodes(), false), noops(graph.num_nodes(), false);
  if (step.grappler() == v1::GRAPPLER_AS_IS) return noops;
  for (NodeId target : targets) kept[target] = true;
  StopPoller poll(stop);
  // Readers first. Those across the back edge of a loop are Merges, which stay.
  for (auto at = topology.order().rbegin(); at != topology.order().rend(); ++at) {
    const NodeId id = *at;
    if (poll.Tick()) return stop.status("active nodes");
    if (!needed[id] || kept[id]) continue;
    bool is_read = false;
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size() && !is_read; ++i) {
      if (poll.Tick()) return stop.status("active nodes");
      const NodeId reader = readers[i].node;
      is_read =
          readers[i].port != kControl && needed[reader] && !noops[reader] && !constants[reader];
    }
    noops[id] = !is_read && MayBeNoOp(graph, shapes, id);
  }
  return noops;
}

}  // namespace spillway::core
