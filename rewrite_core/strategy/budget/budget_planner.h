// Plans of the strategy `budget` for one GPU, constructed: which buffers travel, when each comes
// back, and the gates that let the copies overlap with kernels. Without a simulation: the search
// (plan_search.h) simulates what is made here.
//
//   Gaps. Between two slots that use a buffer one after the other it may be away, if every use
//   behind can read a swap-in.
//   Cover. A sweep over the slots: where more is in use than may be, the gap over that slot that
//   ends last is taken, of those that are not small beside the largest. (LeastCover of
//   lower_bounds.h with whole buffers: the bytes are within some per cent of that bound.) Then what
//   the others cover is given back, and smaller gaps take the place of larger ones that do more
//   than is lacking.
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

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/readers.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/budget/step_order.h"
#include "rewrite_core/strategy/op_filter.h"

namespace spillway::core {

struct BudgetSetting {
  // By slot: the bytes that may be in use. Less than the budget where a plan for all of it does not
  // fit: there is not always a place for each piece.
  std::vector<int64_t> targets;
  // Of these what may be in use when a buffer comes back. Below 1 they come back later: those that
  // are back long before they are used lie about in pieces of what has been let go of.
  double return_part = 1;
  // A gate stands so many slots behind its trigger.
  int32_t gate_slots = 1;
  // A copy is given so many times its own time.
  double slack = 1.15;
  // Buffers below about this part of the largest that would help are left alone.
  double least_part = 1.0 / 8;
  // Gaps that are used in any case, by index.
  absl::btree_set<int32_t> forced;
  // By gap: its buffer comes back only behind this slot.
  absl::flat_hash_map<int32_t, Slot> not_before;
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
  // `ranks`: of all nodes (RankByLaunch), along which all edges of plans grow. `filters`: null, or
  // those of the request. All must outlive the planner. Errors: those of `stop`.
  static absl::StatusOr<BudgetPlanner> Create(const StepFacts& facts,
                                              const Eligibility& eligibility, const Needs& needs,
                                              const StepOrder& order,
                                              absl::Span<const int32_t> ranks,
                                              const SwapFilters* filters, const StopToken& stop);

  // The gaps that keep what is in use within the target, by index into gaps(); as many as help
  // where none suffice. Once `stop` has fired, nothing; likewise below.
  std::vector<int32_t> Cover(const BudgetSetting& setting) const;

  // When their buffers come back.
  std::vector<Away> Schedule(const std::vector<int32_t>& chosen,
                             const BudgetSetting& setting) const;

  // With the triggers that Plan takes: the nearest sound ones.
  void MakeSound(std::vector<Away>* aways) const;

  // The plan in which these buffers are away.
  absl::StatusOr<std::vector<PlannedSwap>> Plan(const std::vector<Away>& aways) const;

  const std::vector<Gap>& gaps() const { return gaps_; }

  // By place in StepOrder::buffers(): a tensor of the buffer, and its first gap; -1.
  Tensor TensorOf(int32_t buffer) const;
  int32_t FirstGapOf(int32_t buffer) const;
  // The gap of the buffer behind `tensor` that has `slot` inside; -1.
  int32_t GapOver(Tensor tensor, Slot slot) const;
  // Whether there is time in it for both of its copies.
  bool HasTime(const Gap& gap) const {
    return order_->begin_ns(gap.before) - order_->end_ns(gap.after) >= gap.in_ns + gap.out_ns;
  }

 private:
  BudgetPlanner(const StepFacts& facts, const Eligibility& eligibility, const Needs& needs,
                const StepOrder& order, absl::Span<const int32_t> ranks, const SwapFilters* filters,
                const StopToken& stop)
      : facts_(&facts),
        needs_(&needs),
        order_(&order),
        filters_(filters),
        stop_(&stop),
        readers_(facts, eligibility),
        soundness_(facts, ranks) {}

  absl::Status FindGaps();
  // Of the chosen gaps those that are needed, smaller ones in the place of some.
  std::vector<int32_t> Shrink(std::vector<int32_t> chosen, const BudgetSetting& setting) const;
  absl::Status FindGapsOf(int32_t buffer, StopPoller* poll);
  bool MayReadSwapIn(const StepOrder::Use& use) const;
  using Ends = absl::flat_hash_map<int32_t, std::vector<Slot>>;
  Ends EndsOf(const std::vector<Away>& aways) const;
  std::vector<const StepOrder::Use*> Consumers(const Away& back, const Ends& ends) const;
  // The sound trigger nearest to the one wanted, before rather than behind; kNoSlot.
  Slot FindTrigger(const Away& back, const std::vector<InputPosition>& consumers) const;

  const StepFacts* facts_;
  const Needs* needs_;
  const StepOrder* order_;
  const SwapFilters* filters_;
  const StopToken* stop_;
  SwapInReaders readers_;
  Soundness soundness_;
  std::vector<Gap> gaps_;                                         // By `after`.
  std::vector<int32_t> by_bytes_;                                 // Into gaps_, smallest first.
  absl::flat_hash_map<int32_t, std::vector<int32_t>> by_buffer_;  // By id in Buffers; ascending.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_PLANNER_H_
