// A step with its order on one GPU, for the tests of the parts of the strategy `budget`.
#ifndef SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_FIXTURE_H_
#define SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/order/step_order.h"
#include "tests/testing/core_test_util.h"

namespace spillway::testing {

// Over d, a may be swapped out from b to g, and b from c to f; d uses c.
inline constexpr char kTwoGaps[] =
    "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "a = MatMul(x, x) {T=float32}\n"
    "b = MatMul(a, a) {T=float32}\n"
    "c = MatMul(b, b) {T=float32}\n"
    "d = MatMul(c, c) {T=float32}\n"
    "e = MatMul(d, c) {T=float32}\n"
    "f = MatMul(e, b) {T=float32}\n"
    "g = MatMul(f, a) {T=float32}\n";

struct TestGpuStep : TestStep {
  template <typename Source>
  explicit TestGpuStep(Source&& source, v1::Step s = {}, const v1::RewriteOptions& options = {})
      : TestStep(std::forward<Source>(source), std::move(s)),
        eligibility(ValueOrDie(core::Eligibility::Create(facts, options, {}), "eligibility")),
        simulator(ValueOrDie(core::StepSimulator::Create(facts, {}), "simulator")),
        unswapped(Simulate({})),
        order(
            ValueOrDie(core::StepOrder::Create(facts, core::GpuIndex(0), unswapped, {}), "order")),
        needs(ValueOrDie(core::Needs::Find(facts, {}), "needs")),
        ranks(ValueOrDie(core::RankByLaunch(facts, unswapped, {}, {}), "ranks")),
        planner(ValueOrDie(core::BudgetPlanner::Create(facts, eligibility, needs, order, ranks,
                                                       /*filters=*/nullptr, stop),
                           "planner")) {
    Compute({core::Fact::kBackwardPart});
  }

  // With unlimited memory.
  core::StepResult Simulate(const core::SwapPlan& plan) const {
    core::StepTerms terms;
    terms.record_operations = true;
    return ValueOrDie(simulator->Simulate(plan, terms, {}), "simulate");
  }

  core::Slot SlotOf(const std::string& name) const { return order.slot(graph[name]); }

  const core::StopToken stop;
  core::Eligibility eligibility;
  std::unique_ptr<core::StepSimulator> simulator;
  core::StepResult unswapped;
  core::StepOrder order;
  core::Needs needs;
  std::vector<int32_t> ranks;
  core::BudgetPlanner planner;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_FIXTURE_H_
