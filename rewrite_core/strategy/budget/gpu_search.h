// The plan of the strategy `budget` for one GPU, from searches (plan_search.h) with one budget or
// with many.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_SEARCH_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/plan_trials.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"
#include "rewrite_core/strategy/order/ordered_step.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

struct GpuTerms {
  const WantedGpu& gpu;
  int64_t usable_bytes = 0;  // The share of the budget to plan for, in bytes.
  // The swaps of the other GPUs so far: every plan includes them.
  const std::vector<PlannedSwap>& other_swaps;
  // The lower bounds of the GPU, in the order of the ordered step.
  const DeviceBounds& bounds;
  // A plan that takes no longer is not improved: the step takes this anyway.
  int64_t enough_ns = 0;
};

struct GpuPlan {
  // The plan, without other_swaps; and slower ones that fit, too, the fastest first.
  std::vector<FoundPlan> plans;
  bool cut_short = false;  // max_search_steps ended the search.
  int64_t fastest_ns = 0;  // The step time of the first plan.
};

// Plans a GPU within usable_bytes. Adds the buffers with a gap to `has_gap`. Rewrites `report`,
// even if there is no plan. Errors: DOES_NOT_FIT if no plan is found, or none that is fast enough;
// those of the simulator.
absl::StatusOr<GpuPlan> PlanGpu(const GpuTerms& terms, const Needs& needs,
                                const OrderedStep& ordered, BudgetRequest* request,
                                std::set<BufferIndex>* has_gap, v1::BudgetDevice* report);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_SEARCH_H_
