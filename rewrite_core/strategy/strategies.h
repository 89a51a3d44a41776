// The strategies, as a closed table. To add one: its folder, its cases in StrategyOf and
// FindStrategy, which the compiler asks for, and its place in Strategies (strategies.cc), its
// message and its value of `Strategy` in the API.
//
// Thread safety: constant.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_STRATEGIES_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_STRATEGIES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/strategy/strategy_result.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// How to plan with one strategy: functions without state.
struct PlanningStrategy {
  // Refuses what is wrong with its options, whatever the graph: INVALID_ARGUMENT naming the option.
  // Those of `stop`, too.
  absl::Status (*check)(const v1::RewriteOptions& options, const StopToken& stop);
  // Whether it asks a simulator.
  bool (*needs_simulator)(const v1::RewriteOptions& options);
  // What the facts of the step are computed with: options.step, unless the strategy's own options
  // say more of it (LevelStrategy.autotune_gpu_mem).
  v1::Step (*step)(const v1::RewriteOptions& options);
  // Refuses a graph, without edits of Spillway, that its options are not for (ApplyStrategy.plan
  // names one): INVALID_ARGUMENT. Those of `stop`, too.
  absl::Status (*check_graph)(const v1::RewriteOptions& options, const Graph& graph,
                              const StopToken& stop);
  // Chooses the swaps: a pure function. Errors: INVALID_ARGUMENT for options that do not go with
  // the graph, FAILED_PRECONDITION (DOES_NOT_FIT), those of the facts and of `stop`.
  absl::StatusOr<StrategyResult> (*plan)(const StrategyInput& input);
};

// The strategies of this build, strongest first; the first one is the default.
absl::Span<const v1::Strategy> Strategies();

// Which one `options` ask for.
v1::Strategy StrategyOf(const v1::RewriteOptions& options);

// How to plan as `options` ask; null for `strip`, which plans nothing.
const PlanningStrategy* FindStrategy(const v1::RewriteOptions& options);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_STRATEGIES_H_
