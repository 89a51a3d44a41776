// Makes plans that fit in rehearsals (memory_rehearsal.h), for a setting or from another plan, and
// repairs them until nothing runs out of memory there. This is far cheaper than finding each such
// place with a simulation, and the step time is usually right to a percent or two.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_REHEARSED_PLANNER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_REHEARSED_PLANNER_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/budget/memory_rehearsal.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

struct RehearsedPlan {
  std::vector<Eviction> evictions;
  bool fits = false;         // In its last rehearsal.
  int64_t step_time_ns = 0;  // In its last rehearsal.
};

class RehearsedPlanner {
 public:
  // Makes at most `max_rehearsals`, and fewer for long steps. All must outlive it.
  RehearsedPlanner(const StepOrder& order, const BudgetPlanner& planner, int64_t budget_bytes,
                   int max_rehearsals, const StopToken& stop);

  bool MayRehearse() const { return left_ > 0; }

  RehearsedPlan Make(const BudgetSetting& setting);
  // `gate_slots`: for the gaps that it adds.
  RehearsedPlan Mend(std::vector<Eviction> evictions, int32_t gate_slots);

 private:
  const BudgetPlanner& planner_;
  MemoryRehearsal rehearsal_;
  int64_t left_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_REHEARSED_PLANNER_H_
