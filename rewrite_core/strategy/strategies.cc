#include "rewrite_core/strategy/strategies.h"

#include "rewrite_core/strategy/apply/apply_strategy.h"
#include "rewrite_core/strategy/budget/budget_strategy.h"
#include "rewrite_core/strategy/level/level_strategy.h"
#include "rewrite_core/strategy/scope/scope_strategy.h"

namespace spillway::core {
namespace {

constexpr v1::Strategy kStrategies[] = {v1::STRATEGY_BUDGET, v1::STRATEGY_LEVEL,
                                        v1::STRATEGY_SCOPE};

}  // namespace

absl::Span<const v1::Strategy> Strategies() { return kStrategies; }

v1::Strategy StrategyOf(const v1::RewriteOptions& options) {
  switch (options.strategy_case()) {
    case v1::RewriteOptions::kScope:
      return v1::STRATEGY_SCOPE;
    case v1::RewriteOptions::kLevel:
      return v1::STRATEGY_LEVEL;
    case v1::RewriteOptions::kBudget:
      return v1::STRATEGY_BUDGET;
    case v1::RewriteOptions::kStrip:
      return v1::STRATEGY_STRIP;
    case v1::RewriteOptions::kApply:
      return v1::STRATEGY_APPLY;
    case v1::RewriteOptions::STRATEGY_NOT_SET:
      break;
  }
  return kStrategies[0];
}

const PlanningStrategy* FindStrategy(const v1::RewriteOptions& options) {
  constexpr auto always = [](const v1::RewriteOptions&) { return true; };
  constexpr auto never = [](const v1::RewriteOptions&) { return false; };
  constexpr auto step = [](const v1::RewriteOptions& of) { return of.step(); };
  constexpr auto any_graph = [](const v1::RewriteOptions&, const Graph&, const StopToken&) {
    return absl::OkStatus();
  };
  static constexpr PlanningStrategy kLevel = {CheckLevelStrategy, LevelNeedsSimulator, step,
                                              any_graph, PlanLevel};
  static constexpr PlanningStrategy kScope = {
      CheckScopeStrategy, never, step, any_graph, PlanScope, /*may_lose_order_behind_loops=*/true};
  static constexpr PlanningStrategy kBudget = {CheckBudgetStrategy, always, step, any_graph,
                                               PlanBudget};
  static constexpr PlanningStrategy kApply = {CheckApplyStrategy, never, ApplyStep, CheckApplyGraph,
                                              PlanApply};
  switch (StrategyOf(options)) {
    case v1::STRATEGY_LEVEL:
      return &kLevel;
    case v1::STRATEGY_SCOPE:
      return &kScope;
    case v1::STRATEGY_BUDGET:
      return &kBudget;
    case v1::STRATEGY_APPLY:
      return &kApply;
    case v1::STRATEGY_STRIP:
      return nullptr;
    // No default: the compiler reports missing cases.
    case v1::STRATEGY_UNSPECIFIED:
    case v1::Strategy_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Strategy_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return nullptr;
}

}  // namespace spillway::core
