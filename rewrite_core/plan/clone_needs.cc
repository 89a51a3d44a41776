#include "rewrite_core/plan/clone_needs.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace spillway::core {

absl::StatusOr<NodeFlags> FindNeeded(const StepFacts& facts, const ClonePlan& plan,
                                     const StopToken& stop) {
  const Graph& graph = facts.graph();
  const int32_t num_nodes = graph.num_nodes();
  StopPoller poll(stop);
  absl::flat_hash_map<std::pair<NodeId, int32_t>, NodeId> moved;  // By input.
  NodeFlags has_moved(num_nodes, false);
  for (size_t i = 0; i < plan.clones.size(); ++i) {
    for (const InputPosition& consumer : plan.clones[i].consumers) {
      if (poll.Tick()) return stop.status("strategy");
      moved[{consumer.node, consumer.index}] = NodeId(num_nodes + i);
      has_moved[consumer.node] = true;
    }
  }
  NodeFlags needed(num_nodes + plan.clones.size(), false);
  std::vector<NodeId> todo;
  const auto visit = [&](NodeId id) {
    if (needed[id]) return;
    needed[id] = true;
    todo.push_back(id);
  };
  for (NodeId target : facts.active_nodes().targets) visit(target);
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    if (id < num_nodes && facts.shapes().IsFed(id)) continue;
    const PlannedClone* clone = id < num_nodes ? nullptr : &plan.clones[id - num_nodes];
    const absl::Span<const Tensor> inputs = graph.inputs(clone != nullptr ? clone->original : id);
    size_t next = 0;
    for (int32_t k = 0; k < static_cast<int32_t>(inputs.size()); ++k) {
      if (poll.Tick()) return stop.status("strategy");
      NodeId from = inputs[k].node;
      if (clone == nullptr && has_moved[id]) {
        if (const auto found = moved.find({id, k}); found != moved.end()) from = found->second;
      } else if (clone != nullptr && next < clone->inputs.size() &&
                 clone->inputs[next].index == k) {
        from = NodeId(num_nodes + clone->inputs[next++].from);
      }
      visit(from);
    }
  }
  return needed;
}

ExtraWait FindExtraWait(const Graph& graph, const ClonePlan& plan, const NodeFlags& needed) {
  for (size_t i = 0; i < plan.clones.size(); ++i) {
    const PlannedClone& clone = plan.clones[i];
    if (needed[graph.num_nodes() + i]) {
      if (clone.trigger != kNoNode && !needed[clone.trigger])
        return {clone.original, clone.trigger};
      continue;
    }
    for (NodeId update : clone.updates) {
      if (needed[update]) return {update, clone.original};
    }
  }
  return {};
}

}  // namespace spillway::core
