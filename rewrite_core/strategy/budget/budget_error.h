// The DOES_NOT_FIT errors of the strategy `budget` about one GPU.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_ERROR_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_ERROR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/ordered_step.h"

namespace spillway::core {

// No plan was found for `gpu`, or none exists. `failure`: that of the plan that got furthest.
// `smallest_budget_bytes`: a budget with which a plan is found; 0: none is known; likewise below.
absl::Status NoPlanError(const BudgetRequest& request, const OrderedStep& ordered, GpuIndex gpu,
                         const DeviceBounds& bounds, const StepResult& failure,
                         int64_t smallest_budget_bytes);

// The fastest plan found takes `step_time_ns`, more than max_slowdown allows.
absl::Status SlowPlanError(const BudgetRequest& request, GpuIndex gpu, int64_t step_time_ns,
                           int64_t smallest_budget_bytes);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_ERROR_H_
