// The strategy `scope`: TFLMS v1, made deterministic, explained and sound. A pure function of
// graph, analyses and options.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_STRATEGY_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_STRATEGY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/scope/scope_sets.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

struct ScopeResult {
  SwapPlan plan;
  // Every output with a reader, of every op considered, in the order of the walk. Empty if
  // options.decision_detail asks for none.
  std::vector<TensorDecision> decisions;
  v1::ScopeReport report;
  std::vector<std::string> unmatched_scopes;
};

// Chooses the swaps. Differs from v1 where v1 is wrong or arbitrary: tensors that must not be
// swapped are refused (plan/eligibility.h), triggers are sound (trigger_search.h), ties break by
// order, then by id.
absl::StatusOr<ScopeResult> PlanScope(const StepFacts& facts, const Eligibility& eligibility,
                                      const v1::RewriteOptions& options, const v1::Limits& limits,
                                      const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_STRATEGY_H_
