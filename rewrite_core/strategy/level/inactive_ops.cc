#include "rewrite_core/strategy/level/inactive_ops.h"

#include <vector>

#include "absl/strings/match.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/strategy/level/level_order.h"

namespace spillway::core {
namespace {

// The placeholder by which Keras distinguishes training from inference.
constexpr char kLearningPhase[] = "keras_learning_phase";

// Returns the part of a name after its last slash.
absl::string_view OwnName(absl::string_view name) { return name.substr(name.rfind('/') + 1); }

// The rule for an op type.
struct OpRule {
  bool batch_norm = false;
  bool is_const = false;
  bool is_switch = false;
  bool stays = false;     // Stays active even if its inputs are inactive.
  bool in_while = false;  // Active inside loops, too.
};

OpRule RuleOf(absl::string_view op) {
  OpRule rule;
  rule.batch_norm = op == "FusedBatchNorm" || op == "FusedBatchNormGrad";
  rule.is_const = op == "Const";
  rule.is_switch = op == "Switch";
  rule.stays = op == "Merge" || op == "Switch";
  rule.in_while = op == "Enter" || op == "Exit";
  return rule;
}

}  // namespace

absl::StatusOr<NodeFlags> FindInactiveOps(const Graph& graph,
                                          const ControlFlowAnalysis& control_flow, Phase phase,
                                          const StopToken& stop) {
  auto inside = FindInsideLoops(graph, control_flow, stop);
  if (!inside.ok()) return inside.status();
  std::vector<OpRule> rules;
  for (int32_t op = 0; op < graph.num_ops(); ++op) rules.push_back(RuleOf(graph.op_name(op)));
  NodeFlags inactive(graph.num_nodes(), false);
  std::vector<NodeId> found;
  const auto add = [&](NodeId id) {
    if (inactive[id]) return;
    inactive[id] = true;
    found.push_back(id);
  };
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    const OpRule& rule = rules[graph.op_id(id)];
    if (rule.batch_norm) {
      const auto attr = graph.attr(id, "is_training");
      // The default of the attribute is true.
      const bool trains = !attr.has_value() || AttrBool(*attr).value_or(true);
      if (trains != (phase == Phase::kTraining)) add(id);
    }
    if (!rule.in_while && (*inside)[id]) add(id);
    if (!rule.is_switch || graph.inputs(id).size() < 2) continue;
    if (!absl::EndsWith(graph.name(graph.inputs(id)[1].node), kLearningPhase)) continue;
    const int32_t untaken = phase == Phase::kTraining ? 0 : 1;
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (readers[i].port == untaken && !rules[graph.op_id(readers[i].node)].stays) {
        add(readers[i].node);
      }
    }
  }
  // By node: how many of its counted inputs are still active.
  std::vector<int32_t> active_inputs(graph.num_nodes(), -1);
  for (size_t done = 0; done < found.size(); ++done) {
    const Graph::Readers readers = graph.readers(found[done]);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("analysis");
      const NodeId reader = readers[i].node;
      if (inactive[reader] || rules[graph.op_id(reader)].stays) continue;
      int32_t& left = active_inputs[reader];
      if (left < 0) {
        left = 0;
        for (Tensor input : graph.inputs(reader)) left += !rules[graph.op_id(input.node)].is_const;
        if (absl::StrContains(OwnName(graph.name(reader)), "Variable")) add(reader);
      }
      left -= !rules[graph.op_id(found[done])].is_const;
      if (left == 0) add(reader);
    }
  }
  return inactive;
}

}  // namespace spillway::core
