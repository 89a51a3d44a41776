// Variations of the step that is simulated first, and whether a plan fits in them.
//
// Thread safety: pure functions; CountUnfit is one thread at a time, as its request is.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_VARIATIONS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_VARIATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/plan_search.h"

namespace spillway::core {

inline constexpr int kNumVariations = 20;

// Whether there is memory for them beyond the budget: the reserve.
bool HasReserve(const BudgetRequest& request);

// TensorFlow runs any ready op, a link is not always as fast as its preset, and variables are
// placed as their initializers left them. Returns the steps in which a plan for `budget_bytes` is
// tried, each with that budget and a part of the reserve. REQUIRES: HasReserve.
std::vector<VariedStep> VariedSteps(const BudgetRequest& request, int64_t budget_bytes);

// Returns in how many of these steps `plan` does not fit, for GPU `gpu` and its budget. REQUIRES:
// HasReserve. Errors: those of Simulate.
absl::StatusOr<int> CountUnfit(const SwapPlan& plan, GpuIndex gpu, BudgetRequest* request);

// Returns the warning MAY_RUN_OUT: `what` ("the plan for GPU ...") does not fit in `unfit` of them.
std::string MayRunOutText(absl::string_view what, int unfit);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_VARIATIONS_H_
