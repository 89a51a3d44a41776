// Plans of the strategy `budget` for one GPU, constructed: which buffers travel, when each comes
// back, and the gates that let the copies overlap with kernels. Without a simulation: the search
// (plan_search.h) simulates what is made here.
//
//   Gaps. Between two slots that use a buffer one after the other it may be away, if every use
//   behind can read a swap-in.
//   Cover. A sweep over the slots: where more is in use than may be, the gap over that slot that
//   ends last is taken, of those that are not small beside the largest. (LeastCover of
//   lower_bounds.h with whole buffers: the bytes are within some per cent of that bound.)
//   Triggers. In the order of need, each as late as hides its copy behind the one before it, and
//   not before there is memory for it.
//   Gates. Behind the trigger, the whole frontier of nodes that could be launched waits for the
//   swap-in (pace_gate.h).
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_PLANNER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_PLANNER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/readers.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/budget/step_order.h"

namespace spillway::core {

struct BudgetSetting {
  // What may be in use at any slot, less what `lowered` has for it (empty: nothing). Less than the
  // budget where a plan for all of it does not fit: there is not always a place for each piece.
  int64_t target_bytes = 0;
  std::vector<int64_t> lowered;
  int64_t target(Slot slot) const {
    return lowered.empty() ? target_bytes : target_bytes - lowered[slot];
  }
  // A gate stands so many slots behind its trigger.
  int32_t gate_slots = 1;
  // A copy is given so many times its own time.
  double slack = 1.15;
  // Buffers below this part of the largest that would help are left alone.
  double least_part = 1.0 / 8;
};

// A time for which a buffer may be away: from one of its uses to the next.
struct Gap {
  int32_t buffer = 0;  // Its place in StepOrder::buffers().
  Slot after = 0;      // The last slot that uses it before,
  Slot before = 0;     // and the first one behind.
  int64_t bytes = 0;
  int64_t in_ns = 0;  // The copies back, and
  int64_t out_ns = 0;
  int32_t slots() const { return before - after; }
};

// A gap that is used: when its buffer comes back.
struct Away {
  int32_t gap = 0;   // Into BudgetPlanner::gaps().
  Slot trigger = 0;  // Wanted: the nearest sound one is taken.
  int32_t gate = 1;  // As BudgetSetting::gate_slots.
  friend bool operator==(const Away& a, const Away& b) {
    return a.gap == b.gap && a.trigger == b.trigger && a.gate == b.gate;
  }
};

class BudgetPlanner {
 public:
  // All must outlive the planner. Errors: those of `stop`.
  static absl::StatusOr<BudgetPlanner> Create(const StepFacts& facts,
                                              const Eligibility& eligibility, const Needs& needs,
                                              const StepOrder& order, const StopToken& stop);

  // The gaps that keep what is in use within the target, by index into gaps(); as many as help
  // where none suffice. Once `stop` has fired, nothing; likewise below.
  std::vector<int32_t> Cover(const BudgetSetting& setting) const;

  // When their buffers come back.
  std::vector<Away> Schedule(const std::vector<int32_t>& chosen,
                             const BudgetSetting& setting) const;

  // The plan in which these buffers are away.
  absl::StatusOr<std::vector<PlannedSwap>> Plan(const std::vector<Away>& aways) const;

  const std::vector<Gap>& gaps() const { return gaps_; }

 private:
  BudgetPlanner(const StepFacts& facts, const Eligibility& eligibility, const Needs& needs,
                const StepOrder& order, const StopToken& stop)
      : facts_(&facts),
        needs_(&needs),
        order_(&order),
        stop_(&stop),
        readers_(facts, eligibility),
        soundness_(facts) {}

  absl::Status FindGaps();
  absl::Status FindGapsOf(int32_t buffer, StopPoller* poll);
  // The sound trigger nearest to the one wanted, before rather than behind; kNoSlot.
  Slot FindTrigger(const Away& back, const std::vector<InputPosition>& consumers) const;

  const StepFacts* facts_;
  const Needs* needs_;
  const StepOrder* order_;
  const StopToken* stop_;
  SwapInReaders readers_;
  Soundness soundness_;
  std::vector<Gap> gaps_;  // By `after`.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_PLANNER_H_
