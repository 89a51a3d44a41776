// The strategy `apply`: plans nothing, but reads a plan that was saved (plan.proto), and lets it
// through only if every strategy could have made it. It may come from anywhere.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_APPLY_STRATEGY_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_APPLY_STRATEGY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/strategy/strategy_result.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// Those of PlanningStrategy (strategies.h). INVALID_ARGUMENT, besides what is said there:
// CONFLICTING_OPTIONS for an option that the plan settles; BAD_PLAN for bytes that are no plan;
// UNKNOWN_OPTION for one of a newer Spillway.
absl::Status CheckApplyStrategy(const v1::RewriteOptions& options, const StopToken& stop);

// INVALID_ARGUMENT (OTHER_GRAPH) unless the plan was made for this graph.
absl::Status CheckApplyGraph(const v1::RewriteOptions& options, const Graph& graph,
                             const StopToken& stop);

// Whether the plan is for the graph with its calls inlined.
bool AppliesInlined(const v1::RewriteOptions& options);

// The plan's step, with what the options say of it in the place of what the plan does.
v1::Step ApplyStep(const v1::RewriteOptions& options);

// The plan. INVALID_ARGUMENT (BAD_PLAN) for what no plan may do, naming it; RESOURCE_EXHAUSTED
// (SEARCH_TOO_LONG) where judging it takes too long.
absl::StatusOr<StrategyResult> PlanApply(const StrategyInput& input);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_APPLY_STRATEGY_H_
