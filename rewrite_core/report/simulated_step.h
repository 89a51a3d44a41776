// One simulated step: each GPU's memory over time, live buffers at the peak, and when each
// operation ran. Only renders messages; makes no decisions.
//
// Thread safety: one call at a time per simulator.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_SIMULATED_STEP_H_
#define SPILLWAY_REWRITE_CORE_REPORT_SIMULATED_STEP_H_

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/report/forecast_report.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::core {

// Fills in `simulated` of `report` and, if `options` request them, memory with distances, and
// trace, for a step of the unchanged graph, run according to options.execution. It is the same run
// as the forecast's: same budgets, same memory placement. With kHardware the known part of the step
// must fit. Errors: those of Simulate.
absl::Status DescribeSimulation(const v1::SimulateOptions& options, ForecastBudget budget,
                                StepSimulator* simulator, const StopToken& stop,
                                v1::SimulateReport* report);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_SIMULATED_STEP_H_
