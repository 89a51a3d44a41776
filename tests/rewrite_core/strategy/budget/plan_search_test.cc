#include "rewrite_core/strategy/budget/plan_search.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "rewrite_core/base/error.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/rewrite_core/strategy/budget/fake_plan_simulator.h"
#include "tests/testing/plan_text.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using testing::Fits;
using testing::RunsOutAt;
using testing::ValueOrDie;

constexpr int64_t kStepTime = 1'000'000'000'000;  // Far longer than any plan's copies take.

int64_t SwappedBytes(const std::vector<PlannedSwap>& swaps) {
  int64_t bytes = 0;
  for (const PlannedSwap& swap : swaps) bytes += swap.size_bytes;
  return bytes;
}

testing::TestGraph SmallTraining() {
  testing::TrainingGraphOptions options;
  options.nodes = 400;
  return testing::TestGraph::FromBytes(testing::MakeTrainingGraph(options));
}

// A training step in four fifths of its peak. Nothing fits, unless a test says so.
struct PlanSearchTest : ::testing::Test {
  PlanSearchTest() {
    const std::vector<int64_t>& live = step.order.live_bytes();
    terms.budget_bytes = *std::max_element(live.begin(), live.end()) / 5 * 4;
    terms.max_simulations = 64;
    terms.enough_ns = 1;
  }

  absl::StatusOr<PlanSearchResult> Search(PlanSimulator* with) {
    simulator.calls.clear();
    return SearchPlan(terms, {}, step.planner, step.order, with, step.stop);
  }
  PlanSearchResult Search() { return ValueOrDie(Search(&simulator), "search"); }

  std::string Text(const SwapPlan& plan) const { return testing::PrintPlan(*step.graph, plan); }
  // The plan for this share of the budget at each slot.
  std::vector<Eviction> PlanFor(double share) const {
    BudgetSetting setting;
    setting.targets.assign(step.order.num_slots(),
                           static_cast<int64_t>(share * static_cast<double>(terms.budget_bytes)));
    return step.planner.Schedule(step.planner.Cover(setting), setting);
  }
  std::vector<PlannedSwap> SwapsFor(double share) const {
    return ValueOrDie(step.planner.Plan(PlanFor(share)), "plan");
  }

  const testing::TestGpuStep step{SmallTraining()};
  PlanSearchTerms terms;
  const StepResult failed = RunsOutAt(step.order.node(Slot(0)));
  testing::FakePlanSimulator simulator{[this](const auto&, const auto&) { return failed; }};
  const decltype(simulator.calls)& calls = simulator.calls;
};

// Two that fail count as one, so with n simulations the (2n - 1)th is the last.
TEST_F(PlanSearchTest, ItSimulatesAsOftenAsItMay) {
  for (const int simulations : {1, 2, 40}) {
    terms.max_simulations = simulations;
    const PlanSearchResult result = Search();
    EXPECT_EQ(calls.size(), static_cast<size_t>(2 * simulations - 1));
    EXPECT_THAT(result.plans, ::testing::IsEmpty());
    EXPECT_EQ(result.failure.failure()->node, step.order.node(Slot(0)));
  }
  terms.enough_ns = kStepTime;
  simulator.answer = [](const auto&, const auto&) { return Fits(kStepTime); };
  EXPECT_EQ(Search().plans.size(), 1u);
  EXPECT_EQ(calls.size(), 2u) << "a plan that is fast enough ends it: placed, and counted";
}

// Each plan takes its own time: the best is the fastest one of all that were simulated, and before
// it come those that were the fastest until then.
TEST_F(PlanSearchTest, ItKeepsTheBest) {
  std::map<std::string, int64_t> times;
  simulator.answer = [&](const SwapPlan& plan, const StepTerms& of) {
    const auto rank = static_cast<int64_t>((times.size() * 37 + 60) % 101);
    const int64_t time =
        times.emplace(Text(plan), kStepTime + kStepTime / 1000 * rank).first->second;
    return time > of.cutoff_ns ? testing::PartialStep(time, 0) : Fits(time);
  };
  terms.num_kept = 3;
  const PlanSearchResult result = Search();
  EXPECT_GT(times.size(), 20u);
  int64_t fastest = kStepTime * 2;
  for (const auto& [plan, time] : times) fastest = std::min(fastest, time);
  ASSERT_EQ(result.plans.size(), 3u);
  EXPECT_EQ(result.plans[0].outcome.step_time_ns(), fastest);
  int64_t before = 0;
  for (const FoundPlan& found : result.plans) {
    SwapPlan plan;
    plan.swaps = found.swaps;
    EXPECT_EQ(times.at(Text(plan)), found.outcome.step_time_ns());
    EXPECT_GT(found.outcome.step_time_ns(), before);
    before = found.outcome.step_time_ns();
  }
}

TEST_F(PlanSearchTest, ItIsDeterministic) {
  simulator.answer = [this](const SwapPlan& plan, const StepTerms&) {
    const int64_t bytes = SwappedBytes(plan.swaps);
    return bytes % 3 == 0 ? failed : Fits(kStepTime - bytes);
  };
  std::string texts[2];
  for (std::string& text : texts) {
    Search();
    for (const auto& call : calls) text += Text(call.plan) + "\n";
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// Rehearsals may be wrong: plans that fit in them do not, until much less is in use.
TEST_F(PlanSearchTest, TargetsAreLoweredWhileNothingFits) {
  const int64_t enough = SwappedBytes(SwapsFor(0.45));
  ASSERT_GT(enough, SwappedBytes(SwapsFor(0.75)) * 5 / 4);
  simulator.answer = [&](const SwapPlan& plan, const StepTerms&) {
    return SwappedBytes(plan.swaps) < enough ? failed : Fits(kStepTime);
  };
  EXPECT_THAT(Search().plans, ::testing::Not(::testing::IsEmpty()));
}

// Of all that a plan swaps, two tensors make the room that is needed: in the end it swaps these.
TEST_F(PlanSearchTest, WhatNeedNotBeSwappedIsKept) {
  const std::vector<PlannedSwap> crude = SwapsFor(0.3);
  ASSERT_GT(crude.size(), 16u);
  const Tensor needed[] = {crude[3].tensor, crude[crude.size() - 4].tensor};
  const auto swaps = [](const std::vector<PlannedSwap>& all, const Tensor& tensor) {
    return std::any_of(all.begin(), all.end(),
                       [&](const PlannedSwap& swap) { return swap.tensor == tensor; });
  };
  simulator.answer = [&](const SwapPlan& plan, const StepTerms&) {
    const bool fits = swaps(plan.swaps, needed[0]) && swaps(plan.swaps, needed[1]);
    return fits ? Fits(kStepTime + SwappedBytes(plan.swaps) * 1000) : failed;
  };
  const PlanSearchResult result = Search();
  ASSERT_THAT(result.plans, ::testing::Not(::testing::IsEmpty()));
  EXPECT_EQ(result.plans[0].swaps.size(), 2u);
}

// Gates may make a plan run out of memory.
TEST_F(PlanSearchTest, AtLastPlansHaveNoGates) {
  terms.max_simulations = 128;
  simulator.answer = [this](const SwapPlan& plan, const StepTerms&) {
    for (const PlannedSwap& swap : plan.swaps) {
      for (const PlannedSwapIn& swap_in : swap.swap_ins) {
        if (!swap_in.paces.empty()) return failed;
      }
    }
    return plan.swaps.empty() ? failed : Fits(kStepTime);
  };
  EXPECT_THAT(Search().plans, ::testing::Not(::testing::IsEmpty()));
}

// 8 simulations of 1 node. They are an error only if there is no plan by then.
TEST_F(PlanSearchTest, SpentSearchSteps) {
  const auto search = [this] {
    SearchBudget steps(8 * CountedSimulator::kStepsPerNode, step.stop);
    CountedSimulator counted(&simulator, /*num_nodes=*/1, &steps, "remedy");
    return Search(&counted);
  };
  EXPECT_EQ(GetErrorReason(search().status()), v1::ERROR_REASON_SEARCH_TOO_LONG);
  EXPECT_EQ(calls.size(), 8u);
  simulator.answer = [this](const auto&, const auto&) {
    return calls.size() < 5 ? failed : Fits(kStepTime);
  };
  const PlanSearchResult found = ValueOrDie(search(), "search");
  EXPECT_EQ(found.plans.size(), 1u);
  EXPECT_TRUE(found.cut_short);
}

}  // namespace
}  // namespace spillway::core
