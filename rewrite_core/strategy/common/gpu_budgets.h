// Shared by strategies that plan for a budget, one GPU after the other: checks that sizes are
// known, and plans that fit each GPU alone, but not all at once.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_GPU_BUDGETS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_GPU_BUDGETS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"

namespace spillway::core {

// The share of each GPU's budget that plans may use, tried in this order: smaller ones if plans do
// not fit together.
inline constexpr double kBudgetShares[] = {1.0, 0.95, 0.9, 0.8};

// INVALID_ARGUMENT (BAD_OPTION batch_size) naming a node of the step whose batch size is not known:
// a plan that must fit needs sizes, and an unknown batch would count as 0. `instead`: a further
// remedy, appended to the message's list; may be empty. REQUIRES: kShapes, kActiveNodes.
absl::Status CheckKnownBatch(const StepFacts& facts, absl::string_view instead);

// Whether `plan`, made for each GPU while the others had unlimited memory, fits on all GPUs at
// once, within their budgets and in all of their memory: they may wait for each other, and hold
// memory for longer. If not, sets `failure`. REQUIRES:
// kPlacement, kHardware; likewise below.
absl::StatusOr<bool> SimulateTogether(const SwapPlan& plan, const StepFacts& facts,
                                      PlanSimulator* simulator, const StopToken& stop,
                                      FitFailure* failure);

// FAILED_PRECONDITION (DOES_NOT_FIT): no plan that fits each GPU alone fits them all together.
// `unswapped_peak_bytes`: the highest peak of a GPU in the unswapped step. The remedy is the need
// of each GPU in the unswapped step: whether less suffices would take another search.
absl::Status NotTogetherError(const FitFailure& failure, int64_t unswapped_peak_bytes,
                              const StepFacts& facts, PlanSimulator* simulator,
                              const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_GPU_BUDGETS_H_
