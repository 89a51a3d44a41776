#include "rewrite_core/strategy/order/held_products.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "rewrite_core/graph/attr_value.h"

namespace spillway::core {
namespace {

enum class Family : uint8_t { kNone, kProduct, kSum };

Family FamilyOf(absl::string_view op) {
  if (op == "Mul" || op == "Div" || op == "RealDiv") return Family::kProduct;
  if (op == "Add" || op == "AddV2" || op == "Sub") return Family::kSum;
  return Family::kNone;
}

bool HasTwoInputs(absl::Span<const Tensor> inputs) {
  return inputs.size() >= 2 && !inputs[1].is_control() &&
         (inputs.size() == 2 || inputs[2].is_control());
}

// The only node that reads data of `id`, once; kNoNode if there is none, or several.
NodeId OnlyReader(const Graph& graph, NodeId id, StopPoller* poll) {
  const Graph::Readers readers = graph.readers(id);
  NodeId only = kNoNode;
  for (uint32_t i = 0; i < readers.size(); ++i) {
    if (readers[i].port == kControl) continue;
    if (only != kNoNode || poll->Tick()) return kNoNode;
    only = readers[i].node;
  }
  return only;
}

}  // namespace

absl::StatusOr<std::vector<ControlEdge>> HoldProducts(const StepFacts& facts,
                                                      const StepOrder& order,
                                                      const StopToken& stop) {
  std::vector<ControlEdge> edges;
  if (facts.step().grappler() == v1::GRAPPLER_AS_IS) return edges;
  const Graph& graph = facts.graph();
  const std::vector<NodeId>& targets = facts.active_nodes().targets;
  const absl::flat_hash_set<NodeId> fetched(targets.begin(), targets.end());
  const auto is_constant = [&](Tensor input) { return graph.op(input.node) == "Const"; };
  StopPoller poll(stop);
  for (Slot slot(0); slot < order.num_slots(); ++slot) {
    if (poll.Tick()) return stop.status("strategy");
    const NodeId inner = order.node(slot);
    const Family family = FamilyOf(graph.op(inner));
    const absl::Span<const Tensor> inputs = graph.inputs(inner);
    if (family == Family::kNone || !HasTwoInputs(inputs) || fetched.contains(inner)) continue;
    const auto type = graph.attr(inner, "T");
    const DataType dtype = type ? AttrType(*type) : kDtInvalid;
    if (dtype == kDtHalf || dtype == kDtBfloat16) continue;
    const NodeId outer = OnlyReader(graph, inner, &poll);
    if (outer == kNoNode || FamilyOf(graph.op(outer)) != family) continue;
    const absl::Span<const Tensor> read = graph.inputs(outer);
    if (!HasTwoInputs(read) || !is_constant(read[read[0].node == inner ? 1 : 0])) continue;
    if (is_constant(inputs[0]) || is_constant(inputs[1])) continue;
    const NodeId x = inputs[0].node;
    if (order.slot(inputs[1].node) >= order.slot(x)) continue;
    NodeId latest = kNoNode;
    for (Tensor of_x : graph.inputs(x)) {
      if (poll.Tick()) return stop.status("strategy");
      if (of_x.is_control() || order.slot(of_x.node) == kNoSlot) continue;
      if (latest == kNoNode || order.slot(of_x.node) > order.slot(latest)) latest = of_x.node;
    }
    const auto waits_for = [&](Tensor input) { return input.node == latest; };
    if (latest == kNoNode || std::any_of(inputs.begin(), inputs.end(), waits_for)) continue;
    edges.push_back({latest, inner, v1::EDGE_KIND_SERIALIZATION});
  }
  return edges;
}

}  // namespace spillway::core
