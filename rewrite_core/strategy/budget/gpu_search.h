// Searches for one GPU's plan (SearchPlan), with one budget or with many: for the fastest plan, for
// the smallest sufficient budget, and for a plan that also fits in other orders and times.
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
#include "rewrite_core/strategy/order/step_order.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// Whether the operations with large buffers may be chained in a plan's order (order_chain.h).
enum class OrderChains { kForbidden, kAllowed };

class GpuSearch {
 public:
  // `gpu`: the GPU of `order` and `planner`. `other_swaps`: the swaps of the other GPUs so far.
  // Results are reported in `device`. All must outlive it.
  GpuSearch(GpuIndex gpu, const std::vector<PlannedSwap>& other_swaps, const Needs& needs,
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

  // Searches with all of `budget`; if no plan is found, searches with less for one that fits
  // `budget`. If there is a reserve, the plan may not fit in other sizes: MakeSteady handles that.
  absl::StatusOr<PlanSearchResult> Fastest(int64_t budget);

  // Finds, with the lowest effort, the smallest budget with a plan that is fast enough, and then a
  // plan for that budget with the full effort. It fits `usable` and the other sizes, too. If there
  // is none, returns what Fastest finds.
  absl::StatusOr<PlanSearchResult> Least(int64_t usable);

  // The reserve covers other orders and times, and other placements of variables. If a plan does
  // not fit in these variations, or in the other sizes, the operations with large buffers are
  // chained in its order, if `chains` allows it. If that fails, this searches for the fastest plan
  // that fits in all of them, or else in all sizes; if that fails too, `found` is left without a
  // plan. REQUIRES: a best plan in `found`.
  absl::Status MakeSteady(int64_t usable, OrderChains chains, PlanSearchResult* found);

  // Reports in how many of the variations `plan` does not fit, if there is a reserve.
  absl::Status ReportVariations(const SwapPlan& plan);

  // Returns the smallest budget known to suffice, from searches with the lowest effort; 0 if none
  // is known. Less than `lower_bound_bytes` never suffices.
  absl::StatusOr<int64_t> SmallestBudget(int64_t lower_bound_bytes);

 private:
  // A plan for `budget` must fit `usable`, too, and the other sizes, if requested.
  PlanSearchTerms TermsOf(int64_t budget, int64_t usable, bool in_other_sizes) const;
  absl::StatusOr<PlanSearchResult> Search(const PlanSearchTerms& terms);
  absl::StatusOr<PlanSearchResult> Fastest(int64_t budget, bool in_other_sizes);
  absl::StatusOr<int> CountUnfitChained(int64_t usable, OrderChains chains, FoundPlan* found);
  SwapPlan PlanOf(const FoundPlan& found) const;
  // Returns the number of variations in which `plan` does not fit; more than there are if the step
  // takes longer than `most_ns`, or does not fit in all sizes.
  absl::StatusOr<int> CountUnfitInAll(const SwapPlan& plan, int64_t usable, int64_t most_ns);
  void TellVariations(int unfit);
  void CountSimulations(const PlanSearchResult& found);

  const GpuIndex gpu_;
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
