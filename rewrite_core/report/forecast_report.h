// Reports of a simulated step: forecasts, and their omissions. Only renders messages; makes no
// decisions.
//
// Thread safety: one call at a time per simulator.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_FORECAST_REPORT_H_
#define SPILLWAY_REWRITE_CORE_REPORT_FORECAST_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "spillway/v1/forecast.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// The memory that a forecast assumes.
enum class ForecastBudget {
  kHardware,  // The hardware's budgets for all GPUs and the host.
  kNone,      // Unlimited memory: everything fits.
};

// The forecast for the step with `plan` (empty: for the unchanged graph). Errors: those of
// Simulate.
absl::StatusOr<v1::Forecast> MakeForecast(const SwapPlan& plan, ForecastBudget budget,
                                          StepSimulator* simulator, const StopToken& stop);

// Adds to the forecast for the unchanged graph the lower bounds for any plan at the hardware's
// budgets. Errors: those of ComputeLowerBounds.
absl::Status AddLowerBounds(StepSimulator* simulator, const StopToken& stop,
                            v1::Forecast* forecast);

// Fills in the forecasts of `report`, for the unchanged graph and, unless it is empty, for `plan`,
// with their assumptions and the largest temporaries but without warnings. On error, fills in
// nothing. This is the last use of `simulator` (StepSimulator::Become), so that it takes less
// memory. Errors: those of the two above.
absl::Status ReportForecasts(const SwapPlan& plan, StepSimulator* simulator, const StopToken& stop,
                             v1::RewriteReport* report);

// The kernels of the unchanged graph that take the most memory beside their outputs, largest first;
// none unless that memory counts. REQUIRES: the facts kLayout, kBuffers and kActiveNodes. Errors:
// those of `stop`.
absl::StatusOr<std::vector<v1::Temporary>> LargestTemporaries(const StepFacts& facts,
                                                              const StopToken& stop);

// Warnings about omissions of this step's forecasts.
std::vector<v1::Warning> ForecastWarnings(const StepSimulator& simulator);

// The names of the step's targets, each cut like all names that are shown. REQUIRES: the fact
// kActiveNodes; likewise below.
std::vector<std::string> TargetNames(const StepFacts& facts);

// The number of nodes that the step runs.
int64_t CountActiveNodes(const StepFacts& facts);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_FORECAST_REPORT_H_
