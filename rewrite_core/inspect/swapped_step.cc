#include "rewrite_core/inspect/swapped_step.h"

#include <utility>

#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/report/forecast_report.h"
#include "rewrite_core/strategy/strategies.h"

namespace spillway::core {

absl::StatusOr<SwappedStep> ForecastSwapped(const Graph& graph, const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop) {
  const PlanningStrategy& strategy = *FindStrategy(options);
  const v1::Step step = strategy.step(options);
  const StepFacts facts(graph, step);
  auto eligibility = Eligibility::Create(facts, options, stop);
  if (!eligibility.ok()) return eligibility.status();
  auto simulator = StepSimulator::Create(facts, stop);
  if (!simulator.ok()) return simulator.status();
  SwappedStep swapped;
  auto full_speed = (*simulator)->Simulate(SwapPlan(), StepTerms(), stop);
  if (!full_speed.ok()) return full_speed.status();
  swapped.full_speed_ns = full_speed->step_time_ns();

  auto result = strategy.plan({facts, *eligibility, options, limits, simulator->get(), stop});
  if (GetErrorReason(result.status()) == v1::ERROR_REASON_DOES_NOT_FIT) return swapped;
  if (!result.ok()) return result.status();
  auto forecast = MakeForecast(result->plan, ForecastBudget::kHardware, simulator->get(), stop);
  if (!forecast.ok()) return forecast.status();
  // Each GPU fits on its own; together they may still be in each other's way.
  if (forecast->fit() != v1::FIT_DOES_NOT_FIT) swapped.forecast = *std::move(forecast);
  return swapped;
}

}  // namespace spillway::core
