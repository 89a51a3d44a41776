#include "rewrite_core/analysis/flow/control_flow.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "rewrite_core/graph/attr_value.h"

namespace spillway::core {
namespace {

// Conditions of one node beyond this many are replaced by the one condition that the node is
// alive: precision lost, memory bounded. Real graphs nest conditionals a few deep.
constexpr size_t kMaxConditions = 32;
// An Identity chain before a predicate is followed this far.
constexpr int kMaxPredicateHops = 64;

// Sides 0 and 1 are those of a Switch; those of a _SwitchN begin here.
constexpr int32_t kFirstSideOfMany = 2;

// "The predicate `node:port` takes side `side`", or "`node` is alive".
struct Condition {
  NodeId node;
  int32_t port;
  int32_t side;

  static constexpr int32_t kAlive = -2;  // As the port.
  bool is_predicate() const { return port != kAlive; }
  template <typename H>
  friend H AbslHashValue(H h, const Condition& c) {
    return H::combine(std::move(h), c.node, c.port, c.side);
  }
  friend bool operator==(const Condition& a, const Condition& b) {
    return a.node == b.node && a.port == b.port && a.side == b.side;
  }
};

using ConditionSet = std::vector<int32_t>;  // Sorted ids.
constexpr int32_t kAlways = 0;              // The id of the empty set.

}  // namespace

class ControlFlowBuilder {
 public:
  ControlFlowBuilder(const Graph& graph, const Topology& topology, const StopToken& stop)
      : graph_(graph), topology_(topology), stop_(stop), poll_(stop) {}

  absl::StatusOr<ControlFlowAnalysis> Run() {
    if (!graph_.has_control_flow()) return std::move(result_);
    result_.trivial_ = false;
    result_.input_frame_.assign(graph_.num_nodes(), kRootFrame);
    result_.output_frame_.assign(graph_.num_nodes(), kRootFrame);
    result_.alive_.assign(graph_.num_nodes(), kAlways);
    InternSet({});
    frame_parents_.push_back(kUnknownFrame);  // The root has none.
    for (NodeId id : topology_.order()) {
      SetFrames(id);
      result_.alive_[id] = AliveSet(id);
      if (poll_.Tick()) return stop_.status("analysis");
    }
    return std::move(result_);
  }

 private:
  void SetFrames(NodeId id) {
    FrameId frame = kRootFrame;
    bool first = true;
    for (Tensor input : graph_.inputs(id)) {
      if (poll_.Tick()) return;
      if (IsBackEdge(graph_, input.node, id)) continue;
      const FrameId of_input = result_.output_frame_[input.node];
      if (!first && of_input != frame) {
        frame = kUnknownFrame;
        break;
      }
      frame = of_input;
      first = false;
    }
    FrameId output = frame;
    const ControlFlow kind = graph_.op_info(id).control_flow;
    if (kind == ControlFlow::kEnter && frame != kUnknownFrame) output = ChildFrame(id, frame);
    if (kind == ControlFlow::kExit && frame != kUnknownFrame) output = frame_parents_[frame];
    result_.input_frame_[id] = frame;
    result_.output_frame_[id] = output;
  }

  FrameId ChildFrame(NodeId enter, FrameId parent) {
    const auto attr = graph_.attr(enter, "frame_name");
    const auto name = attr ? AttrString(*attr) : absl::nullopt;
    if (!name) return kUnknownFrame;
    const auto [it, is_new] =
        frames_.try_emplace({parent, std::string(*name)}, FrameId(frame_parents_.size()));
    if (is_new) frame_parents_.push_back(parent);
    return it->second;
  }

  // The conditions under which the node is alive.
  int32_t AliveSet(NodeId id) {
    switch (graph_.op_info(id).control_flow) {
      case ControlFlow::kMerge:
        return MergeSet(id);
      case ControlFlow::kExit:
        return ExitSet(id);
      default:
        return AllInputs(id);
    }
  }

  // The conditions under which an output (or, for kControl, the end) of a node is alive.
  int32_t ArrivesAlive(Tensor tensor) {
    int32_t alive = result_.alive_[tensor.node];
    if (tensor.is_control() || graph_.op_info(tensor.node).control_flow != ControlFlow::kSwitch) {
      return alive;
    }
    const absl::Span<const Tensor> inputs = graph_.inputs(tensor.node);
    if (inputs.size() < 2 || inputs[1].is_control()) return alive;
    poll_.Tick(kMaxConditions);
    const Tensor predicate = Source(inputs[1]);
    // Two sides of a _SwitchN do not cover all cases, so they are numbered separately from a
    // Switch's.
    const int32_t side =
        tensor.port + (graph_.op(tensor.node) == "_SwitchN" ? kFirstSideOfMany : 0);
    const int32_t taken = InternSet({Intern({predicate.node, predicate.port, side})});
    // Leave room for the taken side: without it both outputs would seem to be alive at the same
    // time.
    if (result_.sets_[alive].size() >= kMaxConditions) alive = OnlyIfAlive(tensor.node);
    return Union(alive, taken, tensor.node);
  }

  // Follows Identity nodes back, so that two Switches on one predicate are recognized.
  Tensor Source(Tensor tensor) const {
    for (int hop = 0; hop < kMaxPredicateHops; ++hop) {
      const absl::Span<const Tensor> inputs = graph_.inputs(tensor.node);
      if (graph_.op(tensor.node) != "Identity" || inputs.empty() || inputs[0].is_control()) break;
      tensor = inputs[0];
    }
    return tensor;
  }

  int32_t AllInputs(NodeId id) {
    int32_t all = kAlways;
    for (Tensor input : graph_.inputs(id)) {
      if (poll_.Tick()) break;
      if (!IsBackEdge(graph_, input.node, id)) all = Union(all, ArrivesAlive(input), id);
    }
    return all;
  }

  // A Merge is alive as soon as one data input is; dead control inputs do not kill it.
  int32_t MergeSet(NodeId id) {
    bool first = true;
    bool simple = true;
    ConditionSet either, common;
    for (Tensor input : graph_.inputs(id)) {
      if (poll_.Tick()) break;
      if (input.is_control() || IsBackEdge(graph_, input.node, id)) continue;
      const ConditionSet& set = result_.sets_[ArrivesAlive(input)];
      if (poll_.Tick(static_cast<int64_t>(set.size()))) break;
      if (first) {
        either = common = set;
        first = false;
        continue;
      }
      simple = simple && Either(set, &either);
      ConditionSet both;
      std::set_intersection(common.begin(), common.end(), set.begin(), set.end(),
                            std::back_inserter(both));
      common = std::move(both);
    }
    if (first) return OnlyIfAlive(id);  // Nothing ever reaches it.
    if (simple) return InternSet(std::move(either));
    return Union(InternSet(std::move(common)), OnlyIfAlive(id), id);
  }

  // Sets `*set` to the conditions for "set or other" if a set of conditions can express that: one
  // implies the other, or they differ only in the two sides of one predicate.
  bool Either(const ConditionSet& other, ConditionSet* set) const {
    if (std::includes(set->begin(), set->end(), other.begin(), other.end())) {
      *set = other;
      return true;
    }
    if (std::includes(other.begin(), other.end(), set->begin(), set->end())) return true;
    ConditionSet only_a, only_b, both;
    std::set_difference(set->begin(), set->end(), other.begin(), other.end(),
                        std::back_inserter(only_a));
    std::set_difference(other.begin(), other.end(), set->begin(), set->end(),
                        std::back_inserter(only_b));
    if (only_a.size() != 1 || only_b.size() != 1) return false;
    const Condition& a = conditions_[only_a[0]];
    const Condition& b = conditions_[only_b[0]];
    const bool both_sides = a.is_predicate() && b.is_predicate() && a.node == b.node &&
                            a.port == b.port && std::min(a.side, b.side) == 0 &&
                            std::max(a.side, b.side) == 1;
    if (!both_sides) return false;
    std::set_intersection(set->begin(), set->end(), other.begin(), other.end(),
                          std::back_inserter(both));
    *set = std::move(both);
    return true;
  }

  // An Exit is alive when its loop ends, regardless of the loop's own condition before; any other
  // condition from inside the loop is not visible outside.
  int32_t ExitSet(NodeId id) {
    const FrameId loop = result_.input_frame_[id];
    ConditionSet outside;
    bool hidden = loop == kUnknownFrame;
    for (int32_t c : result_.sets_[AllInputs(id)]) {
      const Condition& condition = conditions_[c];
      if (result_.output_frame_[condition.node] != loop) {
        outside.push_back(c);
      } else {
        const bool loop_ends =
            condition.is_predicate() && condition.side == 0 &&
            graph_.op_info(condition.node).control_flow == ControlFlow::kLoopCond;
        hidden = hidden || !loop_ends;
      }
    }
    const int32_t set = InternSet(std::move(outside));
    return hidden ? Union(set, OnlyIfAlive(id), id) : set;
  }

  int32_t OnlyIfAlive(NodeId id) { return InternSet({Intern({id, Condition::kAlive, 0})}); }

  int32_t Intern(Condition condition) {
    const auto [it, is_new] =
        condition_ids_.try_emplace(condition, static_cast<int32_t>(conditions_.size()));
    if (is_new) conditions_.push_back(condition);
    return it->second;
  }

  int32_t InternSet(ConditionSet set) {
    const auto [it, is_new] =
        set_ids_.try_emplace(std::move(set), static_cast<int32_t>(result_.sets_.size()));
    if (is_new) result_.sets_.push_back(it->first);
    return it->second;
  }

  // The union of two sets, for node `id`.
  int32_t Union(int32_t a, int32_t b, NodeId id) {
    if (a == b || b == kAlways) return a;
    if (a == kAlways) return b;
    if (a > b) std::swap(a, b);
    if (const auto it = unions_.find({a, b}); it != unions_.end()) return it->second;
    poll_.Tick(kMaxConditions);
    ConditionSet all;
    std::set_union(result_.sets_[a].begin(), result_.sets_[a].end(), result_.sets_[b].begin(),
                   result_.sets_[b].end(), std::back_inserter(all));
    if (all.size() > kMaxConditions) return OnlyIfAlive(id);
    return unions_[{a, b}] = InternSet(std::move(all));
  }

  const Graph& graph_;
  const Topology& topology_;
  const StopToken& stop_;
  StopPoller poll_;  // Results computed after it has stopped do not matter.
  ControlFlowAnalysis result_;
  absl::flat_hash_map<std::pair<FrameId, std::string>, FrameId> frames_;
  std::vector<FrameId> frame_parents_;
  std::vector<Condition> conditions_;
  absl::flat_hash_map<Condition, int32_t> condition_ids_;
  absl::flat_hash_map<ConditionSet, int32_t> set_ids_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> unions_;
};

absl::StatusOr<ControlFlowAnalysis> ControlFlowAnalysis::Build(const Graph& graph,
                                                               const Topology& topology,
                                                               const StopToken& stop) {
  return ControlFlowBuilder(graph, topology, stop).Run();
}

bool ControlFlowAnalysis::DeadWhenever(NodeId v, NodeId u) const {
  if (trivial_ || alive_[u] == kAlways || alive_[u] == alive_[v]) return true;
  const std::vector<int32_t>& of_u = sets_[alive_[u]];
  const std::vector<int32_t>& of_v = sets_[alive_[v]];
  return std::includes(of_v.begin(), of_v.end(), of_u.begin(), of_u.end());
}

}  // namespace spillway::core
