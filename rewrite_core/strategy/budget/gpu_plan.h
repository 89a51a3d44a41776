// The plan of the strategy `budget` for one GPU: its own, or that of `level` if that is faster.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_PLAN_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_PLAN_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/ordered_step.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// If a plan reaches less than this fraction of the speed that the bound allows, `level` is tuned,
// too.
inline constexpr double kFarFromBound = 0.85;

struct GpuPlanTerms {
  const WantedGpu& gpu;
  int64_t usable_bytes = 0;  // The share of the budget to plan for, in bytes.
  // The swaps of the other GPUs so far: every plan includes them.
  const std::vector<PlannedSwap>& other_swaps;
  // Whether the plan of `level` may be taken: together with the edges that plans of other GPUs
  // have, its edges may close a cycle.
  bool may_be_level = true;
};

struct GpuPlan {
  // Without other_swaps; with the order edges of all GPUs, or those of `level`'s plan.
  SwapPlan plan;
  v1::DeviceFit fit;
};

// Plans a GPU within usable_bytes. `unswapped_fit`: its memory use in the unswapped step
// (FitOfUnswapped). Adds the buffers (Buffers::buffers()) with a gap to `has_gap`. Rewrites
// `report`, even if there is no plan. Errors: DOES_NOT_FIT if no plan is found, or none that is
// fast enough; those of the simulator.
absl::StatusOr<GpuPlan> PlanGpu(const GpuPlanTerms& terms, const Needs& needs,
                                const v1::DeviceFit& unswapped_fit, BudgetRequest* request,
                                OrderedStep* ordered, std::set<int32_t>* has_gap,
                                v1::BudgetDevice* report);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_PLAN_H_
