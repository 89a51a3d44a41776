#include "rewrite_core/strategy/order/launch_ranks.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "rewrite_core/graph/topology.h"

namespace spillway::core {

// Ready nodes without a launch come first; of kernels, the one that is launched first.
absl::StatusOr<std::vector<int32_t>> RankByLaunch(const StepFacts& facts, const StepResult& step,
                                                  absl::Span<const ControlEdge> added,
                                                  const StopToken& stop) {
  const Graph& graph = facts.graph();
  const int32_t n = graph.num_nodes();
  StopPoller poll(stop);
  std::vector<int32_t> launched(n, -1);
  for (size_t i = 0; i < step.launch_ahead.order.size(); ++i) {
    if (poll.Tick()) return stop.status("strategy");
    const WorkloadOp& op = step.ops[step.launch_ahead.order[i]];
    if (op.kind == OpKind::kCompute) launched[op.node] = static_cast<int32_t>(i);
  }
  std::vector<ControlEdge> sorted(added.begin(), added.end());
  const auto from_less = [](const ControlEdge& a, const ControlEdge& b) { return a.from < b.from; };
  std::stable_sort(sorted.begin(), sorted.end(), from_less);
  std::vector<int32_t> waiting(n, 0);
  for (const ControlEdge& edge : sorted) ++waiting[edge.to];
  using Ready = std::pair<int32_t, NodeId>;  // By launch, then id.
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  for (NodeId id(0); id < n; ++id) {
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("strategy");
      waiting[id] += !IsBackEdge(graph, input.node, id);
    }
    if (waiting[id] == 0) ready.emplace(launched[id], id);
  }
  std::vector<int32_t> ranks(n, 0);
  int32_t rank = 0;
  while (!ready.empty()) {
    const NodeId id = ready.top().second;
    ready.pop();
    ranks[id] = rank++;
    const auto done = [&](NodeId waiter) {
      if (--waiting[waiter] == 0) ready.emplace(launched[waiter], waiter);
    };
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      if (!IsBackEdge(graph, id, readers[i].node)) done(readers[i].node);
    }
    auto it = std::lower_bound(sorted.begin(), sorted.end(), ControlEdge{id, kNoNode}, from_less);
    for (; it != sorted.end() && it->from == id; ++it) done(it->to);
  }
  if (rank < n) ranks.clear();
  return ranks;
}

}  // namespace spillway::core
