// One step as it is simulated: the memory of each GPU over it, what is live at the peak, and when
// each operation ran. Renders messages and decides nothing.
//
// Thread safety: one call at a time for each simulator.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_SIMULATED_STEP_H_
#define SPILLWAY_REWRITE_CORE_REPORT_SIMULATED_STEP_H_

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/report/forecast_report.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::core {

// Fills in `simulated` of `report` and, as `options` ask, memory with distances, and trace: of the
// step as the graph is, run as options.execution says. It is the run that the forecast is of: same
// budgets, same places in memory. With kHardware what is known of the step must fit. Errors: those
// of Simulate.
absl::Status DescribeSimulation(const v1::SimulateOptions& options, ForecastBudget budget,
                                StepSimulator* simulator, const StopToken& stop,
                                v1::SimulateReport* report);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_SIMULATED_STEP_H_
