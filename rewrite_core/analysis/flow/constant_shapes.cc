#include "rewrite_core/analysis/flow/constant_shapes.h"

#include <algorithm>

#include "absl/types/span.h"

namespace spillway::core {
namespace {

bool IsKnown(ShapeView shape) {
  return shape.known_rank &&
         std::find(shape.dims.begin(), shape.dims.end(), kUnknownDim) == shape.dims.end();
}

// Flags the nodes whose shapes may depend on feeds, or on the request.
NodeFlags FindOpen(const Graph& graph, const Topology& topology, const Shapes& shapes,
                   StopPoller* poll) {
  NodeFlags open(graph.num_nodes(), false);
  for (NodeId id : shapes.requested()) open[id] = true;
  for (NodeId id : topology.order()) {
    const absl::string_view op = graph.op(id);
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    if (poll->Tick(1 + static_cast<int64_t>(inputs.size()))) break;
    open[id] = open[id] || op == "Placeholder" || op == "PlaceholderV2" || shapes.IsFed(id);
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control() && !open[id]; ++i) {
      open[id] = open[inputs[i].node];
    }
  }
  return open;
}

}  // namespace

absl::StatusOr<NodeFlags> FindConstantShapes(const Graph& graph, const Topology& topology,
                                             const Shapes& shapes, const v1::Step& step,
                                             const StopToken& stop) {
  NodeFlags constants(graph.num_nodes(), false);
  if (step.grappler() == v1::GRAPPLER_AS_IS) return constants;
  StopPoller poll(stop);
  const NodeFlags open = FindOpen(graph, topology, shapes, &poll);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    const absl::string_view op = graph.op(id);
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    if (poll.Tick(1 + static_cast<int64_t>(inputs.size()))) return stop.status("active nodes");
    if (op != "Shape" && op != "ShapeN" && op != "Size" && op != "Rank") continue;
    if (shapes.IsFed(id)) continue;
    bool is_known = true;
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control() && is_known; ++i) {
      is_known = IsKnown(shapes.shape(inputs[i])) && !shapes.type(inputs[i]).is_ref &&
                 !open[inputs[i].node];
    }
    constants[id] = is_known;
  }
  return constants;
}

}  // namespace spillway::core
