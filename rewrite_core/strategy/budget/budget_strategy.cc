#include "rewrite_core/strategy/budget/budget_strategy.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/budget_run.h"
#include "rewrite_core/strategy/budget/joint_search.h"
#include "rewrite_core/strategy/budget/objective.h"
#include "rewrite_core/strategy/common/op_filter.h"

namespace spillway::core {

absl::Status CheckBudgetStrategy(const v1::RewriteOptions& options, const StopToken&) {
  const v1::PlanningEffort effort = options.budget().planning_effort();
  const v1::Recompute recompute = options.budget().recompute();
  if (!v1::Recompute_IsValid(recompute)) {
    return InvalidError(
        v1::ERROR_REASON_UNKNOWN_OPTION,
        absl::StrCat("recompute is ", static_cast<int>(recompute),
                     ", which this server does not know; it is OFF, CHEAP or ALL"),
        {{"option", "recompute"}, {"value", absl::StrCat(static_cast<int>(recompute))}});
  }
  if (v1::PlanningEffort_IsValid(effort)) {
    absl::Status s = CheckObjective(options.budget());
    return s.ok() ? SwapFilters::Check(options.budget()) : s;
  }
  return InvalidError(
      v1::ERROR_REASON_UNKNOWN_OPTION,
      absl::StrCat("planning_effort is ", static_cast<int>(effort),
                   ", which this server does not know; it is LOW, MEDIUM or HIGH"),
      {{"option", "planning_effort"}, {"value", absl::StrCat(static_cast<int>(effort))}});
}

absl::StatusOr<StrategyResult> PlanBudget(const StrategyInput& input) {
  SearchBudget steps(input.limits.max_search_steps(), input.stop);
  BudgetRun run(input, &steps);
  if (absl::Status s = run.Simulate(); !s.ok()) return s;
  if (run.needs_plan()) {
    absl::Status s = run.Order();
    if (s.ok())
      s = MayRecompute(input.options) ? PlanJointly(input, &steps, &run) : run.PlanSwaps();
    if (!s.ok()) return s;
  }
  return run.Finish();
}

}  // namespace spillway::core
