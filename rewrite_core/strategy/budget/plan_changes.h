// Random changes of plans, for a search: of single buffers, and of targets in a run of slots.
//
// Deterministic: it has its own random generator, with a constant seed. Thread safety: one thread
// at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_CHANGES_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_CHANGES_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/strategy/budget/budget_planner.h"

namespace spillway::core {

class PlanChanges {
 public:
  // `planner` must outlive it.
  explicit PlanChanges(const BudgetPlanner& planner) : planner_(planner) {}

  // Returns a number from 0 to `count` - 1. REQUIRES: count > 0.
  int Random(int count);

  // Changes the trigger or the gate of one buffer, replaces a buffer, removes one, or adds one.
  // REQUIRES: `evictions` is not empty.
  void Change(std::vector<Eviction>* evictions);

  // Returns the default use of a gap: its buffer comes back shortly before it is used.
  Eviction Use(int32_t gap, int32_t gate) const;

  // Raises the targets in some run of slots, to at most `budget_bytes`.
  void Raise(int64_t budget_bytes, std::vector<int64_t>* targets);

 private:
  int AnotherFor(const Gap& gap, const std::vector<Eviction>& evictions);

  const BudgetPlanner& planner_;
  uint64_t state_ = 1;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_CHANGES_H_
