#include "rewrite_core/swapped_step.h"

#include <algorithm>
#include <utility>

#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/step_judge.h"
#include "rewrite_core/step_model.h"
#include "rewrite_core/strategy/level/level_parameters.h"
#include "rewrite_core/strategy/level/level_strategy.h"

namespace spillway::core {

absl::StatusOr<SwappedStep> ForecastSwapped(const Graph& graph, const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop) {
  const v1::RewriteOptions step_options = WithAutotuneMemory(options);
  const StepFacts facts(graph, step_options);
  auto eligibility = Eligibility::Create(facts, options, stop);
  if (!eligibility.ok()) return eligibility.status();
  auto model = StepModel::Create(facts, stop);
  if (!model.ok()) return model.status();
  SwappedStep step;
  auto unswapped = (*model)->Build(/*plan=*/nullptr, /*notes=*/nullptr, stop);
  if (!unswapped.ok()) return unswapped.status();
  auto full_speed = (*model)->Forecast(*unswapped, /*no_budget=*/true, /*with_bounds=*/false, stop);
  if (!full_speed.ok()) return full_speed.status();
  step.full_speed_ns = full_speed->step_time_ns();

  StepJudge judge(**model);
  auto result = PlanLevel(facts, *eligibility, options, limits, &judge, stop);
  if (GetErrorReason(result.status()) == v1::ERROR_REASON_DOES_NOT_FIT) return step;
  if (!result.ok()) return result.status();
  auto workload = (*model)->Build(&result->plan, /*notes=*/nullptr, stop);
  if (!workload.ok()) return workload.status();
  auto forecast = (*model)->Forecast(*workload, /*no_budget=*/false, /*with_bounds=*/false, stop);
  if (!forecast.ok()) return forecast.status();
  // Each GPU fits on its own; together they may still be in each other's way.
  if (forecast->fits()) step.forecast = *std::move(forecast);
  return step;
}

}  // namespace spillway::core
