#include "rewrite_core/strategy/apply/clone_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/clone_needs.h"
#include "rewrite_core/plan/clone_rules.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/strategy/apply/bad_plan.h"

namespace spillway::core {
namespace {

class CloneReader {
 public:
  CloneReader(const v1::Plan& plan, const StrategyInput& input, const CloneRules& rules)
      : plan_(plan),
        graph_(input.facts.graph()),
        facts_(input.facts),
        rules_(rules),
        soundness_(input.facts),
        stop_(input.stop),
        poll_(input.stop) {}

  absl::StatusOr<ClonePlan> Read() {
    for (const v1::PlannedClone& from : plan_.clones()) {
      result_.clones.emplace_back();
      absl::Status s = ReadClone(from, &result_.clones.back());
      if (!s.ok()) return s;
    }
    auto needed = FindNeeded(facts_, result_, stop_);
    if (!needed.ok()) return needed.status();
    const ExtraWait extra = FindExtraWait(graph_, result_, *needed);
    if (extra.node != kNoNode) {
      return CheckWait(graph_, extra.source, extra.node, EdgeFault::kExtra);
    }
    return std::move(result_);
  }

 private:
  static absl::Status Bad(absl::string_view node, absl::string_view what) {
    return BadPlanError(absl::StrCat("node ", Quoted(node), " ", what), {{"node", node}});
  }

  absl::Status ReadClone(const v1::PlannedClone& from, PlannedClone* clone) {
    auto node = FindNode(from.node());
    if (!node.ok()) return node.status();
    clone->original = *node;
    const auto [known, is_new] = originals_.try_emplace(*node);
    Original& original = known->second;
    if (is_new) {  // All inputs and readers are examined.
      original.run_again = rules_.Of(*node);
      original.updates = rules_.UpdatesOf(*node);
      for (Tensor input : graph_.inputs(*node)) {
        if (absl::Status s = Polled(); !s.ok()) return s;
        if (input.is_control()) original.controls.insert(input.node);
      }
    }
    if (original.run_again == RunAgain::kNever) return Bad(from.node(), "may not be recomputed");
    if (!facts_.active_nodes().needed[*node]) return Bad(from.node(), "is not run by the step");
    for (const v1::CloneInput& input : from.inputs()) {
      if (absl::Status s = ReadInput(from, input, clone); !s.ok()) return s;
    }
    for (const v1::InputRef& ref : from.consumers()) {
      if (absl::Status s = ReadConsumer(ref, clone); !s.ok()) return s;
    }
    absl::flat_hash_set<NodeId> updates;
    for (const std::string& name : from.updates()) {
      auto update = FindNode(name);
      if (!update.ok()) return update.status();
      if (!updates.insert(*update).second) return Bad(name, "is in one list of updates twice");
      clone->updates.push_back(*update);
      if (absl::Status s = CheckEdge(*node, *update); !s.ok()) return s;
    }
    for (NodeId update : original.updates) {
      if (!updates.contains(update)) {
        return Bad(graph_.name(update), absl::StrCat("writes a variable that ", Quoted(from.node()),
                                                     " reads, and does not wait for it"));
      }
    }
    return ReadTrigger(from, original.controls, clone);
  }

  absl::Status ReadInput(const v1::PlannedClone& from, const v1::CloneInput& input,
                         PlannedClone* clone) {
    const absl::Span<const Tensor> inputs = graph_.inputs(clone->original);
    const int32_t index = input.input_index();
    const int32_t last = clone->inputs.empty() ? -1 : clone->inputs.back().index;
    const auto self = static_cast<int32_t>(result_.clones.size()) - 1;
    if (index <= last || static_cast<size_t>(index) >= inputs.size() ||
        inputs[index].is_control() || input.clone() < 0 || input.clone() >= self ||
        result_.clones[input.clone()].original != inputs[index].node) {
      return Bad(from.node(), absl::StrCat("has no input ", index, " that clone ", input.clone(),
                                           " of the plan makes, or has it out of order"));
    }
    clone->inputs.push_back({index, CloneIndex(input.clone())});
    return Polled();
  }

  absl::Status ReadConsumer(const v1::InputRef& ref, PlannedClone* clone) {
    auto node = FindNode(ref.node());
    if (!node.ok()) return node.status();
    const absl::Span<const Tensor> inputs = graph_.inputs(*node);
    const int32_t index = ref.input_index();
    const auto bad = [&ref](absl::string_view what) { return BadInputError(ref, what); };
    if (index < 0 || static_cast<size_t>(index) >= inputs.size() || inputs[index].is_control() ||
        inputs[index].node != clone->original) {
      return bad(absl::StrCat("does not read ", Quoted(graph_.name(clone->original))));
    }
    if (!served_.insert({*node, index}).second) return bad("is served twice");
    if (facts_.shapes().IsFed(*node)) return bad("cannot be edited, as the node is fed");
    if (facts_.control_flow().input_frame(*node) != kRootFrame) return bad("is in a loop");
    clone->consumers.push_back({*node, index});
    return absl::OkStatus();
  }

  absl::Status ReadTrigger(const v1::PlannedClone& from,
                           const absl::flat_hash_set<NodeId>& waits_for, PlannedClone* clone) {
    if (from.trigger().empty()) {
      if (!clone->inputs.empty()) return absl::OkStatus();
      return Bad(from.node(), "would be recomputed at once, as its clone has no trigger");
    }
    auto trigger = FindNode(from.trigger());
    if (!trigger.ok()) return trigger.status();
    clone->trigger = *trigger;
    if (waits_for.contains(*trigger)) {
      return Bad(from.node(), absl::StrCat("waits for ", Quoted(from.trigger()),
                                           " anyway, which cannot be the trigger of its clone"));
    }
    if (absl::Status s = CheckEdge(*trigger, clone->original); !s.ok()) return s;
    for (const InputPosition& consumer : clone->consumers) {
      // If the trigger is dead, so are the original and the clone: a Merge then reads another
      // input.
      absl::Status s = CheckEdge(*trigger, consumer.node, /*of_dead=*/EdgeFault::kNone);
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Cycles are searched for later. `of_dead`: the verdict if one may be dead and the other not.
  absl::Status CheckEdge(NodeId from, NodeId to, EdgeFault of_dead = EdgeFault::kDeadness) {
    if (absl::Status s = Polled(); !s.ok()) return s;
    const EdgeFault fault = soundness_.WaitInOrder(from, to);
    return CheckWait(graph_, from, to, fault == EdgeFault::kDeadness ? of_dead : fault);
  }

  absl::StatusOr<NodeId> FindNode(absl::string_view name) {
    if (absl::Status s = Polled(); !s.ok()) return s;
    const NodeId node = graph_.Find(name);
    if (node == kNoNode) return NoNodeError(name);
    return node;
  }

  absl::Status Polled() { return poll_.Tick() ? stop_.status("strategy") : absl::OkStatus(); }

  const v1::Plan& plan_;
  const Graph& graph_;
  const StepFacts& facts_;
  const CloneRules& rules_;
  // The properties shared by all clones of a node.
  struct Original {
    RunAgain run_again = RunAgain::kNever;
    std::vector<NodeId> updates;           // Of variables that it reads.
    absl::flat_hash_set<NodeId> controls;  // Its control inputs.
  };
  absl::flat_hash_map<NodeId, Original> originals_;
  const Soundness soundness_;
  const StopToken& stop_;
  StopPoller poll_;
  ClonePlan result_;
  absl::flat_hash_set<std::pair<NodeId, int32_t>> served_;  // Inputs that read a clone.
};

}  // namespace

absl::StatusOr<ClonePlan> ReadClones(const v1::Plan& plan, const StrategyInput& input) {
  const int64_t nodes = int64_t{input.facts.graph().num_nodes()} + plan.clones_size();
  if (nodes > input.limits.max_node_count()) {
    return BadPlanError(
        absl::StrCat("with its ", plan.clones_size(), " clones the graph would have ", nodes,
                     " nodes, and may have ", input.limits.max_node_count(), " (max_node_count)"));
  }
  absl::Status s = input.facts.Compute(
      {Fact::kShapes, Fact::kControlFlow, Fact::kBuffers, Fact::kActiveNodes}, input.stop);
  if (!s.ok()) return s;
  auto rules = CloneRules::Find(input.facts, input.stop);
  if (!rules.ok()) return rules.status();
  return CloneReader(plan, input, *rules).Read();
}

}  // namespace spillway::core
