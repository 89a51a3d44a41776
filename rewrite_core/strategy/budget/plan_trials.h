// Tries the plans of a search (plan_search.h) on the simulator, within its terms and limits, and
// keeps the best one, and the failure of the last one.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_TRIALS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_TRIALS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

// A variation of the step, with this much memory.
struct VariedStep {
  StepVariation variation;
  int64_t bytes = 0;
};

struct PlanSearchTerms {
  GpuIndex gpu{0};
  int64_t budget_bytes = 0;
  // The swaps of other GPUs, which have unlimited memory: every plan includes them.
  std::vector<PlannedSwap> other_swaps;
  // Other sizes of memory in which a plan must fit: since memory is placed, a plan may fit one size
  // and not a larger one.
  std::vector<int64_t> other_budgets;
  // Variations of the step in which it must fit, too; they do not count as simulations.
  std::vector<VariedStep> varied_steps;
  // A plan that takes no longer is not improved: the step time with unlimited memory, or more.
  int64_t enough_ns = 0;
  // At most this many plans are simulated; a plan in several sizes counts once for each. At
  // least 1.
  int max_simulations = 1;
  // How many plans to return.
  size_t num_kept = 1;
};

struct FoundPlan {
  std::vector<PlannedSwap> swaps;  // Without other_swaps.
  // Besides the base's: guards (host_reads.h), and a chain (order_chain.h), which SearchPlan does
  // not make.
  std::vector<ControlEdge> controls;
  StepResult outcome;  // With the budget.
};

// The whole plan, as simulated: `found`, `base` and the swaps of other GPUs.
SwapPlan WholePlan(const SwapPlan& base, const FoundPlan& found,
                   const std::vector<PlannedSwap>& other_swaps);

struct PlanSearchResult {
  // The fastest plan, if any, and those that were the fastest before it was found, the last one
  // first.
  std::vector<FoundPlan> plans;
  // Without plans: the outcome of the plan that got furthest, and whether it fits the budget, but
  // not enough of the variations, or not all of the memory.
  StepResult failure;
  bool is_fragile = false;
  bool cut_short = false;  // The request's search steps (max_search_steps) ended it.
};

class PlanTrials {
 public:
  enum class Verdict { kBetter, kNotBetter, kDoesNotFit };
  struct Tried {
    Verdict verdict = Verdict::kNotBetter;
    // If the plan does not fit: the slot at which it ran out. kNoSlot: not on this GPU, or the
    // resident buffers do not fit.
    Slot at = kNoSlot;
  };

  // The arguments are those of SearchPlan. All must outlive it.
  PlanTrials(const PlanSearchTerms& terms, const SwapPlan& base, const BudgetPlanner& planner,
             const StepOrder& order, PlanSimulator* simulator, const StopToken& stop)
      : terms_(terms),
        planner_(planner),
        order_(order),
        simulator_(simulator),
        stop_(stop),
        varied_steps_(terms.varied_steps),
        num_base_controls_(base.controls.size()),
        plan_(base) {}

  // kPieces: if the plan does not fit, the memory map at its failure is wanted, too (pieces()).
  enum class Want { kVerdict, kPieces };

  // Simulates the plan, and keeps it if it is better than the best. A plan that was simulated
  // before is not simulated again, unless its pieces are wanted. Errors: those of Simulate.
  absl::StatusOr<Verdict> Try(const std::vector<Eviction>& evictions, Want want);
  // Counts a try that led to no plan.
  void CountTry() { ++tries_; }

  // The verdict on the last plan, and the memory map at its failure, if memory was fragmented
  // (StepResult::pieces).
  const Tried& last() const { return last_; }
  const std::vector<StepResult::Piece>& pieces() const { return pieces_; }
  int64_t piece_bytes() const { return piece_bytes_; }

  bool has_best() const { return !result_.plans.empty(); }
  const std::vector<Eviction>& best() const { return best_; }
  // While has_best() is false: the plan that got furthest.
  const std::vector<Eviction>& furthest() const { return furthest_; }

  // The simulations so far, as MaySimulate counts them.
  int num_simulations() const { return simulations_ - ended_early_ / kEarlyPart; }
  int64_t best_ns() const { return result_.plans[0].outcome.step_time_ns(); }
  bool MaySimulate() const;
  // Whether at most this share of all simulations is used, and the best plan can still be improved.
  bool MaySimulate(double share) const {
    return MaySimulate() && num_simulations() <= share * terms_.max_simulations && !IsDone();
  }
  // Whether the best plan is fast enough (PlanSearchTerms::enough_ns).
  bool IsDone() const;

  PlanSearchResult TakeResult() &&;

 private:
  // Simulations that ended early, since the plan runs out of memory or is slower than the best,
  // cost less: 1/kEarlyPart of them does not count.
  static constexpr int kEarlyPart = 2;
  static constexpr Slot kNoneYet{std::numeric_limits<int32_t>::min()};

  int64_t CopyTime(const std::vector<Eviction>& evictions) const;
  absl::StatusOr<Verdict> Simulate(const std::vector<Eviction>& evictions);
  bool IsWorthwhile(int64_t step_time_ns, int64_t bytes) const;
  absl::StatusOr<bool> FitsVaried();
  absl::StatusOr<StepResult> Simulate(int64_t budget_bytes, int64_t cutoff_ns, bool placed_alone);
  Verdict Fail(StepResult outcome, const std::vector<Eviction>& evictions);
  Slot SlotOf(const OutOfMemory& oom) const;

  const PlanSearchTerms& terms_;
  const BudgetPlanner& planner_;
  const StepOrder& order_;
  PlanSimulator* const simulator_;
  const StopToken& stop_;
  std::vector<VariedStep> varied_steps_;  // The one that failed last comes first.
  const size_t num_base_controls_;
  SwapPlan plan_;  // The base, and the swaps under test.
  std::vector<Eviction> best_;
  int64_t best_bytes_ = 0;  // Bytes that it copies, one way.
  absl::flat_hash_map<uint64_t, Tried> tried_;
  Tried last_;
  std::vector<StepResult::Piece> pieces_;
  int64_t piece_bytes_ = 0;
  std::vector<Eviction> furthest_;
  Slot furthest_slot_ = kNoneYet;
  int64_t tries_ = 0;
  int simulations_ = 0, ended_early_ = 0;
  PlanSearchResult result_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_PLAN_TRIALS_H_
