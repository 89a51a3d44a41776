// The verdict of the strategy `budget` on every tensor.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_DECISIONS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_DECISIONS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/common/op_filter.h"

namespace spillway::core {

// Returns the verdict on every output with a data reader, in order of nodes. `has_gap`: buffers
// with a gap; `idle`: devices where no swapping is needed. Errors: those of `stop`.
absl::StatusOr<std::vector<TensorDecision>> DecideTensors(
    const StepFacts& facts, const Eligibility& eligibility, const SwapFilters& filters,
    const SwapPlan& plan, const std::set<int32_t>& has_gap, const std::set<DeviceId>& idle,
    const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_DECISIONS_H_
