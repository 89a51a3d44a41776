#include "rewrite_core/strategy/budget/rehearsed_planner.h"

#include <algorithm>
#include <utility>

namespace spillway::core {
namespace {

// The maximum number of repairs of a plan; three suffice, or none do.
constexpr int kMaxRehearsals = 6;

// The maximum number of slots in all rehearsals together. (The search begins with some 40 plans, of
// two to three rehearsals each.)
constexpr int64_t kMaxSlots = 8'000'000;

}  // namespace

RehearsedPlanner::RehearsedPlanner(const StepOrder& order, const BudgetPlanner& planner,
                                   int64_t budget_bytes, int max_rehearsals, const StopToken& stop)
    : planner_(planner),
      rehearsal_(order, planner, budget_bytes, stop),
      left_(
          std::min<int64_t>(max_rehearsals, kMaxSlots / std::max<int64_t>(1, order.num_slots()))) {}

RehearsedPlan RehearsedPlanner::Make(const BudgetSetting& setting) {
  if (!MayRehearse()) return RehearsedPlan();
  return Mend(planner_.Schedule(planner_.Cover(setting), setting), setting.gate_slots);
}

RehearsedPlan RehearsedPlanner::Mend(std::vector<Eviction> evictions, int32_t gate_slots) {
  RehearsedPlan plan;
  plan.evictions = std::move(evictions);
  planner_.MakeSound(&plan.evictions);
  for (int mend = 0; mend <= kMaxRehearsals && MayRehearse(); ++mend) {
    --left_;
    MemoryRehearsal::Findings findings = rehearsal_.Rehearse(plan.evictions, gate_slots);
    plan.step_time_ns = findings.step_time_ns;
    plan.fits = findings.is_clean;
    if (findings.is_stopped) left_ = 0;
    if (plan.fits || !findings.fits) break;
    plan.evictions = std::move(findings.evictions);
    planner_.MakeSound(&plan.evictions);
  }
  return plan;
}

}  // namespace spillway::core
