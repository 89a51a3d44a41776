// A total order of all nodes of a graph in which no edge goes back, for Soundness: control edges
// that follow it close no cycle, however many are added. Kernels are in order of launch, as far as
// the whole graph allows that. (A StepOrder alone is no such order: the nodes that lead to a fed
// node are in the graph, but not in the step, and might come after those that the fed node leads
// to.)
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_LAUNCH_RANKS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_LAUNCH_RANKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/simulate/plan_simulator.h"

namespace spillway::core {

// Returns, by node, numbers that grow along every edge of the graph, except back edges of loops,
// and along `added`; none if these close a cycle. `step`: with unlimited memory, operations
// recorded. Errors: those of `stop`.
absl::StatusOr<std::vector<int32_t>> RankByLaunch(const StepFacts& facts, const StepResult& step,
                                                  absl::Span<const ControlEdge> added,
                                                  const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_LAUNCH_RANKS_H_
