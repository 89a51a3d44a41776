// Changes of plans by chance, for a search: of single buffers, and of targets in a run of slots.
//
// Deterministic: random numbers from a generator of its own, with a constant seed. Thread safety:
// one thread at a time.
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

  // From 0 up to below `count`, which is above 0.
  int Random(int count);

  // Another trigger or gate for one buffer, another buffer for one, one less, or one more.
  // REQUIRES: `aways` is not empty.
  void Change(std::vector<Away>* aways);

  // The gap used, in plain ways: its buffer comes back shortly before it is used.
  Away Use(int32_t gap, int32_t gate) const;

  // More may be in use in some run of slots, at most `budget_bytes`.
  void Raise(int64_t budget_bytes, std::vector<int64_t>* targets);

 private:
  int AnotherFor(const Gap& gap, const std::vector<Away>& aways);

  const BudgetPlanner& planner_;
  uint64_t state_ = 1;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_CHANGES_H_
