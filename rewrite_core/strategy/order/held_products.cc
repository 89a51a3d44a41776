#include "rewrite_core/strategy/order/held_products.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {
namespace {

// How many slots before a product are searched for a gradient. (In gradients of attention, GELU and
// batch norm, the gradient of a weight or a bias is among the last 8.)
constexpr int32_t kWindow = 64;
// A product that waits for more nodes than this in that window is left alone.
constexpr size_t kMaxBefore = 1024;

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

class ProductHolder {
 public:
  ProductHolder(const StepFacts& facts, const Needs& needs, const StepOrder& order,
                absl::Span<const int32_t> ranks, const StopToken& stop)
      : graph_(facts.graph()),
        active_(facts.active_nodes()),
        buffers_(facts.buffers()),
        gradients_(facts.backward_part().ops),
        needs_(needs),
        order_(order),
        ranks_(ranks),
        soundness_(facts),
        fetched_(active_.targets.begin(), active_.targets.end()),
        before_(graph_.num_nodes()),
        poll_(stop) {}

  StopPoller* poll() { return &poll_; }

  // Whether constants are moved into the node, so that it would run before its slot.
  bool RunsEarly(Slot slot) {
    const NodeId inner = order_.node(slot);
    const Family family = FamilyOf(graph_.op(inner));
    const absl::Span<const Tensor> inputs = graph_.inputs(inner);
    if (family == Family::kNone || !HasTwoInputs(inputs) || fetched_.contains(inner)) return false;
    if (soundness_.IsConstant(inputs[0].node) || soundness_.IsConstant(inputs[1].node)) {
      return false;
    }
    const auto type = graph_.attr(inner, "T");
    const DataType dtype = type ? AttrType(*type) : kDtInvalid;
    if (dtype == kDtHalf || dtype == kDtBfloat16) return false;
    const NodeId outer = OnlyReader(inner);
    if (outer == kNoNode || FamilyOf(graph_.op(outer)) != family) return false;
    const absl::Span<const Tensor> read = graph_.inputs(outer);
    return HasTwoInputs(read) && soundness_.IsConstant(read[read[0].node == inner ? 1 : 0].node) &&
           order_.slot(inputs[1].node) < order_.slot(inputs[0].node);
  }

  // The gradient that the node of a slot may wait for, or kNoNode.
  NodeId WhomToWaitFor(Slot slot) {
    const NodeId inner = order_.node(slot);
    const NodeId y = graph_.inputs(inner)[1].node;
    const Slot first = Slot(std::max(order_.slot(y) + 1, slot - kWindow));
    if (!FindBefore(inner, first)) return kNoNode;
    for (Slot other(slot - 1); other >= first; --other) {
      const NodeId from = order_.node(other);
      if (poll_.Tick()) return kNoNode;
      if (!gradients_[from] || !buffers_.LaunchesKernel(from) || !active_.Computes(from) ||
          ranks_[from] >= ranks_[inner] || !before_.Insert(from) || !needs_.MayWait(inner, from) ||
          soundness_.WaitInOrder(from, inner) != EdgeFault::kNone) {
        continue;
      }
      return from;
    }
    return kNoNode;
  }

 private:
  // The only node that reads data of `id` in the step; kNoNode if none or several do.
  NodeId OnlyReader(NodeId id) {
    const Graph::Readers readers = graph_.readers(id);
    NodeId only = kNoNode;
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll_.Tick()) return kNoNode;
      if (readers[i].port == kControl || !active_.Computes(readers[i].node)) continue;
      if (only != kNoNode) return kNoNode;
      only = readers[i].node;
    }
    return only;
  }

  // Marks the nodes that the node waits for, back to slot `first`. Returns false if too many.
  bool FindBefore(NodeId id, Slot first) {
    before_.Clear();
    stack_ = {id};
    for (size_t found = 0; !stack_.empty();) {
      const NodeId node = stack_.back();
      stack_.pop_back();
      for (Tensor input : graph_.inputs(node)) {
        if (poll_.Tick()) return false;
        const Slot slot = order_.slot(input.node);
        if ((slot != kNoSlot && slot < first) || !before_.Insert(input.node)) continue;
        if (++found > kMaxBefore) return false;
        stack_.push_back(input.node);
      }
    }
    return true;
  }

  const Graph& graph_;
  const ActiveNodes& active_;
  const Buffers& buffers_;
  const NodeFlags& gradients_;
  const Needs& needs_;
  const StepOrder& order_;
  const absl::Span<const int32_t> ranks_;
  const Soundness soundness_;
  const absl::flat_hash_set<NodeId> fetched_;
  VisitMarks before_;
  std::vector<NodeId> stack_;
  StopPoller poll_;
};

}  // namespace

absl::StatusOr<std::vector<ControlEdge>> HoldProducts(const StepFacts& facts, const Needs& needs,
                                                      absl::Span<const int32_t> ranks,
                                                      const StepResult& step, GpuIndex gpu,
                                                      const StopToken& stop) {
  std::vector<ControlEdge> edges;
  if (facts.step().grappler() == v1::GRAPPLER_AS_IS || ranks.empty()) return edges;
  absl::Status status = facts.Compute({Fact::kControlFlow, Fact::kBackwardPart}, stop);
  if (!status.ok()) return status;
  auto order = StepOrder::Create(facts, gpu, step, stop);
  if (!order.ok()) return order.status();
  ProductHolder holder(facts, needs, *order, ranks, stop);
  for (Slot slot(0); slot < order->num_slots(); ++slot) {
    if (holder.poll()->Tick()) return stop.status("strategy");
    if (!holder.RunsEarly(slot)) continue;
    const NodeId from = holder.WhomToWaitFor(slot);
    if (from != kNoNode) edges.push_back({from, order->node(slot), v1::EDGE_KIND_SERIALIZATION});
  }
  return edges;
}

}  // namespace spillway::core
