// The strategy `level`: TFLMS v2, made deterministic, explained and sound, and tuned with a
// simulator that knows sizes and time.
//
// Each GPU is planned separately, so that one request for all gives the same as one for each,
// unless tuned plans do not fit together. Differs from v2 if v2 is wrong or arbitrary: tensors that
// must not be swapped are refused (plan/eligibility.h), control edges are sound (plan/soundness.h,
// serialization.h), ties break by level, then by id.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_STRATEGY_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_STRATEGY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/strategy/common/strategy_result.h"

namespace spillway::core {

// The functions of PlanningStrategy (strategies.h). There is a decision on every output with a data
// reader, by node, then port. A simulator is needed if anything must be tuned.
absl::Status CheckLevelStrategy(const v1::RewriteOptions& options, const StopToken& stop);
bool LevelNeedsSimulator(const v1::RewriteOptions& options);
absl::StatusOr<StrategyResult> PlanLevel(const StrategyInput& input);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_STRATEGY_H_
