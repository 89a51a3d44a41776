// The sets of ops that the parameters of the strategy `scope` name: the backward part, the seeds,
// what is reached from them, and what is excluded.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_SETS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_SETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/reachability.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/strategy/search_budget.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

struct ScopeSets {
  NodeFlags backward;  // B: ops in an optimizer scope or, without any, found (backward_part.h).
  int64_t backward_count = 0;
  bool backward_found = false;  // Not given but found.
  std::vector<NodeId> updates;  // The weight updates, if backward_found.
  std::vector<NodeId> seeds;    // By id.
  bool seeds_found = false;     // Not given but found.
  NodeFlags reachable;          // R: over data edges from the seeds.
  // Per node: whether its outputs are barred by excl_* or the built-in types, or are not among
  // those of incl_*.
  NodeFlags excluded;
  NodeFlags not_included;
  std::vector<std::string> unmatched_scopes;  // Optimizer scopes that match nothing.
};

// Errors (INVALID_ARGUMENT) name the option and its value. REQUIRES: CheckScopeOptions.
absl::StatusOr<ScopeSets> BuildScopeSets(const StepFacts& facts, const v1::ScopeStrategy& options,
                                         SearchBudget* budget, const StopToken& stop);

// OK if the numbers and names of `options` are in their ranges and agree with each other, whatever
// the graph. Errors: INVALID_ARGUMENT; those of CreatePatterns, which `stop` ends.
absl::Status CheckScopeOptions(const v1::ScopeStrategy& options, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_SETS_H_
