// What else a step may be like than it is simulated first, and whether a plan fits then.
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

// Whether there is memory for them: the reserve.
bool HasReserve(const BudgetRequest& request);

// TensorFlow runs any ready op, a link has not always the speed that its preset says, and variables
// lie as their initializers left them: steps that a plan for `budget_bytes` is tried in, each with
// that and a part of the reserve. REQUIRES: HasReserve.
std::vector<VariedStep> VariedSteps(const BudgetRequest& request, int64_t budget_bytes);

// In how many of those of GPU `gpu` (an index into Placement::devices()) and its budget `plan` does
// not fit. REQUIRES: HasReserve. Errors: those of Simulate.
absl::StatusOr<int> CountUnfit(const SwapPlan& plan, int32_t gpu, BudgetRequest* request);

// The warning MAY_RUN_OUT: `what` ("the plan for GPU ...") does not fit in `unfit` of them.
std::string MayRunOutText(absl::string_view what, int unfit);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_VARIATIONS_H_
