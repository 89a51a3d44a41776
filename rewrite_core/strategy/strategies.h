// The strategies, as a closed table. To add one, write its folder, its cases in StrategyOf and
// FindStrategy (the compiler complains if they are missing), its place in Strategies
// (strategies.cc), and its message and its value of `Strategy` in the API.
//
// Thread safety: constant.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_STRATEGIES_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_STRATEGIES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// The functions of one strategy. They have no state.
struct PlanningStrategy {
  // Refuses options that are invalid for any graph: INVALID_ARGUMENT naming the option. Also those
  // of `stop`.
  absl::Status (*check)(const v1::RewriteOptions& options, const StopToken& stop);
  // Whether it needs a simulator.
  bool (*needs_simulator)(const v1::RewriteOptions& options);
  // The step for which facts are computed: options.step, unless the strategy's own options add to
  // it (ApplyStrategy.plan).
  v1::Step (*step)(const v1::RewriteOptions& options);
  // Refuses a graph, without Spillway's edits, if the options are for another one
  // (ApplyStrategy.plan names its graph): INVALID_ARGUMENT. Also those of `stop`.
  absl::Status (*check_graph)(const v1::RewriteOptions& options, const Graph& graph,
                              const StopToken& stop);
  // Chooses the swaps: a pure function. Errors: INVALID_ARGUMENT for options that do not suit the
  // graph, FAILED_PRECONDITION (DOES_NOT_FIT), those of the facts and of `stop`.
  absl::StatusOr<StrategyResult> (*plan)(const StrategyInput& input);
  // Whether ops behind a loop may have no place in its order, so that it may swap more if the loop
  // is one op, a While.
  bool may_lose_order_behind_loops = false;
};

// The strategies of this build that choose swaps, strongest first; the first one is the default.
// `apply` and `strip` choose none.
absl::Span<const v1::Strategy> Strategies();

// Returns the strategy that `options` ask for.
v1::Strategy StrategyOf(const v1::RewriteOptions& options);

// Returns the functions of that strategy; null for `strip`, which plans nothing.
const PlanningStrategy* FindStrategy(const v1::RewriteOptions& options);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_STRATEGIES_H_
