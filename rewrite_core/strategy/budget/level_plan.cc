#include "rewrite_core/strategy/budget/level_plan.h"

#include <utility>

#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/common/op_filter.h"
#include "rewrite_core/strategy/level/level_candidates.h"
#include "rewrite_core/strategy/level/level_filters.h"
#include "rewrite_core/strategy/level/level_order.h"
#include "rewrite_core/strategy/level/level_pacing.h"
#include "rewrite_core/strategy/level/level_parameters.h"
#include "rewrite_core/strategy/level/level_planner.h"
#include "rewrite_core/strategy/level/level_tuning.h"

namespace spillway::core {

absl::StatusOr<absl::optional<LevelPlan>> TunePacedLevel(
    const StepFacts& facts, const Eligibility& eligibility, const v1::BudgetStrategy& options,
    const WantedGpu& gpu, int64_t budget_bytes, const std::string& cpu_device, SearchBudget* steps,
    PlanSimulator* simulator, const StopToken& stop) {
  v1::LevelStrategy level;
  CopyFilters(options, &level);
  auto filters = LevelFilters::Create(facts, level, stop);
  if (GetErrorReason(filters.status()) == v1::ERROR_REASON_BAD_OPTION) {
    return absl::optional<LevelPlan>();  // Its built-in list excludes what they leave.
  }
  if (!filters.ok()) return filters.status();
  auto levels = LevelOrder::Build(facts.graph(), facts.topology(), facts.control_flow(), {}, stop);
  if (!levels.ok()) return levels.status();
  auto candidates = LevelCandidates::Find(facts, eligibility, *filters, *levels,
                                          /*least_threshold=*/1, v1::DECISION_DETAIL_NONE, stop);
  if (!candidates.ok()) return candidates.status();
  SwapPlan base;
  base.cpu_device = cpu_device;
  auto pacing = LevelPacing::Create(facts, base, {gpu.index}, LevelPacing::Serialization::kOff,
                                    simulator, stop);
  if (!pacing.ok()) return pacing.status();
  base.controls = (*pacing)->order_edges();
  LevelPlanner planner(facts, *filters, *levels, *candidates, gpu, steps, pacing->get());
  auto tuned = TuneLevel(LevelParameters(level).setting, base, gpu.index, budget_bytes, facts,
                         &planner, simulator, stop);
  if (tuned.ok()) {
    LevelPlan plan;
    plan.report.set_device(gpu.name);
    ReportSetting(tuned->setting, &plan.report);
    *plan.report.mutable_tuning() = std::move(tuned->report);
    plan.plan = std::move(base);
    plan.plan.swaps = std::move(tuned->swaps);
    return absl::optional<LevelPlan>(std::move(plan));
  }
  if (GetErrorReason(tuned.status()) == v1::ERROR_REASON_DOES_NOT_FIT) {
    return absl::optional<LevelPlan>();
  }
  return tuned.status();
}

}  // namespace spillway::core
