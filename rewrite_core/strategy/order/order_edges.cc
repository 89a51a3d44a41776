#include "rewrite_core/strategy/order/order_edges.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/plan/soundness.h"

namespace spillway::core {
namespace {

// At most kMaxForwards operations between an operation and its reader may forward its output
// (Identity, Reshape, Cast).
constexpr int kMaxForwards = 4;

// Properties of one node are found once: a node may have very many outputs, and one reader may read
// very many nodes.
class OrderEdgeFinder {
 public:
  OrderEdgeFinder(const StepFacts& facts, const StepOrder& order, const StopToken& stop)
      : graph_(facts.graph()),
        buffers_(facts.buffers()),
        order_(order),
        soundness_(facts),
        poll_(stop) {
    place_.assign(buffers_.buffers().size(), kNoOrderBuffer);
    for (OrderBuffer i(0); i < order.num_buffers() && !poll_.Tick(); ++i) {
      place_[order.buffers()[i]] = i;
    }
    for (NodeId target : facts.active_nodes().targets) is_target_.insert(target);
  }

  StopPoller* poll() { return &poll_; }

  // Returns the node for which the maker of a buffer should wait; kNoNode if it need not wait.
  NodeId WhomToWaitFor(OrderBuffer buffer) {
    const NodeId node = order_.node(order_.made(buffer));
    if (node != maker_) {  // The buffers of one node follow each other.
      maker_ = node;
      latest_ = LatestBeside(node, order_.made(buffer));
      kept_bytes_ = latest_ == kNoNode ? 0 : KeptBytes(node, order_.made(buffer));
    }
    return order_.bytes(buffer) > kept_bytes_ ? latest_ : kNoNode;
  }

 private:
  // A node's inputs.
  struct Reading {
    // Over any edge, of nodes launched on the GPU: the only one, unless there are several.
    NodeId only = kNoNode;
    bool several = false;
    // Over data edges, the two that are launched last, the later one first.
    NodeId latest[2] = {kNoNode, kNoNode};
  };

  // Returns the latest other input of the node's reader, if the node should wait for it.
  NodeId LatestBeside(NodeId node, Slot made) {
    NodeId last = node;
    NodeId reader = OnlyReader(node);
    for (int i = 0; i < kMaxForwards && reader != kNoNode && ReadsOnly(reader, last); ++i) {
      last = reader;
      reader = OnlyReader(reader);
    }
    if (reader == kNoNode || order_.slot(reader) == kNoSlot || order_.slot(last) == kNoSlot) {
      return kNoNode;
    }
    const Reading reading = ReadingOf(reader);
    const NodeId latest = reading.latest[reading.latest[0] == last ? 1 : 0];
    if (latest == kNoNode || order_.slot(latest) <= made + 1 ||
        order_.slot(latest) <= order_.slot(last) || order_.slot(reader) <= order_.slot(latest) ||
        soundness_.WaitInOrder(latest, node) != EdgeFault::kNone) {
      return kNoNode;
    }
    return latest;
  }

  // Returns the only reader of the node, over data edges; kNoNode if there are others, over any
  // edge, or the node is fetched.
  NodeId OnlyReader(NodeId id) {
    if (is_target_.contains(id)) return kNoNode;
    const auto [known, is_new] = only_reader_.try_emplace(id, kNoNode);
    const Graph::Readers readers = graph_.readers(id);
    if (!is_new || readers.size() == 0) return known->second;
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (readers[i].node != readers[0].node || readers[i].port == kControl || poll_.Tick()) {
        return kNoNode;
      }
    }
    return known->second = readers[0].node;
  }

  // Whether `id` reads nothing on the GPU except outputs of `of`.
  bool ReadsOnly(NodeId id, NodeId of) {
    const Reading reading = ReadingOf(id);
    return !reading.several && (reading.only == kNoNode || reading.only == of);
  }

  Reading ReadingOf(NodeId id) {
    const auto [known, is_new] = readings_.try_emplace(id);
    Reading& reading = known->second;
    if (!is_new) return reading;
    for (Tensor input : graph_.inputs(id)) {
      if (poll_.Tick()) break;
      const NodeId node = input.node;
      if (order_.slot(node) == kNoSlot) continue;
      reading.several = reading.several || (reading.only != kNoNode && reading.only != node);
      reading.only = node;
      auto& [first, second] = reading.latest;
      if (input.is_control() || node == first || node == second) continue;
      if (first == kNoNode || order_.slot(node) > order_.slot(first)) {
        second = std::exchange(first, node);
      } else if (second == kNoNode || order_.slot(node) > order_.slot(second)) {
        second = node;
      }
    }
    return reading;
  }

  // Returns the bytes of inputs that are kept live if the node, of slot `made`, waits.
  int64_t KeptBytes(NodeId node, Slot made) {
    int64_t kept = 0;
    for (Tensor input : graph_.inputs(node)) {
      if (input.is_control() || poll_.Tick()) break;
      const BufferIndex read = buffers_.buffer_of(input);
      if (read == kNoBuffer || place_[read] < 0) continue;
      const auto uses = order_.uses(place_[read]);
      if (!uses.empty() && uses.back().slot == made) {
        kept = SaturatingAdd(kept, order_.bytes(place_[read]));
      }
    }
    return kept;
  }

  const Graph& graph_;
  const Buffers& buffers_;
  const StepOrder& order_;
  const Soundness soundness_;
  StopPoller poll_;
  absl::flat_hash_set<NodeId> is_target_;
  std::vector<OrderBuffer> place_;  // By BufferIndex.
  absl::flat_hash_map<NodeId, NodeId> only_reader_;
  absl::flat_hash_map<NodeId, Reading> readings_;
  // Of the last buffer: its maker, the node that should run before that, and the bytes kept live.
  NodeId maker_ = kNoNode, latest_ = kNoNode;
  int64_t kept_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ControlEdge>> FindOrderEdges(const StepFacts& facts,
                                                        const StepOrder& order, int64_t least_bytes,
                                                        const StopToken& stop) {
  std::vector<ControlEdge> edges;
  OrderEdgeFinder finder(facts, order, stop);
  for (OrderBuffer i(0); i < order.num_buffers(); ++i) {
    if (finder.poll()->Tick()) return stop.status("strategy");
    if (order.bytes(i) < std::max<int64_t>(least_bytes, 1)) continue;
    const NodeId latest = finder.WhomToWaitFor(i);
    if (latest == kNoNode) continue;
    edges.push_back({latest, order.node(order.made(i)), v1::EDGE_KIND_ORDER});
  }
  // A node with several outputs waits once.
  const auto key = [](const ControlEdge& edge) { return std::make_pair(edge.to, edge.from); };
  const auto less = [&](const ControlEdge& a, const ControlEdge& b) { return key(a) < key(b); };
  if (finder.poll()->Tick() || !PolledSort(edges.begin(), edges.end(), less, finder.poll())) {
    return stop.status("strategy");
  }
  edges.erase(
      std::unique(edges.begin(), edges.end(),
                  [&](const ControlEdge& a, const ControlEdge& b) { return key(a) == key(b); }),
      edges.end());
  return edges;
}

}  // namespace spillway::core
