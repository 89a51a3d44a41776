#include "rewrite_core/strategy/budget/gpu_plans.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "rewrite_core/strategy/common/counted_simulator.h"
#include "rewrite_core/strategy/common/device_fit.h"
#include "tests/rewrite_core/strategy/budget/fake_plan_simulator.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::Fits;
using testing::IsOk;
using testing::RunsOutAt;

constexpr int64_t kTowerMemory = 31 << 19;  // 15.5 MiB.

// On each GPU, products of 4 MiB: m reads p and q while a is not used; with a that takes 16 MiB.
std::string Towers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "x", i, " = Placeholder() @/gpu:", i,
                    " {dtype=float32, shape=(1024,1024)}\n");
    for (const char* product : {"axx", "paa", "qpp", "mpq", "dma"}) {
      absl::StrAppend(&text,
                      absl::Substitute("$1$0 = MatMul($2$0, $3$0) @/gpu:$0 {T=float32}\n", i,
                                       std::string(1, product[0]), std::string(1, product[1]),
                                       std::string(1, product[2])));
    }
  }
  return text;
}

// Each GPU is simulated unchanged; all together as `together` says.
struct TestGpuPlans : testing::TestRequest {
  explicit TestGpuPlans(int count, const std::string& more = "",
                        const std::string& memory = absl::StrCat("gpu_memory_bytes: ", kTowerMemory,
                                                                 " allocator_reserve: 0"))
      : TestRequest(Towers(count),
                    absl::StrCat("budget { ", more, " } step { hardware { ", memory, " } }")),
        real(testing::ValueOrDie(StepSimulator::Create(facts, stop), "simulator")),
        gpus(FindWantedGpus(facts, eligibility)) {
    request.filters.emplace(
        testing::ValueOrDie(SwapFilters::Create(*graph, options.budget(), stop), "filters"));
    StepTerms unlimited;
    unlimited.record_operations = true;
    request.unswapped = testing::ValueOrDie(real->Simulate({}, unlimited, stop), "unswapped");
    request.full_speed_ns = request.unswapped.step_time_ns();
    for (const WantedGpu& gpu : gpus) {
      lacking.push_back(lacking.size());
      fits.push_back(FitOfUnswapped(request.unswapped, gpu.index, kTowerMemory, facts));
    }
    simulator.bounds = testing::ValueOrDie(real->LowerBounds(stop), "bounds");
    simulator.answer = [this](const SwapPlan& plan, const StepTerms& terms) {
      return terms.budgets == StepTerms::Budgets::kAllGpus ? together()
                                                           : real->Simulate(plan, terms, stop);
    };
  }

  // Finds plans. Then `turns` has the planned GPUs, in turn, up to `most`; -1: all together were
  // simulated.
  absl::Status Find(size_t most = 100) {
    simulator.calls.clear();
    const absl::Status status = plans.Find();
    turns.clear();
    for (const auto& [plan, terms] : simulator.calls) {
      if (terms.budgets == StepTerms::Budgets::kNone || turns.size() == most) continue;
      const int turn = terms.budgets == StepTerms::Budgets::kOneGpu ? terms.gpu.value() : -1;
      if (turns.empty() || turn < 0 || turns.back() != turn) turns.push_back(turn);
    }
    return status;
  }
  std::vector<std::string> Swapped(const SwapPlan& plan) const {
    std::vector<std::string> names;
    for (const PlannedSwap& swap : plan.swaps) names.emplace_back(graph->name(swap.tensor.node));
    return names;
  }

  std::function<absl::StatusOr<StepResult>()> together = [] { return Fits(1); };
  const std::unique_ptr<StepSimulator> real;
  const std::vector<WantedGpu> gpus;
  std::vector<size_t> lacking;
  std::vector<v1::DeviceFit> fits;
  v1::BudgetReport report;
  GpuPlans plans{gpus, lacking, &request, &fits, &report};
  std::vector<int> turns;
};

auto DoesNotFit(const std::string& words) {
  return testing::FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                            words);
}

TEST(GpuPlansTest, OneGpuOrTwoThatFitTogether) {
  TestGpuPlans one(1), two(2);
  ASSERT_THAT(one.Find(), IsOk());
  EXPECT_THAT(one.Swapped(one.plans.plan()), ElementsAre("a0"));
  EXPECT_THAT(one.turns, ElementsAre(0));
  ASSERT_THAT(two.Find(), IsOk());
  EXPECT_THAT(two.Swapped(two.plans.plan()), ElementsAre("a0", "a1"));
  EXPECT_THAT(two.turns, ElementsAre(0, 1, -1, 0, 1)) << "in the end, the need of each";
  EXPECT_EQ(two.fits[1].fit(), v1::FIT_FITS);
}

// By their bounds. Any plan's step takes ten times that here: the first search tries all that it
// may, the second ends with its first plan.
TEST(GpuPlansTest, TheSlowestIsPlannedFirst) {
  TestGpuPlans two(2);
  two.simulator.bounds[1].step_time_ns = two.request.full_speed_ns + 1;
  two.simulator.answer = [&two](const SwapPlan& plan, const StepTerms& terms) {
    const bool is_slow = terms.budgets == StepTerms::Budgets::kOneGpu && !plan.swaps.empty();
    const int64_t slow_ns = 10 * two.request.full_speed_ns;
    return is_slow ? testing::FittingStep(slow_ns, slow_ns, 0, /*num_gpus=*/2)
                   : two.real->Simulate(plan, terms, {});
  };
  ASSERT_THAT(two.Find(/*most=*/3), IsOk());
  EXPECT_THAT(two.turns, ElementsAre(1, 0, -1));
  std::vector<int> tried(2, 0);
  for (const auto& [plan, terms] : two.simulator.calls) {
    if (terms.placed_alone) ++tried[terms.gpu];
  }
  EXPECT_GT(tried[1], 1);
  EXPECT_EQ(tried[0], 1);
}

// Only the GPU that ran out, with the other's swaps, once its search has no other plan.
TEST(GpuPlansTest, AGpuThatRunsOutIsPlannedAgain) {
  TestGpuPlans two(2);
  size_t failed = 0, last = 0;
  two.together = [&] {
    const auto& calls = two.simulator.calls;
    // Until there is a search for GPU 1 after the first failure.
    const bool is_planned_again = failed > 0 && calls[calls.size() - 2].terms.placed_alone;
    if (is_planned_again) last = calls.size();
    if (failed == 0) failed = calls.size();
    return last > 0 ? Fits(1) : RunsOutAt(two.graph["m1"], GpuIndex(1));
  };
  ASSERT_THAT(two.Find(), IsOk());
  ASSERT_GT(last, failed);
  for (size_t i = failed; i < last; ++i) {
    const auto& [plan, terms] = two.simulator.calls[i];
    if (terms.budgets != StepTerms::Budgets::kOneGpu) continue;
    EXPECT_EQ(terms.gpu, GpuIndex(1));
    EXPECT_EQ(two.Swapped(plan).back(), "a0");
  }
  EXPECT_THAT(two.Swapped(two.plans.plan()), ElementsAre("a0", "a1"));
}

// The one that runs out is planned for ever smaller shares of its budget; not at all if it is the
// host's memory that is lacking.
TEST(GpuPlansTest, SmallerShares) {
  TestGpuPlans two(2);
  two.together = [&two] { return RunsOutAt(two.graph["m0"]); };
  EXPECT_THAT(two.Find(), DoesNotFit("not all at once"));
  EXPECT_EQ(std::count(two.turns.begin(), two.turns.end(), 1), 1);
  std::set<int64_t> sizes, shares;
  for (const auto& call : two.simulator.calls) {
    if (call.terms.placed_alone) sizes.insert(call.terms.budget_bytes);
  }
  for (const double share : {1.0, 0.97, 0.94, 0.91, 0.88, 0.84, 0.8}) {
    shares.insert(static_cast<int64_t>(share * static_cast<double>(kTowerMemory)));
  }
  EXPECT_EQ(sizes, shares);
  TestGpuPlans on_host(2);
  on_host.together = [&on_host] { return RunsOutAt(on_host.graph["a0"], kHostPlace); };
  EXPECT_THAT(on_host.Find(/*most=*/3), DoesNotFit("on the host"));
  EXPECT_THAT(on_host.turns, ElementsAre(0, 1, -1));
}

// All together are simulated twice: whether they fit, and how long they take.
TEST(GpuPlansTest, TooSlowTogether) {
  TestGpuPlans two(2, "max_slowdown: 100");  // One by one each is fast enough.
  int slow = 2;
  two.together = [&] { return Fits(slow-- > 0 ? two.request.MaxStepTime() + 1 : 1); };
  ASSERT_THAT(two.Find(), IsOk());
  EXPECT_THAT(two.turns, ElementsAre(0, 1, -1, -1, 0, -1, -1, 0, 1));
  TestGpuPlans slower(2, "max_slowdown: 100");
  slower.together = [&] { return Fits(slower.request.MaxStepTime() + 1); };
  EXPECT_THAT(slower.Find(), DoesNotFit("max_slowdown"));
  EXPECT_THAT(slower.turns, ElementsAre(0, 1, -1, -1, 0, -1, -1, 1, -1, -1, 0, -1, -1, 1, -1, -1));
}

// Twice the towers' memory, of which half is reserved.
std::string WithReserve() {
  return absl::StrCat("gpu_memory_bytes: ", 2 * kTowerMemory, " allocator_reserve: 0.5");
}

// One tower; its plans do not fit in `unfit` variations, nor in memory of `unfit_bytes`.
struct FragileTower : TestGpuPlans {
  FragileTower(int unfit, int64_t unfit_bytes, const std::string& more = "")
      : TestGpuPlans(1, more, WithReserve()) {
    simulator.answer = [=](const SwapPlan& plan, const StepTerms& terms) {
      const bool is_unfit = terms.variation.is_none()
                                ? terms.budget_bytes == unfit_bytes
                                : static_cast<int>(terms.variation.seed) < unfit;
      return is_unfit && !plan.swaps.empty() ? RunsOutAt(graph["m0"])
                                             : real->Simulate(plan, terms, stop);
    };
  }
};

TEST(GpuPlansTest, WhatFitsInFewerThanHalfOfTheVariationsIsNoPlan) {
  for (const char* objective :
       {"", "objective: PLANNING_OBJECTIVE_SMALLEST_PEAK max_slowdown: 100"}) {
    FragileTower half(kNumVariations / 2, 0, objective);
    ASSERT_THAT(half.Find(), IsOk());
    EXPECT_EQ(half.report.devices(0).variation_count(), kNumVariations);
    EXPECT_EQ(half.report.devices(0).unfit_variation_count(), kNumVariations / 2);
    FragileTower fewer(kNumVariations / 2 + 1, 0, objective);
    EXPECT_THAT(fewer.Find(), DoesNotFit("10 of 20 variations"));
    FragileTower none(kNumVariations, 0, objective);
    EXPECT_THAT(none.Find(), DoesNotFit("10 of 20 variations"));
  }
}

// For any number of unfit variations.
TEST(GpuPlansTest, WhatDoesNotFitAllOfTheMemoryIsNoPlan) {
  for (const int unfit : {0, 1, kNumVariations / 2, kNumVariations}) {
    FragileTower tower(unfit, 2 * kTowerMemory);
    EXPECT_THAT(tower.Find(), DoesNotFit("no plan was found")) << unfit;
  }
}

// Spent search steps do not justify a plan that does not fit: the last simulations of a plan are
// not counted.
TEST(GpuPlansTest, APlanThatWasCutShortMustFitAllOfTheMemory) {
  for (const bool fits : {true, false}) {
    bool found = false;
    for (int64_t simulations = 1; simulations < 64; ++simulations) {
      FragileTower tower(0, fits ? 0 : 2 * kTowerMemory);
      tower.steps.Spend(tower.limits.max_search_steps() -
                        simulations * CountedSimulator::kStepsPerNode * tower.graph->num_nodes());
      const absl::Status status = tower.Find();
      found |= status.ok() && tower.report.devices(0).cut_short();
      EXPECT_TRUE(fits || !status.ok());
    }
    EXPECT_EQ(found, fits);
  }
}

// Together the GPUs fit their budgets, but not all of their memory; nor do other plans.
TEST(GpuPlansTest, AllOfTheMemoryOfAllGpus) {
  TestGpuPlans two(2, "", WithReserve());
  bool is_simulated = false;
  two.simulator.answer = [&](const SwapPlan& plan, const StepTerms& terms) {
    const bool is_all = terms.gpu_budgets == std::vector<int64_t>(2, 2 * kTowerMemory);
    is_simulated |= is_all;
    if (is_all) return absl::StatusOr<StepResult>(RunsOutAt(two.graph["m0"]));
    return terms.budgets == StepTerms::Budgets::kAllGpus ? Fits(1)
                                                         : two.real->Simulate(plan, terms, {});
  };
  EXPECT_THAT(two.Find(), DoesNotFit("not all at once"));
  EXPECT_TRUE(is_simulated);
}

TEST(GpuPlansTest, APlanThatWillNotBeTakenNeedNotFitInVariations) {
  for (const int64_t worth_ns : {int64_t{1}, kUnlimited}) {
    FragileTower tower(0, 0);
    tower.request.worth_ns = worth_ns;
    ASSERT_THAT(tower.Find(), IsOk());
    const bool is_varied =
        std::any_of(tower.simulator.calls.begin(), tower.simulator.calls.end(),
                    [](const auto& call) { return !call.terms.variation.is_none(); });
    EXPECT_EQ(is_varied, worth_ns == kUnlimited);
  }
}

TEST(GpuPlansTest, WhereAnOpAloneTakesTooMuchNothingIsSearched) {
  TestGpuPlans two(2);
  two.simulator.bounds[1].memory_bytes = kTowerMemory + 1;
  EXPECT_THAT(two.Find(), DoesNotFit("no plan can fit"));
  EXPECT_EQ(std::count(two.turns.begin(), two.turns.end(), 0), 0) << "it has plans";
}

}  // namespace
}  // namespace spillway::core
