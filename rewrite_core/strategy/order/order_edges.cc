#include "rewrite_core/strategy/order/order_edges.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "rewrite_core/plan/soundness.h"

namespace spillway::core {
namespace {

// At most kMaxHandedOn operations between an operation and its reader may forward its output
// (Identity, Reshape, Cast).
constexpr int kMaxHandedOn = 4;

class OrderEdgeFinder {
 public:
  OrderEdgeFinder(const StepFacts& facts, const StepOrder& order)
      : graph_(facts.graph()), buffers_(facts.buffers()), order_(order), soundness_(facts) {
    place_.assign(buffers_.buffers().size(), kNoOrderBuffer);
    for (OrderBuffer i(0); i < order.num_buffers(); ++i) place_[order.buffers()[i]] = i;
    for (NodeId target : facts.active_nodes().targets) is_target_.insert(target);
  }

  // Returns the node for which the maker of a buffer should wait; kNoNode if it need not wait.
  NodeId WhomToWaitFor(OrderBuffer buffer, StopPoller* poll) const {
    const NodeId node = order_.node(order_.made(buffer));
    NodeId last = node;
    NodeId reader = OnlyReader(node);
    for (int i = 0; i < kMaxHandedOn && reader != kNoNode && HandsOn(reader, last); ++i) {
      last = reader;
      reader = OnlyReader(reader);
    }
    if (reader == kNoNode || order_.slot(reader) == kNoSlot || order_.slot(last) == kNoSlot) {
      return kNoNode;
    }
    NodeId latest = kNoNode;
    for (Tensor input : graph_.inputs(reader)) {
      if (poll->Tick()) return kNoNode;
      if (input.is_control() || input.node == last || order_.slot(input.node) == kNoSlot) continue;
      if (latest == kNoNode || order_.slot(input.node) > order_.slot(latest)) latest = input.node;
    }
    if (latest == kNoNode || order_.slot(latest) <= order_.made(buffer) + 1 ||
        order_.slot(latest) <= order_.slot(last) || order_.slot(reader) <= order_.slot(latest) ||
        soundness_.WaitInOrder(latest, node) != EdgeFault::kNone) {
      return kNoNode;
    }
    return Gain(buffer, node) > 0 ? latest : kNoNode;
  }

 private:
  // Returns the only reader of the node, over data edges; kNoNode if there are others, over any
  // edge, or the node is fetched.
  NodeId OnlyReader(NodeId id) const {
    if (is_target_.contains(id)) return kNoNode;
    const Graph::Readers readers = graph_.readers(id);
    if (readers.size() == 0) return kNoNode;
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (readers[i].node != readers[0].node || readers[i].port == kControl) return kNoNode;
    }
    return readers[0].node;
  }

  // Whether `id` reads nothing on the GPU except outputs of `of`.
  bool HandsOn(NodeId id, NodeId of) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    return std::all_of(inputs.begin(), inputs.end(), [&](Tensor input) {
      return input.node == of || order_.slot(input.node) == kNoSlot;
    });
  }

  // Returns the bytes freed by waiting, less those of inputs that are kept live for it.
  int64_t Gain(OrderBuffer buffer, NodeId node) const {
    int64_t gain = order_.bytes(buffer);
    for (Tensor input : graph_.inputs(node)) {
      if (input.is_control()) break;
      const BufferIndex read = buffers_.buffer_of(input);
      if (read == kNoBuffer || place_[read] < 0) continue;
      const auto uses = order_.uses(place_[read]);
      if (!uses.empty() && uses.back().slot == order_.made(buffer)) {
        gain -= order_.bytes(place_[read]);
      }
    }
    return gain;
  }

  const Graph& graph_;
  const Buffers& buffers_;
  const StepOrder& order_;
  const Soundness soundness_;
  absl::flat_hash_set<NodeId> is_target_;
  std::vector<OrderBuffer> place_;  // By BufferIndex.
};

}  // namespace

absl::StatusOr<std::vector<ControlEdge>> FindOrderEdges(const StepFacts& facts,
                                                        const StepOrder& order, int64_t least_bytes,
                                                        const StopToken& stop) {
  std::vector<ControlEdge> edges;
  const OrderEdgeFinder finder(facts, order);
  StopPoller poll(stop);
  for (OrderBuffer i(0); i < order.num_buffers(); ++i) {
    if (poll.Tick()) return stop.status("strategy");
    if (order.bytes(i) < std::max<int64_t>(least_bytes, 1)) continue;
    const NodeId latest = finder.WhomToWaitFor(i, &poll);
    if (latest == kNoNode) continue;
    edges.push_back({latest, order.node(order.made(i)), v1::EDGE_KIND_ORDER});
  }
  // A node with several outputs waits once.
  const auto key = [](const ControlEdge& edge) { return std::make_pair(edge.to, edge.from); };
  std::sort(edges.begin(), edges.end(),
            [&](const ControlEdge& a, const ControlEdge& b) { return key(a) < key(b); });
  edges.erase(
      std::unique(edges.begin(), edges.end(),
                  [&](const ControlEdge& a, const ControlEdge& b) { return key(a) == key(b); }),
      edges.end());
  return edges;
}

}  // namespace spillway::core
