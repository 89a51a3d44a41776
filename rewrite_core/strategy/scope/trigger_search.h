// Finds the node whose end lets a swap-in start.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_TRIGGER_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_TRIGGER_SEARCH_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/scope/scope_defaults.h"
#include "rewrite_core/strategy/scope/scope_order.h"

namespace spillway::core {

// The two rules of TFLMS v1, on the original graph (IBM's program walks the graph as edited so far,
// so that its choice depends on the order in which siblings are handled). If v1 picks any
// candidate, this picks the one of lowest order, then of lowest id.
//
// Stricter than v1: a control edge from the candidate must also be sound (same loop frame, no new
// deadness, no cycle).
//
// Thread safety: one thread at a time.
class TriggerSearch {
 public:
  // All references must outlive the search.
  TriggerSearch(const StepFacts& facts, const ScopeOrder& order, const NodeFlags& backward,
                const ScopeDefaults& parameters, SearchBudget* budget);

  // Returns the trigger of a swap-in of a tensor of `producer` that serves `consumers`, timed for
  // `first` of them; or kNoNode. REQUIRES: order of `first` >= 0.
  absl::StatusOr<NodeId> Find(NodeId producer, NodeId first, const std::vector<NodeId>& consumers);

 private:
  // Both rules of direct order walk backwards from `first`, for triggers whose order lies between
  // `lowest` and `highest`. If `first` leads to the backward part, so does everything before it,
  // and orders fall along the walk, which can then go by order and stop at the first candidate.
  // Otherwise it cannot.
  absl::StatusOr<NodeId> DirectOrder(NodeId producer, NodeId first, int lb, int ub,
                                     const std::vector<NodeId>& consumers);
  absl::StatusOr<NodeId> HighestFirst(NodeId first, int32_t lowest, int32_t highest,
                                      const std::vector<NodeId>& consumers);
  absl::StatusOr<NodeId> AmongAll(NodeId first, int32_t lowest, int32_t highest,
                                  const std::vector<NodeId>& consumers);
  absl::StatusOr<NodeId> ChainRule(NodeId producer, NodeId first, int lb, int ub,
                                   const std::vector<NodeId>& consumers);
  // Calls visit(input) for the data inputs of `id` that have a level and are new to visited_.
  template <typename Visit>
  void ForEachVisitedInput(NodeId id, const Visit& visit);
  // Whether a control edge from `trigger` to a swap-in for `consumers` is sound.
  bool MayTrigger(NodeId trigger, const std::vector<NodeId>& consumers) const;

  const StepFacts& facts_;
  const Soundness soundness_;
  const ScopeOrder& order_;
  const NodeFlags& backward_;
  const ScopeDefaults parameters_;
  SearchBudget* budget_;
  VisitMarks visited_;
  std::vector<std::pair<int32_t, int32_t>> heap_;  // Level and negated id.
  std::vector<NodeId> step_, next_step_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_TRIGGER_SEARCH_H_
