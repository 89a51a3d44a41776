// What a strategy that plans for a budget reports on each GPU (v1::DeviceFit), from its
// simulations: alike whatever the strategy.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_DEVICE_FIT_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_DEVICE_FIT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/repeated_field.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// Of GPU `gpu` (an index into Placement::devices()) with `budget_bytes`: what the step takes as the
// graph came. `unswapped`: that step with unlimited memory. REQUIRES: kPlacement, kHardware.
v1::DeviceFit FitOfUnswapped(const StepResult& unswapped, int32_t gpu, int64_t budget_bytes,
                             const StepFacts& facts);

// Adds to `fit`, as FitOfUnswapped left it, what the step takes with `plan`: `outcome`, which fits,
// and, where nothing is unknown, the need (FindNeed), unless `simulator` is null. Errors: those of
// Simulate.
absl::Status AddPlanned(const SwapPlan& plan, const StepResult& outcome, int32_t gpu,
                        const StepFacts& facts, PlanSimulator* simulator, const StopToken& stop,
                        v1::DeviceFit* fit);

// "no swapping is needed: ...", of the GPU that is tightest, or, where not all is known of one,
// "unknown whether swapping is needed: ..."; empty if there is no GPU in `fits`, or one that needs
// it. REQUIRES: kHardware.
std::string NotNeededText(const google::protobuf::RepeatedPtrField<v1::DeviceFit>& fits,
                          const StepFacts& facts);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_DEVICE_FIT_H_
