#include "rewrite_core/strategy/budget/memory_rehearsal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/rewrite_core/strategy/budget/dear_graphs.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using testing::TestGpuStep;
using testing::ValueOrDie;

#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"

constexpr int64_t kKib256 = 256 << 10;

// a is read immediately, and again at the end. The peak is at d: a, b, c, d; at f there are three
// of them.
TestGpuStep Chain() {
  return TestGpuStep(absl::StrCat(
      "x = Const() {dtype=float32, _output_shapes=[(256,256)], value=(256,256)}\n",
      "a = MatMul(x, x) " KIB_256 "b = MatMul(a, a) " KIB_256 "c = MatMul(b, b) " KIB_256
      "d = MatMul(b, c) " KIB_256 "e = MatMul(d, d) " KIB_256 "f = MatMul(e, a) " KIB_256));
}

int64_t Peak(const TestGpuStep& step) {
  const std::vector<int64_t>& live = step.order.live_bytes();
  return *std::max_element(live.begin(), live.end());
}

TEST(MemoryRehearsalTest, NothingIsChangedWhereThereIsRoom) {
  const TestGpuStep step = Chain();
  MemoryRehearsal rehearsal(step.order, step.planner, Peak(step), step.stop);
  const MemoryRehearsal::Findings findings = rehearsal.Rehearse({}, 1);
  EXPECT_TRUE(findings.fits);
  EXPECT_TRUE(findings.is_clean);
  EXPECT_TRUE(findings.evictions.empty());
}

TEST(MemoryRehearsalTest, WhatIsNotReadForLongMakesRoom) {
  const TestGpuStep step = Chain();
  MemoryRehearsal rehearsal(step.order, step.planner, Peak(step) - kKib256, step.stop);
  const MemoryRehearsal::Findings findings = rehearsal.Rehearse({}, 2);
  EXPECT_TRUE(findings.fits);
  EXPECT_FALSE(findings.is_clean);
  ASSERT_EQ(findings.evictions.size(), 1);
  const Gap& gap = step.planner.gaps()[findings.evictions[0].gap];
  EXPECT_EQ(gap.after, step.SlotOf("b"));
  EXPECT_EQ(gap.before, step.SlotOf("f"));
  EXPECT_EQ(findings.evictions[0].gate, 2);
  // With the swap nothing is missing, and the step is longer by the copies.
  const MemoryRehearsal::Findings again = rehearsal.Rehearse(findings.evictions, 2);
  EXPECT_TRUE(again.is_clean);
  EXPECT_EQ(again.evictions, findings.evictions);
  EXPECT_GE(again.step_time_ns, gap.out_ns + gap.in_ns);
}

TEST(MemoryRehearsalTest, ItEndsWhereNothingCanMakeRoom) {
  const TestGpuStep step = Chain();
  MemoryRehearsal rehearsal(step.order, step.planner, step.order.resident_bytes() + kKib256,
                            step.stop);
  EXPECT_FALSE(rehearsal.Rehearse({}, 1).fits);
  MemoryRehearsal none(step.order, step.planner, kAllocationBytes, step.stop);
  EXPECT_FALSE(none.Rehearse({}, 1).fits);
}

// The steps of a plan and its rehearsal grow no faster than the graph.
TEST(MemoryRehearsalTest, ManyEqualGapsAndWeightsOnTheHost) {
  for (const bool on_host : {false, true}) {
    int64_t steps[2] = {0, 0};
    for (const int twice : {0, 1}) {
      const TestGpuStep step(testing::EqualGaps(10'000 << twice, on_host));
      ASSERT_GT(step.planner.gaps().size(), 9'900u << twice);
      ASSERT_EQ(step.order.copies_in().size() > 9'900, on_host);
      BudgetSetting setting;
      setting.targets.assign(step.order.num_slots(), Peak(step) / 4 * 3);
      MemoryRehearsal rehearsal(step.order, step.planner, Peak(step) / 8 * 7, step.stop);
      const int64_t before = step.stop.steps();
      std::vector<Eviction> evictions = step.planner.Schedule(step.planner.Cover(setting), setting);
      ASSERT_GT(evictions.size(), 1'000u);
      step.planner.MakeSound(&evictions);
      rehearsal.Rehearse(evictions, 1);
      steps[twice] = step.stop.steps() - before;
    }
    EXPECT_GT(steps[0], 0);
    EXPECT_LT(steps[1], steps[0] * 5 / 2) << on_host;
  }
}

// The result of a rehearsal, beside the simulation of the same plan.
TEST(MemoryRehearsalTest, ItForetellsSimulations) {
  int plans = 0, agree = 0, fit = 0, made = 0, made_fit = 0;
  double worst = 0;
  for (const int64_t nodes : {600, 1500, 4000}) {
    testing::TrainingGraphOptions graph;
    graph.nodes = nodes;
    const TestGpuStep step(testing::TestGraph::FromBytes(testing::MakeTrainingGraph(graph)));
    for (const double share : {0.9, 0.8, 0.7}) {
      const int64_t budget = static_cast<int64_t>(share * static_cast<double>(Peak(step)));
      MemoryRehearsal rehearsal(step.order, step.planner, budget, step.stop);
      RehearsedPlanner rehearsed(step.order, step.planner, budget, 1000, step.stop);
      const auto simulate = [&](const std::vector<Eviction>& evictions) {
        SwapPlan plan;
        plan.swaps = ValueOrDie(step.planner.Plan(evictions), "plan");
        StepTerms terms = StepTerms::OneGpu(GpuIndex(0), budget);
        terms.placed_alone = true;
        return ValueOrDie(step.simulator->Simulate(plan, terms, {}), "simulate").launch_ahead;
      };
      for (const double target : {1.0, 0.95, 0.9, 0.85}) {
        BudgetSetting setting;
        setting.targets.assign(step.order.num_slots(),
                               static_cast<int64_t>(target * static_cast<double>(budget)));
        std::vector<Eviction> evictions =
            step.planner.Schedule(step.planner.Cover(setting), setting);
        step.planner.MakeSound(&evictions);
        const MemoryRehearsal::Findings findings =
            rehearsal.Rehearse(evictions, setting.gate_slots);
        const SimulationResult simulated = simulate(evictions);
        ++plans;
        agree += findings.is_clean == simulated.fits();
        fit += simulated.fits();
        if (findings.is_clean && simulated.fits()) {
          const double ratio = static_cast<double>(findings.step_time_ns) /
                               static_cast<double>(simulated.step_time_ns);
          worst = std::max(worst, std::abs(ratio - 1));
        }
        const RehearsedPlan plan = rehearsed.Make(setting);
        if (!plan.fits) continue;
        ++made;
        made_fit += simulate(plan.evictions).fits();
      }
    }
  }
  std::cout << plans << " plans, " << fit << " fit, " << agree
            << " as simulated, times off by up to " << 100 * worst << " %; " << made
            << " made by rehearsals, of which " << made_fit << " fit\n";
  EXPECT_GE(agree, plans * 3 / 4);
  EXPECT_LT(worst, 0.15);
  EXPECT_GT(made_fit, fit);
}

TEST(RehearsedPlannerTest, SpentRehearsalsEndIt) {
  const TestGpuStep step = Chain();
  RehearsedPlanner planner(step.order, step.planner, Peak(step) - kKib256, 1, step.stop);
  ASSERT_TRUE(planner.MayRehearse());
  EXPECT_FALSE(planner.Mend({}, 1).fits);  // One to find the lack, none to confirm it.
  EXPECT_FALSE(planner.MayRehearse());
  RehearsedPlanner two(step.order, step.planner, Peak(step) - kKib256, 2, step.stop);
  EXPECT_TRUE(two.Mend({}, 1).fits);
}

}  // namespace
}  // namespace spillway::core
