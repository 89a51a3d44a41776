// The strategy `scope`: TFLMS v1, made deterministic, explained and sound.
//
// Differs from v1 if v1 is wrong or arbitrary: tensors that must not be swapped are refused
// (plan/eligibility.h), triggers are sound (plan/soundness.h), ties break by order, then by id.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_STRATEGY_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_STRATEGY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/strategy/common/strategy_result.h"

namespace spillway::core {

// The functions of PlanningStrategy (strategies.h). There is a decision on every output with a
// reader of every op considered, in the order of the walk. No simulator is used.
absl::Status CheckScopeStrategy(const v1::RewriteOptions& options, const StopToken& stop);
absl::StatusOr<StrategyResult> PlanScope(const StrategyInput& input);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_STRATEGY_H_
