// The plan of the strategy `level` for a GPU's budget: if the own plan of `budget` is far from the
// bound, or there is none, `level` is tuned.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_LEVEL_PLAN_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_LEVEL_PLAN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

struct LevelPlan {
  v1::LevelDevice report;  // The setting, and how it was found.
  SwapPlan plan;           // With its own order edges and gates.
};

// Tunes all of `level`'s parameters, with `pace` and the filters of `options`. Empty if nothing
// fits, or the filters leave nothing that `level` swaps. Errors: those of the tuner, except
// DOES_NOT_FIT.
absl::StatusOr<absl::optional<LevelPlan>> TunePacedLevel(
    const StepFacts& facts, const Eligibility& eligibility, const v1::BudgetStrategy& options,
    const WantedGpu& gpu, int64_t budget_bytes, const std::string& cpu_device, SearchBudget* steps,
    PlanSimulator* simulator, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_LEVEL_PLAN_H_
