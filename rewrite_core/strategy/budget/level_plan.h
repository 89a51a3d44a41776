// What the strategy `level` makes of a GPU's budget, for `budget` to be never behind it: where its
// own plan is far from the bound, or there is none, `level` is tuned.
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
#include "rewrite_core/strategy/search_budget.h"
#include "rewrite_core/strategy/wanted_gpus.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

struct LevelPlan {
  v1::LevelDevice report;  // The setting, and how it was found.
  SwapPlan plan;           // With order edges and gates of its own.
};

// All of `level`'s parameters tuned, with `pace`, and the filters of `options`. Empty: nothing
// fits, or they leave nothing of what `level` swaps. Errors: those of the tuner, but for
// DOES_NOT_FIT.
absl::StatusOr<absl::optional<LevelPlan>> TunePacedLevel(
    const StepFacts& facts, const Eligibility& eligibility, const v1::BudgetStrategy& options,
    const WantedGpu& gpu, int64_t budget_bytes, const std::string& cpu_device, SearchBudget* steps,
    PlanSimulator* simulator, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_LEVEL_PLAN_H_
