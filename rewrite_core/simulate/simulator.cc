#include "rewrite_core/simulate/simulator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/simulation_run.h"

namespace spillway::core {
namespace {

absl::StatusOr<PreparedWorkload> Prepare(const Workload& workload, const SimulationOptions& options,
                                         const StopToken& stop) {
  if (options.launch_ns < 0) {
    return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                 absl::StrCat("The launch overhead is ", options.launch_ns,
                              " ns, below 0; this is an error in Spillway."));
  }
  return PreparedWorkload::Prepare(workload, options.launch_ns, stop);
}

absl::StatusOr<BothModes> RunBoth(const Workload& workload, SimulationOptions options,
                                  bool in_any_case, int64_t cutoff_ns, const StopToken& stop) {
  auto prepared = Prepare(workload, options, stop);
  if (!prepared.ok()) return prepared.status();
  SimulationRun simulation;
  BothModes both;
  options.mode = SimulationMode::kLaunchAhead;
  auto result = simulation.Run(*prepared, options, stop);
  if (!result.ok()) return result.status();
  both.launch_ahead = *std::move(result);
  if (!in_any_case && (!both.launch_ahead.fits() || both.launch_ahead.step_time_ns > cutoff_ns)) {
    both.is_partial = true;
    return both;
  }
  options.mode = SimulationMode::kSynchronous;
  result = simulation.Run(*prepared, options, stop);
  if (!result.ok()) return result.status();
  both.synchronous = *std::move(result);
  return both;
}

}  // namespace

absl::StatusOr<SimulationResult> Simulate(const Workload& workload,
                                          const SimulationOptions& options, const StopToken& stop) {
  auto prepared = Prepare(workload, options, stop);
  if (!prepared.ok()) return prepared.status();
  return SimulationRun().Run(*prepared, options, stop);
}

absl::StatusOr<BothModes> SimulateBothModes(const Workload& workload,
                                            const SimulationOptions& options,
                                            const StopToken& stop) {
  return RunBoth(workload, options, /*in_any_case=*/true, /*cutoff_ns=*/kUnlimited, stop);
}

absl::StatusOr<BothModes> SimulateWithCutoff(const Workload& workload,
                                          const SimulationOptions& options, int64_t cutoff_ns,
                                          const StopToken& stop) {
  return RunBoth(workload, options, /*in_any_case=*/false, cutoff_ns, stop);
}

}  // namespace spillway::core
