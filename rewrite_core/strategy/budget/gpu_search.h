// Searches for one GPU (SearchPlan) with one budget and with many: for the fastest plan, for the
// least budget that does, and for a plan that is steadier in other orders and times.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/ordered_step.h"
#include "rewrite_core/strategy/budget/plan_search.h"
#include "rewrite_core/strategy/budget/step_order.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// Whether the heavy operations may be held in a plan's order, one after another.
enum class OrderChains { kForbidden, kAllowed };

class GpuSearch {
 public:
  // `gpu`: an index into Placement::devices(), of which `order` and `planner` are. `other_swaps`:
  // what the other GPUs have so far. What is found out is told in `device`. All must outlive it.
  GpuSearch(int32_t gpu, const std::vector<PlannedSwap>& other_swaps, const Needs& needs,
            const OrderedStep& ordered, const StepOrder& order, const BudgetPlanner& planner,
            BudgetRequest* request, v1::BudgetDevice* device)
      : gpu_(gpu),
        other_swaps_(other_swaps),
        needs_(needs),
        ordered_(ordered),
        order_(order),
        planner_(planner),
        request_(*request),
        device_(*device) {}

  // With all of `budget`; where no plan is found, one is looked for that does with less, and fits
  // it. Where there is a reserve, in other sizes it may not fit: MakeSteady sees to that.
  absl::StatusOr<PlanSearchResult> Fastest(int64_t budget);

  // A plan that is fast enough for the least budget, found with the least effort, and then one for
  // that budget with all effort. It fits `usable` and the other sizes, too. Where there is none,
  // what Fastest finds.
  absl::StatusOr<PlanSearchResult> Least(int64_t usable);

  // The reserve is for other orders and times, and for where variables lie. Where a plan does not
  // fit in these variations, or in the other sizes, the heavy operations are held in its order
  // (if `chains` allows it); where that does not do, the fastest is looked for that fits in all of
  // them, or else in the sizes; or there is none. REQUIRES: a best plan in `found`.
  absl::Status MakeSteady(int64_t usable, OrderChains chains, PlanSearchResult* found);

  // In how many of the variations `plan` does not fit, is told, where there is memory beyond the
  // budget.
  absl::Status ReportVariations(const SwapPlan& plan);

  // The smallest budget known to do, by searches with the least effort; 0: none is known. With less
  // than `lower_bound_bytes` none does.
  absl::StatusOr<int64_t> SmallestBudget(int64_t lower_bound_bytes);

 private:
  // A plan for `budget` fits `usable`, too; and the other sizes, if asked for.
  PlanSearchTerms TermsOf(int64_t budget, int64_t usable, bool in_other_sizes) const;
  absl::StatusOr<PlanSearchResult> Search(const PlanSearchTerms& terms);
  absl::StatusOr<PlanSearchResult> Fastest(int64_t budget, bool in_other_sizes);
  absl::StatusOr<int> CountUnfitChained(int64_t usable, OrderChains chains, FoundPlan* found);
  SwapPlan PlanOf(const FoundPlan& found) const;
  // Of the variations; more than there are if it takes longer, or does not fit in all sizes.
  absl::StatusOr<int> CountUnfitInAll(const SwapPlan& plan, int64_t usable, int64_t most_ns);
  void TellVariations(int unfit);
  void CountSimulations(const PlanSearchResult& found);

  const int32_t gpu_;
  const std::vector<PlannedSwap>& other_swaps_;
  const Needs& needs_;
  const OrderedStep& ordered_;
  const StepOrder& order_;
  const BudgetPlanner& planner_;
  BudgetRequest& request_;
  v1::BudgetDevice& device_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_SEARCH_H_
