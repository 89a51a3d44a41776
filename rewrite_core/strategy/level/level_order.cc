#include "rewrite_core/strategy/level/level_order.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "rewrite_core/base/polled_sort.h"

namespace spillway::core {
namespace {

constexpr char kWhileScope[] = "while/";

// The role of an op in the levels, by its type.
enum class Part : uint8_t { kOther, kEnter, kMerge, kSwitch, kExit, kNextIteration, kLoopCond };

Part PartOf(absl::string_view op) {
  if (op == "Enter") return Part::kEnter;
  if (op == "Merge") return Part::kMerge;
  if (op == "Switch") return Part::kSwitch;
  if (op == "Exit") return Part::kExit;
  if (op == "NextIteration") return Part::kNextIteration;
  if (op == "LoopCond") return Part::kLoopCond;
  return Part::kOther;
}

class Builder {
 public:
  Builder(const Graph& graph, NodeFlags inside, absl::Span<const ControlEdge> added)
      : graph_(graph), added_(added.begin(), added.end()), inside_(std::move(inside)) {
    for (int32_t op = 0; op < graph.num_ops(); ++op) parts_.push_back(PartOf(graph.op_name(op)));
  }

  // Whether the levels are just the topological ones.
  bool is_plain() const {
    return !graph_.has_control_flow() && added_.empty() &&
           std::find(inside_.begin(), inside_.end(), true) == inside_.end();
  }

  absl::Status Run(const StopToken& stop, std::vector<int32_t>* level, int32_t* num_levels) {
    StopPoller poll(stop);
    const auto by_from = [](const ControlEdge& a, const ControlEdge& b) {
      return std::make_pair(a.from, a.to) < std::make_pair(b.from, b.to);
    };
    if (!PolledSort(added_.begin(), added_.end(), by_from, &poll)) return stop.status("analysis");
    const int32_t n = graph_.num_nodes();
    std::vector<int32_t> waiting(n, 0);
    std::vector<NodeId> now, next;
    for (NodeId id(0); id < n; ++id) {
      if (!TakesPart(id)) continue;
      for (Tensor input : graph_.inputs(id)) {
        if (poll.Tick()) return stop.status("analysis");
        waiting[id] += Counts(input.node, id);
      }
    }
    for (const ControlEdge& edge : added_) ++waiting[edge.to];
    for (NodeId id(0); id < n; ++id) {
      if (waiting[id] == 0 && TakesPart(id)) now.push_back(id);
    }
    level->assign(n, kNoLevel);
    for (; !now.empty(); ++*num_levels, now.swap(next)) {
      next.clear();
      const auto done = [&](NodeId id) {
        if (--waiting[id] == 0) next.push_back(id);
      };
      for (NodeId id : now) {
        (*level)[id] = *num_levels;
        const Graph::Readers readers = graph_.readers(id);
        for (uint32_t i = 0; i < readers.size(); ++i) {
          if (poll.Tick()) return stop.status("analysis");
          const NodeId reader = readers[i].node;
          if (TakesPart(reader) && Counts(id, reader)) done(reader);
        }
        const auto less = [](const ControlEdge& edge, NodeId from) { return edge.from < from; };
        auto it = std::lower_bound(added_.begin(), added_.end(), id, less);
        for (; it != added_.end() && it->from == id; ++it) {
          if (TakesPart(it->to)) done(it->to);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  Part part(NodeId id) const { return parts_[graph_.op_id(id)]; }

  bool TakesPart(NodeId id) const {
    if (!inside_[id]) return true;
    switch (part(id)) {
      case Part::kEnter:
      case Part::kMerge:
      case Part::kSwitch:
      case Part::kExit:
        return true;
      default:
        return false;
    }
  }

  // Whether `to`, which takes part, waits for this input.
  bool Counts(NodeId from, NodeId to) const {
    if (!inside_[to]) return true;
    return !(part(to) == Part::kMerge && part(from) == Part::kNextIteration) &&
           !(part(to) == Part::kSwitch && part(from) == Part::kLoopCond);
  }

  const Graph& graph_;
  std::vector<ControlEdge> added_;
  std::vector<Part> parts_;  // By Graph::op_id.
  const NodeFlags inside_;
};

}  // namespace

absl::StatusOr<NodeFlags> FindInsideLoops(const Graph& graph,
                                          const ControlFlowAnalysis& control_flow,
                                          const StopToken& stop) {
  NodeFlags inside(graph.num_nodes(), false);
  absl::flat_hash_set<FrameId> named = {kRootFrame};
  // The frame that the op is in, enters or leaves.
  const auto frame = [&](NodeId id) {
    const FrameId in = control_flow.input_frame(id);
    return in != kRootFrame ? in : control_flow.output_frame(id);
  };
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    inside[id] = absl::StrContains(graph.name(id), kWhileScope);
    if (inside[id]) named.insert(frame(id));
  }
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    inside[id] = inside[id] || !named.contains(frame(id));
  }
  return inside;
}

absl::StatusOr<LevelOrder> LevelOrder::Build(const Graph& graph, const Topology& topology,
                                             const ControlFlowAnalysis& control_flow,
                                             absl::Span<const ControlEdge> added,
                                             const StopToken& stop) {
  auto inside = FindInsideLoops(graph, control_flow, stop);
  if (!inside.ok()) return inside.status();
  LevelOrder result;
  Builder builder(graph, *std::move(inside), added);
  if (!builder.is_plain()) {
    absl::Status status = builder.Run(stop, &result.level_, &result.num_levels_);
    if (!status.ok()) return status;
    return result;
  }
  result.level_.resize(graph.num_nodes());
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    result.level_[id] = topology.level(id);
    result.num_levels_ = std::max(result.num_levels_, topology.level(id) + 1);
  }
  return result;
}

}  // namespace spillway::core
