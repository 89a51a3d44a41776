// The report of budget-driven strategies on each GPU (v1::DeviceFit), from their simulations; the
// same for every strategy.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_DEVICE_FIT_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_DEVICE_FIT_H_

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

// Returns the memory use of the unswapped step on GPU `gpu` with `budget_bytes`. `unswapped`:
// that step with unlimited memory. REQUIRES: kPlacement, kHardware.
v1::DeviceFit FitOfUnswapped(const StepResult& unswapped, GpuIndex gpu, int64_t budget_bytes,
                             const StepFacts& facts);

// Adds to `fit`, the result of FitOfUnswapped, the memory use with `plan`: from `outcome`, which
// fits, and, if nothing is unknown, the need (FindNeed), unless `simulator` is null. Errors: those
// of Simulate.
absl::Status AddPlanned(const SwapPlan& plan, const StepResult& outcome, GpuIndex gpu,
                        const StepFacts& facts, PlanSimulator* simulator, const StopToken& stop,
                        v1::DeviceFit* fit);

// Returns "no swapping is needed: ..." about the tightest GPU or, if not everything is known about
// one, "unknown whether swapping is needed: ..."; empty if `fits` has no GPU, or one that needs
// swapping. REQUIRES: kHardware.
std::string NotNeededText(const google::protobuf::RepeatedPtrField<v1::DeviceFit>& fits,
                          const StepFacts& facts);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_DEVICE_FIT_H_
