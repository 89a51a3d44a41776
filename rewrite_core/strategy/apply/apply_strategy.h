// The strategy `apply`: does not plan, but reads a saved plan (plan.proto), which may come from
// anywhere, and accepts it only if it obeys the rules that all strategies obey.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_APPLY_STRATEGY_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_APPLY_STRATEGY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// The functions of PlanningStrategy (strategies.h). INVALID_ARGUMENT, besides the errors listed
// there: CONFLICTING_OPTIONS for an option that the plan determines; BAD_PLAN for malformed bytes;
// UNKNOWN_OPTION for a plan of a newer Spillway.
absl::Status CheckApplyStrategy(const v1::RewriteOptions& options, const StopToken& stop);

// INVALID_ARGUMENT (OTHER_GRAPH) unless the plan was made for this graph.
absl::Status CheckApplyGraph(const v1::RewriteOptions& options, const Graph& graph,
                             const StopToken& stop);

// Whether the plan is for the graph with its calls inlined.
bool AppliesInlined(const v1::RewriteOptions& options);

// Returns the plan's step, with the fields that the options set overridden.
v1::Step ApplyStep(const v1::RewriteOptions& options);

// Returns the plan. INVALID_ARGUMENT (BAD_PLAN), naming the part that breaks a rule;
// RESOURCE_EXHAUSTED (SEARCH_TOO_LONG) if checking it takes too long.
absl::StatusOr<StrategyResult> PlanApply(const StrategyInput& input);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_APPLY_STRATEGY_H_
