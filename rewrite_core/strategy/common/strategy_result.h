// The input and the result of every strategy.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_STRATEGY_RESULT_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_STRATEGY_RESULT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/state_groups.h"
#include "rewrite_core/plan/swap_plan.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

class PlanSimulator;  // simulate/plan_simulator.h, which few users of a result need.

// All must outlive the call. `options` were checked.
struct StrategyInput {
  const StepFacts& facts;
  const Eligibility& eligibility;
  const v1::RewriteOptions& options;
  const v1::Limits& limits;
  PlanSimulator* simulator;  // Null unless the strategy needs one (strategies.h).
  const StopToken& stop;
  // The plan is compared with others: no bound or hint on other options is searched.
  bool only_plan = false;
  // If not null, the steps of the searches of the strategy `budget` are added to it.
  int64_t* search_steps = nullptr;
};

struct StrategyResult {
  // The state that is moved to the host first.
  OffloadPlan offload;
  // The recomputed nodes, of the graph after these moves.
  ClonePlan clones;
  // For the graph with both (StepSubject::WithEdits), in which original nodes keep their ids.
  SwapPlan plan;
  // Why all three are empty, in one sentence; empty otherwise.
  std::string why_nothing;
  // The verdict on every output with a data reader that was considered. Empty if
  // options.decision_detail asks for none.
  std::vector<TensorDecision> decisions;
  // The strategy's part of the report: fits, its message (scope, level), warnings. Nothing else is
  // set.
  v1::RewriteReport report;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_STRATEGY_RESULT_H_
