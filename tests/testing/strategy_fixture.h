// Common helpers for strategy tests: a plan as a rewrite would make it, and the results of a fake
// simulator.
#ifndef SPILLWAY_TESTS_TESTING_STRATEGY_FIXTURE_H_
#define SPILLWAY_TESTS_TESTING_STRATEGY_FIXTURE_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/strategies.h"
#include "tests/testing/core_test_util.h"

namespace spillway::testing {

// Checks `options`, finds the eligible tensors, and plans with the selected strategy.
inline absl::StatusOr<core::StrategyResult> PlanWith(
    const TestFacts& f, const v1::RewriteOptions& options, core::PlanSimulator* simulator = nullptr,
    const v1::Limits& limits = core::DefaultLimits(),
    const core::StopToken& stop = core::StopToken()) {
  const core::PlanningStrategy& strategy = *core::FindStrategy(options);
  if (absl::Status s = strategy.check(options, {}); !s.ok()) return s;
  const auto eligibility = core::Eligibility::Create(f.facts, options, stop);
  if (!eligibility.ok()) return eligibility.status();
  if (simulator != nullptr) f.Compute({core::Fact::kGpuMemory});
  return strategy.plan({f.facts, *eligibility, options, limits, simulator, stop});
}

// A step that fits, with the same peak on each of `num_gpus` GPUs.
inline core::StepResult FittingStep(int64_t time_ns, int64_t synchronous_ns, int64_t peak_bytes,
                                    int num_gpus = 1) {
  core::StepResult result;
  result.fits = result.has_synchronous = true;
  result.launch_ahead.step_time_ns = time_ns;
  result.synchronous.step_time_ns = synchronous_ns;
  for (core::SimulationResult* mode : {&result.launch_ahead, &result.synchronous}) {
    mode->devices.resize(num_gpus);
    for (core::DeviceUse& use : mode->devices) use.peak_bytes = peak_bytes;
  }
  return result;
}

// The same, but slower than the cutoff: the rest was not simulated.
inline core::StepResult PartialStep(int64_t time_ns, int64_t peak_bytes, int num_gpus = 1) {
  core::StepResult result = FittingStep(time_ns, 0, peak_bytes, num_gpus);
  result.fits = result.has_synchronous = false;
  result.is_partial = true;
  result.synchronous = core::SimulationResult();
  return result;
}

// A step that does not fit, with its failed allocation.
inline core::StepResult UnfitStep(const core::OutOfMemory& oom, int64_t peak_bytes,
                                  int64_t resident_bytes, int num_gpus = 1) {
  core::StepResult result = PartialStep(0, peak_bytes, num_gpus);
  result.is_partial = false;
  result.launch_ahead.out_of_memory = oom;
  for (core::DeviceUse& use : result.launch_ahead.devices) use.resident_bytes = resident_bytes;
  return result;
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_STRATEGY_FIXTURE_H_
