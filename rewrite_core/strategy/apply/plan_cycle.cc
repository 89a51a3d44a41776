#include "rewrite_core/strategy/apply/plan_cycle.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {
namespace {

// The graph with a plan. The graph's nodes are followed by a node for each swap-in, and one for
// each loop, which comes after everything in it. A swap-out waits only for its producer, so its
// edges are treated as the producer's.
class PlannedGraph {
 public:
  PlannedGraph(const Graph& graph, const StopToken& stop)
      : graph_(graph), stop_(stop), poll_(stop), size_(graph.num_nodes()) {}

  // Call before Add.
  void AddLoops(const ControlFlowAnalysis& control_flow) {
    absl::flat_hash_map<FrameId, NodeId> ends;
    const auto end_of = [&](FrameId frame) {
      const auto [found, is_new] = ends.try_emplace(frame, size_);
      size_ += is_new;
      return found->second;
    };
    const auto is_loop = [](FrameId frame) {
      return frame != kRootFrame && frame != kUnknownFrame;
    };
    for (NodeId id(0); id < graph_.num_nodes() && !poll_.Tick(); ++id) {
      const FrameId in = control_flow.input_frame(id), out = control_flow.output_frame(id);
      if (is_loop(out)) AddEdge(id, end_of(out));
      const bool leaves = graph_.op_info(id).control_flow == ControlFlow::kExit;
      if (leaves && is_loop(in)) AddEdge(end_of(in), id);
    }
  }

  absl::Status Add(const SwapPlan& plan) {
    for (const PlannedSwap& swap : plan.swaps) {
      if (poll_.stopped()) break;
      const NodeId producer = swap.tensor.node;
      for (const PlannedSwapIn& planned : swap.swap_ins) {
        const NodeId swap_in(size_++);
        AddEdge(producer, swap_in);
        for (NodeId trigger : planned.triggers) AddEdge(trigger, swap_in);
        for (const InputPosition& consumer : planned.consumers) AddEdge(swap_in, consumer.node);
        for (NodeId node : planned.paces) AddEdge(swap_in, node);
      }
      for (NodeId node : swap.deadlines) AddEdge(producer, node);
    }
    for (const ControlEdge& control : plan.controls) AddEdge(control.from, control.to);
    if (poll_.stopped()) return stop_.status("strategy");
    const auto by_end = [](const Edge& a, const Edge& b) {
      return std::tie(a.to, a.from) < std::tie(b.to, b.from);
    };
    into_ = edges_;
    const auto by_start = [](const Edge& a, const Edge& b) {
      return std::tie(a.from, a.to) < std::tie(b.from, b.to);
    };
    const bool sorted = PolledSort(edges_.begin(), edges_.end(), by_start, &poll_) &&
                        PolledSort(into_.begin(), into_.end(), by_end, &poll_);
    return sorted ? absl::OkStatus() : stop_.status("strategy");
  }

  absl::StatusOr<NodeId> FindCycle() {
    std::vector<int32_t> waiting(size_, 0);
    for (const Edge& edge : edges_) {
      if (poll_.Tick()) return stop_.status("strategy");
      ++waiting[edge.to];
    }
    std::vector<NodeId> order;
    for (NodeId id(0); id < size_; ++id) {
      if (id < graph_.num_nodes()) {
        for (Tensor input : graph_.inputs(id)) {
          if (poll_.Tick()) return stop_.status("strategy");
          waiting[id] += !IsBackEdge(graph_, input.node, id);
        }
      }
      if (poll_.Tick()) return stop_.status("strategy");
      if (waiting[id] == 0) order.push_back(id);
    }
    const auto arrive = [&](NodeId id) {
      if (--waiting[id] == 0) order.push_back(id);
    };
    for (size_t done = 0; done < order.size(); ++done) {
      const NodeId id = order[done];
      if (id < graph_.num_nodes()) {
        const Graph::Readers readers = graph_.readers(id);
        for (uint32_t i = 0; i < readers.size(); ++i) {
          if (poll_.Tick()) return stop_.status("strategy");
          if (!IsBackEdge(graph_, id, readers[i].node)) arrive(readers[i].node);
        }
      }
      for (auto edge = FirstFrom(id); edge != edges_.end() && edge->from == id; ++edge) {
        if (poll_.Tick()) return stop_.status("strategy");
        arrive(edge->to);
      }
      if (poll_.Tick()) return stop_.status("strategy");
    }
    if (order.size() == static_cast<size_t>(size_)) return kNoNode;
    return NodeOnCycle(waiting);
  }

 private:
  struct Edge {
    NodeId from, to;
  };

  void AddEdge(NodeId from, NodeId to) {
    if (!poll_.Tick()) edges_.push_back({from, to});
  }

  std::vector<Edge>::const_iterator FirstFrom(NodeId id) const {
    return std::lower_bound(edges_.begin(), edges_.end(), id,
                            [](const Edge& edge, NodeId from) { return edge.from < from; });
  }

  // Nodes that still wait are on a cycle or after one: walking backwards among them never ends, and
  // so meets a node twice.
  absl::StatusOr<NodeId> NodeOnCycle(const std::vector<int32_t>& waiting) {
    NodeId node(0);
    while (waiting[node] == 0) ++node;
    std::vector<bool> seen(size_, false);
    // A swap-in has no name yet, and a cycle has other nodes.
    while (!seen[node] || node >= graph_.num_nodes()) {
      const bool is_new = node >= graph_.num_nodes();
      if (poll_.Tick(1 + (is_new ? 0 : graph_.inputs(node).size()))) {
        return stop_.status("strategy");
      }
      seen[node] = true;
      node = WaitsFor(node, waiting);
    }
    return node;
  }

  NodeId WaitsFor(NodeId node, const std::vector<int32_t>& waiting) const {
    if (node < graph_.num_nodes()) {
      for (Tensor input : graph_.inputs(node)) {
        if (waiting[input.node] > 0 && !IsBackEdge(graph_, input.node, node)) return input.node;
      }
    }
    auto edge = std::lower_bound(into_.begin(), into_.end(), node,
                                 [](const Edge& into, NodeId to) { return into.to < to; });
    while (waiting[edge->from] == 0) ++edge;
    return edge->from;
  }

  const Graph& graph_;
  const StopToken& stop_;
  StopPoller poll_;
  int32_t size_;
  std::vector<Edge> edges_;  // By start.
  std::vector<Edge> into_;   // The same by end.
};

}  // namespace

absl::StatusOr<NodeId> FindPlanCycle(const Graph& graph, const ControlFlowAnalysis& control_flow,
                                     const SwapPlan& plan, const StopToken& stop) {
  const auto find = [&](const SwapPlan& with, bool loops) -> absl::StatusOr<NodeId> {
    PlannedGraph planned(graph, stop);
    if (loops) planned.AddLoops(control_flow);
    if (absl::Status s = planned.Add(with); !s.ok()) return s;
    return planned.FindCycle();
  };
  if (!graph.has_control_flow()) return find(plan, /*loops=*/false);
  auto found = find(plan, /*loops=*/true);
  if (!found.ok() || *found == kNoNode) return found;
  // A graph whose own loops break the rule is checked without it.
  const auto own = find(SwapPlan(), /*loops=*/true);
  if (!own.ok()) return own;
  return *own == kNoNode ? found : find(plan, /*loops=*/false);
}

}  // namespace spillway::core
