#include "rewrite_core/strategy/budget/plan_trials.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/rewrite_core/strategy/budget/fake_plan_simulator.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::Fits;
using ::testing::IsEmpty;
using testing::RunsOutAt;
using Verdict = PlanTrials::Verdict;
using Want = PlanTrials::Want;

constexpr int64_t kTrialTime = 1'000'000'000;  // Far longer than the copies take.

struct PlanTrialsTest : ::testing::Test {
  PlanTrialsTest() {
    terms.budget_bytes = 1000;
    terms.max_simulations = 8;
    terms.enough_ns = 1;
  }

  std::vector<Eviction> Swapped(const std::string& name) const {
    return {{step.planner.GapOver({step.graph[name], 0}, step.SlotOf("d")), step.SlotOf("e"), 1}};
  }
  PlanTrials Trials() { return {terms, base, step.planner, step.order, &simulator, step.stop}; }
  Verdict Try(const std::vector<Eviction>& evictions, Want want = Want::kVerdict) {
    return testing::ValueOrDie(trials.Try(evictions, want), "try");
  }
  // The sizes of memory that were simulated since the last call.
  std::vector<int64_t> Sizes() {
    std::vector<int64_t> sizes;
    for (const auto& call : simulator.calls) sizes.push_back(call.terms.budget_bytes);
    simulator.calls.clear();
    return sizes;
  }

  const testing::TestGpuStep step{std::string(testing::kTwoGaps)};
  const SwapPlan base;
  const std::vector<Eviction> a = Swapped("a"), b = Swapped("b"), both = {a[0], b[0]};
  PlanSearchTerms terms;
  StepResult result = Fits(kTrialTime);
  int64_t unfit = 0;  // The size in which nothing fits.
  testing::FakePlanSimulator simulator{[this](const SwapPlan&, const StepTerms& of) {
    return of.budget_bytes == unfit ? RunsOutAt(step.graph["d"]) : result;
  }};
  PlanTrials trials = Trials();
};

TEST_F(PlanTrialsTest, APlanIsSimulatedOnce) {
  EXPECT_EQ(Try(a), Verdict::kBetter);
  EXPECT_TRUE(simulator.calls[0].terms.placed_alone);
  EXPECT_FALSE(simulator.calls[1].terms.placed_alone);
  EXPECT_THAT(Sizes(), ElementsAre(1000, 1000));  // Placed, and counted.
  EXPECT_EQ(Try(a), Verdict::kNotBetter);
  EXPECT_EQ(Try(a, Want::kPieces), Verdict::kNotBetter);
  EXPECT_THAT(Sizes(), IsEmpty());
  EXPECT_EQ(trials.num_simulations(), 2);
  int tries = 3;
  for (; trials.MaySimulate() && tries < 100; ++tries) Try(a);
  EXPECT_EQ(tries, 4 * terms.max_simulations) << "tries are limited, too";
}

TEST_F(PlanTrialsTest, APlanMustFitInTheOtherSizes) {
  terms.other_budgets = {1100, 1200, 1300};
  unfit = 1200;
  EXPECT_EQ(Try(a), Verdict::kDoesNotFit);
  EXPECT_THAT(Sizes(), ElementsAre(1000, 1000, 1100, 1200));
  EXPECT_FALSE(trials.has_best());
  unfit = 0;
  EXPECT_EQ(Try(b), Verdict::kBetter);
  EXPECT_EQ(trials.best(), b);
}

TEST_F(PlanTrialsTest, TheVariationThatFailedLastIsTriedFirst) {
  StepVariation slow;
  slow.copy_percent = 50;
  terms.varied_steps = {{slow, 1010}, {slow, 1011}, {slow, 1012}};
  unfit = 1012;
  PlanTrials varied = Trials();
  EXPECT_THAT(varied.Try(a, Want::kVerdict).value(), Verdict::kDoesNotFit);
  EXPECT_THAT(Sizes(), ElementsAre(1000, 1010, 1011, 1012));
  EXPECT_THAT(varied.Try(b, Want::kVerdict).value(), Verdict::kDoesNotFit);
  EXPECT_THAT(Sizes(), ElementsAre(1000, 1012));
  EXPECT_EQ(varied.num_simulations(), 2) << "variations do not count";
  unfit = 0;
  EXPECT_THAT(varied.Try(both, Want::kVerdict).value(), Verdict::kBetter);
  EXPECT_THAT(Sizes(), ElementsAre(1000, 1012, 1010, 1011, 1000));
}

// By one part in 2,000.
TEST_F(PlanTrialsTest, SlowerAndHardlyFasterPlansAreDropped) {
  terms.enough_ns = kTrialTime - kTrialTime / 1000;
  EXPECT_EQ(Try(both), Verdict::kBetter);
  EXPECT_EQ(Try(a), Verdict::kBetter) << "as fast, and half the bytes";
  EXPECT_TRUE(trials.MaySimulate(1));
  Sizes();
  result = Fits(kTrialTime - kTrialTime / 2000);
  EXPECT_EQ(Try(b), Verdict::kNotBetter);
  EXPECT_EQ(simulator.calls[0].terms.cutoff_ns, kTrialTime);
  result = testing::PartialStep(kTrialTime + 1, 0);
  EXPECT_EQ(Try({}), Verdict::kNotBetter);
  EXPECT_THAT(Sizes(), ElementsAre(1000, 1000));
  result = Fits(kTrialTime - kTrialTime / 2000 - 1000);
  EXPECT_EQ(Try({b[0], a[0]}), Verdict::kBetter);
  EXPECT_TRUE(trials.IsDone()) << "almost enough";
  EXPECT_FALSE(trials.MaySimulate(1));
}

TEST_F(PlanTrialsTest, WhatCopiesTooLongIsNotSimulated) {
  result = Fits(step.planner.gaps()[a[0].gap].in_ns * 3 / 2);
  EXPECT_EQ(Try(a), Verdict::kBetter);
  Sizes();
  EXPECT_EQ(Try(both), Verdict::kNotBetter);
  EXPECT_THAT(Sizes(), IsEmpty());
}

// A plan that does not fit is simulated again for its memory map only.
TEST_F(PlanTrialsTest, WhereAPlanRanOut) {
  result = RunsOutAt(step.graph["f"]);
  result.pieces.resize(3);
  EXPECT_EQ(Try(a), Verdict::kDoesNotFit);
  EXPECT_EQ(Try(a), Verdict::kDoesNotFit);
  EXPECT_THAT(Sizes(), ElementsAre(1000));
  EXPECT_THAT(trials.pieces(), IsEmpty());
  EXPECT_EQ(Try(a, Want::kPieces), Verdict::kDoesNotFit);
  EXPECT_THAT(Sizes(), ElementsAre(1000));
  EXPECT_EQ(trials.pieces().size(), 3u);
  EXPECT_EQ(trials.last().at, step.SlotOf("f"));
  result = RunsOutAt(step.graph["b"], GpuIndex(0), OpKind::kCopyIn);
  EXPECT_EQ(Try(b), Verdict::kDoesNotFit);
  EXPECT_EQ(trials.last().at, step.SlotOf("e")) << "the trigger of the copy of b";
  EXPECT_EQ(trials.furthest(), a);
}

}  // namespace
}  // namespace spillway::core
