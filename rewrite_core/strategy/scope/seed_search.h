// Finds the ops from which the strategy `scope` starts if none are given.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SEED_SEARCH_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SEED_SEARCH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/strategy/common/search_budget.h"

namespace spillway::core {

// The candidates are the ops outside the backward part that feed an op of it over a data edge. The
// count of each is the number of other candidates that a walk from it over data edges outside the
// backward part reaches; the seeds are those with the highest count, by id. (TFLMS v1.) Empty if
// there is no candidate, or none reaches another. Errors: those of `budget`.
absl::StatusOr<std::vector<NodeId>> FindSeeds(const Graph& graph, const Topology& topology,
                                              const NodeFlags& backward, SearchBudget* budget);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SEED_SEARCH_H_
