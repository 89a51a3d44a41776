// The strategy `level`: TFLMS v2, made deterministic, explained and sound, and tuned with a
// simulator that knows sizes and time. A pure function of graph, analyses and options.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_STRATEGY_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_STRATEGY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/graph_facts.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/plan_judge.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

struct LevelResult {
  SwapPlan plan;
  // Every output with a data reader, by node, then port. Empty if options.decision_detail asks for
  // none.
  std::vector<TensorDecision> decisions;
  v1::LevelReport report;
  // One per GPU that was tuned; as far as the simulator knows sizes.
  std::vector<v1::DeviceFit> fits;
};

// Chooses the swaps: for each GPU on its own, so that all at once gives what one after another
// would, unless plans that were tuned do not fit together. Differs from v2 where v2 is wrong or
// arbitrary: tensors that must not be swapped are refused (plan/eligibility.h), control edges are
// sound (level_triggers.h, serialization.h), ties break by level, then by id. `judge` may be null
// if NeedsJudge(options) is false. Errors: those of the parts.
absl::StatusOr<LevelResult> PlanLevel(const GraphFacts& facts, const Eligibility& eligibility,
                                      const v1::RewriteOptions& options, const v1::Limits& limits,
                                      PlanJudge* judge, const StopToken& stop);

// Whether something is to be tuned.
bool NeedsJudge(const v1::RewriteOptions& options);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_STRATEGY_H_
