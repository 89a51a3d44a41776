#include "rewrite_core/simulate/plan_simulator.h"

#include "rewrite_core/base/saturating.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {
namespace {

// A budget that is too small is raised by 1/kBudgetSteps.
constexpr int64_t kBudgetSteps = 32;

}  // namespace

std::vector<NodeId> LaunchOrder(const StepResult& step) {
  std::vector<NodeId> nodes;
  nodes.reserve(step.launch_ahead.order.size());
  for (OpId id : step.launch_ahead.order) {
    if (RunsNode(step.ops[id])) nodes.push_back(step.ops[id].node);
  }
  return nodes;
}

absl::StatusOr<int64_t> FindNeed(PlanSimulator* simulator, const SwapPlan& plan, StepTerms terms,
                                 int64_t from_bytes, const StopToken& stop) {
  // The peak with unlimited memory nearly suffices; fragmentation requires a little more.
  for (int64_t budget = from_bytes; budget / 4 <= from_bytes && budget < kUnlimited;
       budget = SaturatingAdd(budget, budget / kBudgetSteps + 1)) {
    terms.budget_bytes = budget;
    auto result = simulator->Simulate(plan, terms, stop);
    if (!result.ok()) return result.status();
    if (result->fits) return budget;
  }
  return 0;
}

}  // namespace spillway::core
