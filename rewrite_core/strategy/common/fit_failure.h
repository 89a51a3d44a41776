// Converts a simulation that does not fit to the failure reported by DOES_NOT_FIT
// (plan/fit_error.h).
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_FIT_FAILURE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_FIT_FAILURE_H_

#include <algorithm>
#include <string>

#include "rewrite_core/analysis/memory/unknown_memory.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/simulate/plan_simulator.h"

namespace spillway::core {

// `gpu`: the GPU under test, reported also if the host runs out. REQUIRES: kPlacement; the step
// does not fit.
inline FitFailure FailureOf(const StepResult& result, GpuIndex gpu, const StepFacts& facts) {
  FitFailure failure;
  const OutOfMemory* oom = result.failure();
  failure.gpu = facts.placement().devices()[gpu];
  failure.resident_bytes = result.resident_bytes(gpu);
  if (result.unknown != nullptr) {
    for (const v1::FitUnknown& cause : DescribeUnknown(facts.graph(), *result.unknown, gpu)) {
      failure.unknown += (failure.unknown.empty() ? "" : "; and ") + cause.message();
    }
  }
  if (oom == nullptr) return failure;
  if (oom->node != kNoNode) failure.node = std::string(facts.graph().name(oom->node));
  failure.requested_bytes = oom->requested_bytes;
  failure.in_use_bytes = oom->in_use_bytes;
  failure.on_host = oom->device < 0;
  failure.fragmented = oom->fragmented;
  failure.in_chunks = oom->in_chunks;
  return failure;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_FIT_FAILURE_H_
