// The sets of ops that the parameters of the strategy `scope` define: the backward part, the seeds,
// the ops reached from them, and the excluded ops.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_SETS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_SETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

struct ScopeSets {
  NodeFlags backward;  // B: ops in optimizer scopes or, if none is given, found (backward_part.h).
  int64_t backward_count = 0;
  bool backward_found = false;  // Not given but found.
  std::vector<NodeId> updates;  // The weight updates, if backward_found.
  std::vector<NodeId> seeds;    // By id.
  bool seeds_found = false;     // Not given but found.
  NodeFlags reachable;          // R: over data edges from the seeds.
  // Per node: whether its outputs are excluded by excl_* or the built-in types, or not included by
  // incl_*.
  NodeFlags excluded;
  NodeFlags not_included;
  std::vector<std::string> unmatched_scopes;  // Optimizer scopes that match nothing.
};

// Errors (INVALID_ARGUMENT) name the option and its value. REQUIRES: CheckScopeOptions.
absl::StatusOr<ScopeSets> BuildScopeSets(const StepFacts& facts, const v1::ScopeStrategy& options,
                                         SearchBudget* budget, const StopToken& stop);

// Checks that the numbers and names of `options` are in range and agree with each other. Does not
// depend on the graph. Errors: INVALID_ARGUMENT; those of CreatePatterns, including those of
// `stop`.
absl::Status CheckScopeOptions(const v1::ScopeStrategy& options, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_SETS_H_
