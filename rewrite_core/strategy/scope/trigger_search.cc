#include "rewrite_core/strategy/scope/trigger_search.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "rewrite_core/strategy/common/cond_scope.h"

namespace spillway::core {
namespace {

constexpr char kTriggersWhat[] = "triggers";
constexpr char kTriggersRemedy[] = "use smaller lb and ub";

// Updates of variables have side effects or output references: none may run for a swap-in.
bool IsUpdate(const OpInfo& info) {
  return info.fixed_output_count == 0 || absl::StrContains(info.outputs, '&');
}

}  // namespace

TriggerSearch::TriggerSearch(const StepFacts& facts, const ScopeOrder& order,
                             const NodeFlags& backward, const ScopeDefaults& parameters,
                             SearchBudget* budget)
    : facts_(facts),
      soundness_(facts),
      order_(order),
      backward_(backward),
      parameters_(parameters),
      budget_(budget),
      visited_(facts.graph().num_nodes()) {}

absl::StatusOr<NodeId> TriggerSearch::Find(NodeId producer, NodeId first,
                                           const std::vector<NodeId>& consumers) {
  const int32_t from = order_.order[producer];
  const int32_t to = order_.order[first];
  const int lb = to - parameters_.lb <= from ? 1 : parameters_.lb;
  const bool direct =
      parameters_.direct_order || backward_[producer] || to - lb < order_.backward_start;
  auto found = direct ? DirectOrder(producer, first, lb, parameters_.ub, consumers)
                      : ChainRule(producer, first, lb, parameters_.ub, consumers);
  // Distinguishes a search that ran out of steps at its very end from one that found nothing.
  if (budget_->is_over()) return budget_->status(kTriggersWhat, kTriggersRemedy);
  return found;
}

bool TriggerSearch::MayTrigger(NodeId trigger, const std::vector<NodeId>& consumers) const {
  if (absl::StrContains(facts_.graph().name(trigger), kCondScope)) return false;
  return std::all_of(consumers.begin(), consumers.end(), [&](NodeId consumer) {
    // Spent steps are noticed at the next step of the search.
    return !budget_->Spend() && soundness_.MayWait(trigger, consumer);
  });
}

template <typename Visit>
void TriggerSearch::ForEachVisitedInput(NodeId id, const Visit& visit) {
  for (Tensor input : facts_.graph().inputs(id)) {
    if (budget_->Spend()) return;  // Noticed at the next step of the search.
    if (input.is_control() || IsBackEdge(facts_.graph(), input.node, id)) continue;
    if (order_.level[input.node] != kNoOrder && visited_.Insert(input.node)) visit(input.node);
  }
}

absl::StatusOr<NodeId> TriggerSearch::DirectOrder(NodeId producer, NodeId first, int lb, int ub,
                                                  const std::vector<NodeId>& consumers) {
  const int32_t highest = order_.order[first] - lb - 1;
  const int32_t lowest = std::max(order_.order[first] - ub, order_.order[producer]) + 1;
  if (highest < lowest) return kNoNode;
  return order_.leads_to_backward[first] ? HighestFirst(first, lowest, highest, consumers)
                                         : AmongAll(first, lowest, highest, consumers);
}

absl::StatusOr<NodeId> TriggerSearch::HighestFirst(NodeId first, int32_t lowest, int32_t highest,
                                                   const std::vector<NodeId>& consumers) {
  visited_.Clear();
  heap_.clear();
  const auto push_inputs = [&](NodeId id) {
    ForEachVisitedInput(id, [&](NodeId input) {
      // On one level, the lowest id first.
      heap_.emplace_back(order_.level[input], -input);
      std::push_heap(heap_.begin(), heap_.end());
    });
  };
  push_inputs(first);
  while (!heap_.empty()) {
    if (budget_->Spend()) return budget_->status(kTriggersWhat, kTriggersRemedy);
    std::pop_heap(heap_.begin(), heap_.end());
    const NodeId id(-heap_.back().second);
    heap_.pop_back();
    const int32_t order = order_.order[id];
    if (order != kNoOrder && order < lowest) break;
    if (order >= lowest && order <= highest && MayTrigger(id, consumers)) return id;
    push_inputs(id);
  }
  return kNoNode;
}

absl::StatusOr<NodeId> TriggerSearch::AmongAll(NodeId first, int32_t lowest, int32_t highest,
                                               const std::vector<NodeId>& consumers) {
  visited_.Clear();
  step_.assign(1, first);
  NodeId best = kNoNode;
  for (size_t done = 0; done < step_.size(); ++done) {
    if (budget_->Spend()) return budget_->status(kTriggersWhat, kTriggersRemedy);
    ForEachVisitedInput(step_[done], [&](NodeId input) { step_.push_back(input); });
    if (done == 0) continue;
    const NodeId id = step_[done];
    const int32_t order = order_.order[id];
    if (order < lowest || order > highest) continue;
    const bool better =
        best == kNoNode || order > order_.order[best] || (order == order_.order[best] && id < best);
    if (better && MayTrigger(id, consumers)) best = id;
  }
  return best;
}

absl::StatusOr<NodeId> TriggerSearch::ChainRule(NodeId producer, NodeId first, int lb, int ub,
                                                const std::vector<NodeId>& consumers) {
  const Graph& graph = facts_.graph();
  const int32_t after = order_.order[producer];
  const int32_t before = order_.order[first];
  visited_.Clear();
  visited_.Insert(producer);
  step_.assign(1, producer);
  while (!step_.empty()) {
    next_step_.clear();
    for (NodeId id : step_) {
      const Graph::Readers readers = graph.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (budget_->Spend()) return budget_->status(kTriggersWhat, kTriggersRemedy);
        const NodeId reader = readers[i].node;
        if (readers[i].port == kControl || backward_[reader] || !visited_.Insert(reader)) continue;
        next_step_.push_back(reader);
      }
    }
    step_.swap(next_step_);
    --lb;
    --ub;
    if (ub == 0 || lb > ub) break;
    if (lb > 0) continue;
    NodeId best = kNoNode;
    for (NodeId id : step_) {
      const Graph::Readers readers = graph.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (budget_->Spend()) return budget_->status(kTriggersWhat, kTriggersRemedy);
        const NodeId reader = readers[i].node;
        const int32_t order = order_.order[reader];
        if (readers[i].port == kControl || !backward_[reader] || order <= after ||
            order >= before || IsUpdate(graph.op_info(reader))) {
          continue;
        }
        if (best != kNoNode &&
            std::make_pair(order_.order[best], best) <= std::make_pair(order, reader)) {
          continue;
        }
        if (MayTrigger(reader, consumers)) best = reader;
      }
    }
    if (best != kNoNode) return best;
  }
  return kNoNode;
}

}  // namespace spillway::core
