// What a simulated step is told as: forecasts, and what they leave out. Renders messages and
// decides nothing.
//
// Thread safety: one call at a time for each simulator.
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

// With which memory a forecast is made.
enum class ForecastBudget {
  kHardware,  // The budgets of the hardware, of all GPUs and the host.
  kNone,      // Unlimited memory: everything fits.
};

// What the step takes with `plan` (empty: as the graph is). Errors: those of Simulate.
absl::StatusOr<v1::Forecast> MakeForecast(const SwapPlan& plan, ForecastBudget budget,
                                          StepSimulator* simulator, const StopToken& stop);

// Adds to the forecast of the step as the graph is what no plan can beat at the hardware's budgets.
// Errors: those of ComputeLowerBounds.
absl::Status AddLowerBounds(StepSimulator* simulator, const StopToken& stop,
                            v1::Forecast* forecast);

// Fills in the forecasts of `report`, of the step as the graph is and, unless it is empty, with
// `plan`, and what they stand on, but for warnings. All or, with an error, nothing. `simulator` is
// asked for the last time (StepSimulator::SimulateLast), so that it takes less memory. Errors:
// those of the two above.
absl::Status ReportForecasts(const SwapPlan& plan, StepSimulator* simulator, const StopToken& stop,
                             v1::RewriteReport* report);

// What forecasts of this step leave out.
std::vector<v1::Warning> ForecastWarnings(const StepSimulator& simulator);

// The names of the nodes that the step runs, each at most as long as others are shown. REQUIRES:
// the fact kActiveNodes; likewise below.
std::vector<std::string> TargetNames(const StepFacts& facts);

// How many nodes the step runs.
int64_t CountActiveNodes(const StepFacts& facts);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_FORECAST_REPORT_H_
