#include "rewrite_core/strategy/apply/plan_reader.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/clone_rules.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/late_reads.h"
#include "rewrite_core/plan/readers.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/strategy/apply/bad_plan.h"
#include "rewrite_core/strategy/apply/plan_cycle.h"
#include "rewrite_core/strategy/common/search_budget.h"

namespace spillway::core {
namespace {

using Names = google::protobuf::RepeatedPtrField<std::string>;

std::string QuotedTensor(const Graph& graph, Tensor tensor) {
  return Quoted(TensorName(graph, tensor));
}

class PlanReader {
 public:
  PlanReader(const v1::Plan& plan, const StrategyInput& input)
      : plan_(plan),
        graph_(input.facts.graph()),
        facts_(input.facts),
        soundness_(input.facts),
        readers_(input.facts, input.eligibility),
        steps_(input.limits.max_search_steps(), input.stop) {}

  absl::StatusOr<SwapPlan> Read() {
    SwapPlan result;
    result.cpu_device = plan_.cpu_device();
    for (const v1::PlannedSwap& from : plan_.swaps()) {
      PlannedSwap swap;
      if (absl::Status s = ReadSwap(from, &swap); !s.ok()) return s;
      result.swaps.push_back(std::move(swap));
    }
    for (const v1::AddedControl& from : plan_.controls()) {
      auto control = ReadControl(from);
      if (!control.ok()) return control.status();
      // Of edges between the same nodes, of any kind, one suffices.
      if (!controls_.insert({control->from, control->to}).second) continue;
      if (!HasEdge(*control)) result.controls.push_back(*control);
    }
    if (steps_.is_over()) return TooLong();
    if (absl::Status s = CheckLateReads(result.controls); !s.ok()) return s;
    auto on_cycle = FindPlanCycle(graph_, facts_.control_flow(), result, steps_.stop());
    if (!on_cycle.ok()) return on_cycle.status();
    if (*on_cycle != kNoNode) {
      return BadPlanError(
          absl::StrCat("its edges close a cycle through node ", Quoted(graph_.name(*on_cycle))),
          {{"node", graph_.name(*on_cycle)}});
    }
    return result;
  }

 private:
  absl::Status ReadSwap(const v1::PlannedSwap& from, PlannedSwap* swap) {
    auto tensor = FindTensor(from.tensor());
    if (!tensor.ok()) return tensor.status();
    swap->tensor = *tensor;
    if (!tensors_.insert({tensor->node, tensor->port}).second) {
      return BadPlanError(absl::StrCat("it swaps tensor ", Quoted(from.tensor()), " twice"),
                          {{"tensor", from.tensor()}});
    }
    if (from.swap_ins().empty()) {
      return BadPlanError(absl::StrCat("its swap of ", Quoted(from.tensor()), " has no swap-in"),
                          {{"tensor", from.tensor()}});
    }
    for (const v1::PlannedSwapIn& from_in : from.swap_ins()) {
      PlannedSwapIn swap_in;
      if (absl::Status s = ReadSwapIn(from_in, *tensor, &swap_in); !s.ok()) return s;
      swap->swap_ins.push_back(std::move(swap_in));
    }
    swap->dtype = facts_.shapes().type(*tensor).dtype;
    swap->size_bytes = facts_.shapes().size_bytes(*tensor);
    const absl::string_view dtype = DataTypeName(swap->dtype);
    if (!from.dtype().empty() && from.dtype() != dtype) {
      return BadPlanError(absl::StrCat("it says that tensor ", Quoted(from.tensor()), " is ",
                                       Quoted(from.dtype()), ", and the graph has a ", dtype),
                          {{"tensor", from.tensor()}});
    }
    if (absl::Status s = FindNodes(from.deadline_nodes(), &swap->deadlines); !s.ok()) return s;
    for (NodeId node : swap->deadlines) {
      if (absl::Status s =
              CheckEdge(tensor->node, node, soundness_.WaitInOrder(tensor->node, node));
          !s.ok()) {
        return s;
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadSwapIn(const v1::PlannedSwapIn& from, Tensor tensor, PlannedSwapIn* swap_in) {
    if (from.consumers().empty()) {
      return BadPlanError(
          absl::StrCat("a swap-in of ", QuotedTensor(graph_, tensor), " has no consumer"),
          {{"tensor", TensorName(graph_, tensor)}});
    }
    for (const v1::InputRef& ref : from.consumers()) {
      auto consumer = FindConsumer(ref, tensor);
      if (!consumer.ok()) return consumer.status();
      swap_in->consumers.push_back(*consumer);
    }
    std::vector<NodeId> triggers;
    if (absl::Status s = FindNodes(from.triggers(), &triggers); !s.ok()) return s;
    swap_in->triggers.assign(triggers.begin(), triggers.end());
    if (absl::Status s = FindNodes(from.pace_nodes(), &swap_in->paces); !s.ok()) return s;
    for (NodeId trigger : triggers) {
      for (const InputPosition& consumer : swap_in->consumers) {
        if (absl::Status s = JudgeWait(trigger, consumer.node); !s.ok()) return s;
      }
      for (NodeId node : swap_in->paces) {
        if (absl::Status s = JudgeWait(trigger, node); !s.ok()) return s;
      }
    }
    for (NodeId node : swap_in->paces) {
      if (absl::Status s = CheckEdge(tensor.node, node, soundness_.WaitInOrder(tensor.node, node));
          !s.ok()) {
        return s;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ControlEdge> ReadControl(const v1::AddedControl& from) {
    auto source = FindNode(from.source());
    if (!source.ok()) return source.status();
    auto node = FindNode(from.node());
    if (!node.ok()) return node.status();
    if (from.kind() != v1::EDGE_KIND_SERIALIZATION && from.kind() != v1::EDGE_KIND_ORDER) {
      return BadPlanError(
          absl::StrCat("its control edge from ", Quoted(from.source()), " to ", Quoted(from.node()),
                       " is of kind ", static_cast<int>(from.kind()),
                       ", which is neither serialization nor order"),
          {{"node", from.node()}});
    }
    absl::Status s = CheckEdge(*source, *node, soundness_.WaitInOrder(*source, *node));
    if (!s.ok()) return s;
    return ControlEdge{*source, *node, from.kind()};
  }

  // Whether the original graph has the edge.
  bool HasEdge(const ControlEdge& edge) {
    const absl::Span<const Tensor> inputs = graph_.inputs(edge.to);
    return std::any_of(inputs.begin(), inputs.end(), [&](Tensor input) {
      return steps_.Spend() || (input.is_control() && input.node == edge.from);
    });
  }

  // Returns an input that reads `tensor`, and may read a swap-in of it.
  absl::StatusOr<InputPosition> FindConsumer(const v1::InputRef& ref, Tensor tensor) {
    auto node = FindNode(ref.node());
    if (!node.ok()) return node.status();
    const absl::Span<const Tensor> inputs = graph_.inputs(*node);
    const int32_t index = ref.input_index();
    const auto bad = [&ref](absl::string_view what) { return BadInputError(ref, what); };
    if (index < 0 || static_cast<size_t>(index) >= inputs.size() || !(inputs[index] == tensor)) {
      return bad(absl::StrCat("does not read ", QuotedTensor(graph_, tensor)));
    }
    if (!served_.insert({*node, index}).second) return bad("is served twice");
    if (!readers_.Runs(*node)) return bad("cannot be edited, as the node is fed");
    if (readers_.MayServeFromHost(tensor, *node)) {
      auto is_known = FindUpdates(tensor, *node);
      if (!is_known.ok()) return is_known.status();
      if (*is_known) return InputPosition{*node, index};
    }
    std::vector<NodeId> reader = {*node};
    const v1::Reason verdict = readers_.Keep(tensor, &reader, [](NodeId id) { return id; });
    if (verdict != v1::REASON_SWAPPED) {
      const std::string reason(absl::StripPrefix(v1::Reason_Name(verdict), "REASON_"));
      return BadPlanError(absl::StrCat("tensor ", QuotedTensor(graph_, tensor), ", read by node ",
                                       Quoted(ref.node()), ", may not be swapped (", reason, ")"),
                          {{"tensor", TensorName(graph_, tensor)}, {"reason", reason}});
    }
    return InputPosition{*node, index};
  }

  // Notes the updates that a late reader must come before; returns false if they are not known.
  absl::StatusOr<bool> FindUpdates(Tensor tensor, NodeId reader) {
    if (!facts_.variable_aliases()[tensor.node]) return true;
    if (!variables_) {
      auto variables = CloneRules::Find(facts_, steps_.stop());
      if (!variables.ok()) return variables.status();
      variables_.emplace(*std::move(variables));
    }
    const std::vector<NodeId> updates = variables_->UpdatesOf(tensor);
    for (NodeId update : updates) late_reads_.push_back({update, reader});
    return updates.size() <= CloneRules::kMaxUpdates;
  }

  absl::Status CheckLateReads(const std::vector<ControlEdge>& controls) {
    if (late_reads_.empty()) return absl::OkStatus();
    auto unguarded = FindUnguarded(facts_, std::move(late_reads_), steps_.stop());
    if (!unguarded.ok()) return unguarded.status();
    absl::flat_hash_set<std::pair<NodeId, NodeId>> guards;
    for (const ControlEdge& edge : controls) guards.emplace(edge.from, edge.to);
    for (const LateRead& read : *unguarded) {
      if (guards.contains({read.reader, read.update})) continue;
      return BadPlanError(
          absl::StrCat("node ", Quoted(graph_.name(read.update)),
                       " may change the variable that node ", Quoted(graph_.name(read.reader)),
                       " reads through a swap-in, and does not wait for it"),
          {{"node", graph_.name(read.update)}});
    }
    return absl::OkStatus();
  }

  // Checks an edge between two original nodes, or through a swap node.
  absl::Status CheckEdge(NodeId from, NodeId to, EdgeFault fault) {
    return steps_.Spend() ? TooLong() : CheckWait(graph_, from, to, fault);
  }
  absl::Status JudgeWait(NodeId from, NodeId to) {
    return CheckEdge(from, to, soundness_.WaitAnywhere(from, to));
  }

  // Parses `node:port`, checked as far as possible without a reader.
  absl::StatusOr<Tensor> FindTensor(const std::string& name) {
    const size_t colon = name.rfind(':');
    int32_t port = 0;
    if (colon == std::string::npos || !absl::SimpleAtoi(name.substr(colon + 1), &port) ||
        port < 0) {
      return BadPlanError(absl::StrCat("tensor ", Quoted(name), " is not of the form node:port"),
                          {{"tensor", name}});
    }
    auto node = FindNode(absl::string_view(name).substr(0, colon));
    if (!node.ok()) return node.status();
    return Tensor{*node, port};
  }

  absl::StatusOr<NodeId> FindNode(absl::string_view name) {
    if (steps_.Spend()) return TooLong();
    const NodeId node = graph_.Find(name);
    if (node == kNoNode) return NoNodeError(name);
    return node;
  }

  absl::Status FindNodes(const Names& names, std::vector<NodeId>* nodes) {
    absl::flat_hash_set<NodeId> seen;
    for (const std::string& name : names) {
      auto node = FindNode(name);
      if (!node.ok()) return node.status();
      if (!seen.insert(*node).second) {
        return BadPlanError(absl::StrCat("one of its lists names node ", Quoted(name), " twice"),
                            {{"node", name}});
      }
      nodes->push_back(*node);
    }
    return absl::OkStatus();
  }

  absl::Status TooLong() const {
    return steps_.status("faults of the plan",
                         "apply a plan with fewer triggers and consumers in one swap-in, or raise "
                         "the limit");
  }

  const v1::Plan& plan_;
  const Graph& graph_;
  const StepFacts& facts_;
  const Soundness soundness_;
  const SwapInReaders readers_;
  SearchBudget steps_;
  absl::flat_hash_set<std::pair<NodeId, int32_t>> tensors_;  // The swapped ones.
  absl::optional<CloneRules> variables_;
  std::vector<LateRead> late_reads_;
  absl::flat_hash_set<std::pair<NodeId, int32_t>> served_;   // Inputs that read a swap-in.
  absl::flat_hash_set<std::pair<NodeId, NodeId>> controls_;  // The control edges that were read.
};

}  // namespace

absl::StatusOr<SwapPlan> ReadPlan(const v1::Plan& plan, const StrategyInput& input) {
  absl::Status s = input.facts.Compute(
      {Fact::kTopology, Fact::kShapes, Fact::kControlFlow, Fact::kActiveNodes, Fact::kBuffers},
      input.stop);
  if (!s.ok()) return s;
  return PlanReader(plan, input).Read();
}

}  // namespace spillway::core
