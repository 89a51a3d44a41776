// The tuner, on functions in place of graphs and simulators. The expected result is found by
// exhaustive search.
#include "rewrite_core/strategy/level/level_tuning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/random.h"
#include "tests/testing/strategy_fixture.h"

namespace spillway::core {
namespace {

using testing::ErrorDetailOf;
using testing::FailsWith;
using testing::Random;

constexpr LevelSetting kAll = {kAuto, kAuto, kAuto, 0};
constexpr int64_t kTunedMiB = 1 << 20;

// The cost of a step with some setting.
struct Cost {
  int64_t time_ns;
  int64_t peak_bytes;
  int64_t synchronous_ns = 0;  // 0: the same as launched ahead.
};
using CostFunction = std::function<Cost(const LevelSetting&)>;

// Makes plans that consist only of their setting.
class FakePlanner : public TunedPlanner {
 public:
  std::vector<int32_t> thresholds, aheads, groupbys;

  std::vector<int32_t> Thresholds() const override { return thresholds; }
  std::vector<int32_t> Aheads() const override { return aheads; }
  std::vector<int32_t> Groupbys() const override { return groupbys; }
  absl::StatusOr<std::vector<PlannedSwap>> Plan(const LevelSetting& setting) override {
    PlannedSwap swap;
    // Like the real one: no effect in modes 2 and 3.
    const int32_t ahead = setting.syncs_swap_ins() ? 0 : setting.ahead;
    swap.tensor = {NodeId(setting.threshold), 0};
    swap.swap_ins.push_back({{{NodeId(ahead), setting.groupby}}, {NodeId(setting.sync_mode)}});
    return std::vector<PlannedSwap>{swap};
  }
};

class FakeSimulator : public PlanSimulator {
 public:
  FakeSimulator(int64_t budget, Cost unswapped, CostFunction cost)
      : budget_bytes(budget), unswapped_(unswapped), cost_(std::move(cost)) {}

  absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                      const StopToken& stop) override {
    if (stop.ShouldStop(1)) return stop.status("simulate");
    ++simulations;
    EXPECT_EQ(plan.cpu_device, "/cpu:7");  // All plans are made on top of the base.
    EXPECT_EQ(terms.budgets, StepTerms::Budgets::kOneGpu);
    EXPECT_EQ(terms.gpu, 0);
    Cost cost = unswapped_;
    if (!plan.swaps.empty()) {
      const PlannedSwapIn& in = plan.swaps[0].swap_ins[0];
      const LevelSetting setting = {plan.swaps[0].tensor.node, in.consumers[0].node,
                                    in.consumers[0].index, in.triggers[0]};
      simulated.push_back(setting);
      cost = cost_(setting);
    }
    if (terms.budget_bytes == 2 * budget_bytes && cost.time_ns < least_in_all_ns) {
      cost.peak_bytes = 2 * budget_bytes + 1;
    }
    OutOfMemory oom;
    if (host_is_full) {
      oom.device = kHostPlace;
      return testing::UnfitStep(oom, cost.peak_bytes, resident_bytes);
    }
    if (cost.peak_bytes > terms.budget_bytes) {
      oom.node = resident_bytes > terms.budget_bytes ? kNoNode : NodeId(0);
      oom.requested_bytes = cost.peak_bytes - terms.budget_bytes;
      oom.in_use_bytes = terms.budget_bytes;
      return testing::UnfitStep(oom, terms.budget_bytes, resident_bytes);
    }
    if (cost.time_ns > terms.cutoff_ns) {
      return testing::PartialStep(cost.time_ns, cost.peak_bytes);
    }
    return testing::FittingStep(cost.time_ns,
                                cost.synchronous_ns > 0 ? cost.synchronous_ns : cost.time_ns,
                                cost.peak_bytes);
  }
  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const std::vector<NodeId>&,
                                                        const std::vector<bool>&,
                                                        const StopToken&) override {
    return absl::UnimplementedError("bounds");
  }

  const int64_t budget_bytes;
  int64_t resident_bytes = 0;
  int64_t least_in_all_ns = 0;  // Faster steps do not fit in twice the budget.
  bool host_is_full = false;
  int simulations = 0;
  std::vector<LevelSetting> simulated;

 private:
  const Cost unswapped_;
  const CostFunction cost_;
};

// A step of one node on a GPU with that budget.
v1::Step StepWithBudget(int64_t budget_bytes) {
  v1::Step step;
  step.mutable_hardware()->set_gpu_memory_bytes(budget_bytes);
  step.mutable_hardware()->set_allocator_reserve(0);
  step.mutable_hardware()->set_gpu_memory_source(v1::MEMORY_SOURCE_PRESET);
  return step;
}

absl::StatusOr<TunedLevel> Tune(const LevelSetting& wanted, FakePlanner planner,
                                FakeSimulator* simulator, const StopToken& stop = StopToken(),
                                int64_t memory_per_budget = 1) {
  const testing::TestFacts f("the_node = NoOp() @/gpu:0",
                             StepWithBudget(memory_per_budget * simulator->budget_bytes));
  f.Compute({Fact::kGpuMemory});
  SwapPlan base;
  base.cpu_device = "/cpu:7";
  auto tuned = TuneLevel(wanted, base, GpuIndex(0), simulator->budget_bytes, f.facts, &planner,
                         simulator, stop);
  // The last simulation is the chosen plan again, for its need.
  if (tuned.ok() && !tuned->swaps.empty()) simulator->simulated.pop_back();
  return tuned;
}

std::vector<int32_t> UpTo(int32_t first, int32_t last) {
  std::vector<int32_t> values;
  for (int32_t value = first; value <= last; ++value) values.push_back(value);
  return values;
}

// The minimum time of all settings that fit; kUnlimited if none does.
int64_t BruteForce(const FakePlanner& planner, const CostFunction& cost, int64_t budget,
                   LevelSetting* best_setting = nullptr) {
  int64_t best = kUnlimited;
  for (int32_t t : planner.thresholds) {
    for (int32_t a : planner.aheads) {
      for (int32_t g : planner.groupbys) {
        for (int32_t mode = 0; mode <= 3; ++mode) {
          const Cost c = cost({t, mode >= 2 ? 0 : a, g, mode});
          if (c.peak_bytes > budget || c.time_ns >= best) continue;
          best = c.time_ns;
          if (best_setting != nullptr) *best_setting = {t, a, g, mode};
        }
      }
    }
  }
  return best;
}

std::string Text(const LevelSetting& s) {
  return absl::StrCat("threshold ", s.threshold, ", ahead ", s.ahead, ", groupby ", s.groupby,
                      ", mode ", s.sync_mode);
}

// A pseudorandom function of a setting.
uint64_t Hash(uint64_t seed, const LevelSetting& s) {
  uint64_t hash = seed;
  for (int32_t value : {s.threshold, s.ahead, s.groupby, s.sync_mode}) {
    hash = Random(hash * 1'000'003 + static_cast<uint64_t>(value)).Next();
  }
  return hash;
}

constexpr Cost kTooMuch = {100, int64_t{1} << 50};

// ---- Few settings: all are tried ----

// The reserve does not count as lacking memory.
TEST(LevelTuningTest, WhatDoesNotFitInAllOfTheMemoryIsNotTaken) {
  FakePlanner planner;
  planner.thresholds = UpTo(1, 4);
  planner.aheads = {1};
  planner.groupbys = {0};
  const CostFunction cost = [](const LevelSetting& s) {
    return Cost{100 * s.threshold + s.sync_mode, 1};
  };
  FakeSimulator simulator(kTunedMiB, kTooMuch, cost);
  simulator.least_in_all_ns = 200;
  const auto tuned = Tune(kAll, planner, &simulator, StopToken(), /*memory_per_budget=*/2);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->setting.threshold, 2);
  EXPECT_EQ(tuned->setting.sync_mode, 0);
  simulator.least_in_all_ns = 1000;
  EXPECT_EQ(GetErrorReason(Tune(kAll, planner, &simulator, StopToken(), 2).status()),
            v1::ERROR_REASON_DOES_NOT_FIT);
  // Nor is it said of the graph as it is that nothing is needed.
  FakeSimulator unswapped(kTunedMiB, {1, 1}, cost);
  unswapped.least_in_all_ns = 200;
  const auto planned = Tune(kAll, planner, &unswapped, StopToken(), 2);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_FALSE(planned->fit.not_needed());
}

TEST(LevelTuningTest, FindsTheLeastOfAllThatFitWhereThereAreFew) {
  int found = 0, impossible = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    FakePlanner planner;
    planner.thresholds = UpTo(1, random.Between(1, 4));
    planner.aheads = UpTo(1, random.Between(1, 4));
    planner.groupbys = UpTo(0, random.Between(0, 1));
    const int64_t budget = 40 * kTunedMiB;
    // Every fifth case has no setting that fits, or hardly any.
    const int64_t least = seed % 5 == 0 ? 39 : 1;
    const CostFunction cost = [&](const LevelSetting& s) {
      const uint64_t hash = Hash(seed, s);
      return Cost{static_cast<int64_t>(1'000 + hash % 1'000),
                  (least + static_cast<int64_t>(hash / 1'000 % 100)) * kTunedMiB};
    };
    FakeSimulator simulator(budget, kTooMuch, cost);
    const auto tuned = Tune(kAll, planner, &simulator);
    const int64_t best = BruteForce(planner, cost, budget);
    if (best == kUnlimited) {
      ++impossible;
      EXPECT_EQ(GetErrorReason(tuned.status()), v1::ERROR_REASON_DOES_NOT_FIT) << seed;
      continue;
    }
    ++found;
    ASSERT_THAT(tuned, testing::IsOk()) << seed;
    EXPECT_EQ(tuned->fit.step_time_ns(), best) << seed;
    EXPECT_TRUE(tuned->report.exhaustive());
    EXPECT_LE(tuned->fit.peak_bytes(), budget);
    const LevelSetting& s = tuned->setting;
    const Cost chosen =
        cost({s.threshold, s.syncs_swap_ins() ? 0 : s.ahead, s.groupby, s.sync_mode});
    EXPECT_EQ(chosen.time_ns, best);
    EXPECT_EQ(chosen.peak_bytes, tuned->fit.peak_bytes());
    // The need of a plan is its peak if nothing is fragmented.
    EXPECT_EQ(tuned->fit.need_bytes(), chosen.peak_bytes);
    // Every setting once, the step without swaps twice, and the chosen setting again, for its need.
    EXPECT_EQ(tuned->report.setting_count(),
              static_cast<int64_t>(planner.thresholds.size() * planner.groupbys.size() *
                                   (2 * planner.aheads.size() + 2)));
    EXPECT_EQ(simulator.simulations, tuned->report.setting_count() + 3);
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(impossible, 10);
}

// Of equal times launched ahead, the shorter synchronous one wins; then the minimum of waiting, the
// largest threshold, the latest swap-ins.
TEST(LevelTuningTest, TiesGoToWhatSwapsLess) {
  FakePlanner planner;
  planner.thresholds = {2, 4, 6};
  planner.aheads = {1, 2};
  planner.groupbys = {0, 3};
  FakeSimulator equal(kTunedMiB, kTooMuch, [](const LevelSetting&) {
    return Cost{1'000, kTunedMiB};
  });
  const auto tuned = Tune(kAll, planner, &equal);
  ASSERT_THAT(tuned, testing::IsOk());
  EXPECT_EQ(tuned->setting, (LevelSetting{6, 1, 0, 0}));
  FakeSimulator one(kTunedMiB, kTooMuch, [](const LevelSetting& s) {
    return Cost{1'000, kTunedMiB,
                s.threshold == 4 && s.sync_mode == 1 && s.ahead == 2 ? 1'500 : 2'000};
  });
  const auto other = Tune(kAll, planner, &one);
  ASSERT_THAT(other, testing::IsOk());
  EXPECT_EQ(other->setting, (LevelSetting{4, 2, 0, 1}));
  EXPECT_EQ(other->fit.synchronous_step_time_ns(), 1'500);
}

// ---- Given parameters ----

TEST(LevelTuningTest, WhatIsGivenIsHeld) {
  const CostFunction cost = [](const LevelSetting& s) {
    return Cost{10'000 - 10 * s.threshold + s.ahead + s.groupby + 100 * s.sync_mode, kTunedMiB};
  };
  for (int large = 0; large <= 1; ++large) {
    FakePlanner planner;
    planner.thresholds = UpTo(1, large ? 200 : 3);
    planner.aheads = UpTo(1, large ? 200 : 2);
    planner.groupbys = UpTo(0, large ? 50 : 1);
    const auto simulated = [&](const LevelSetting& wanted) {
      FakeSimulator simulator(kTunedMiB, kTooMuch, cost);
      const auto tuned = Tune(wanted, planner, &simulator);
      EXPECT_THAT(tuned, testing::IsOk());
      std::vector<LevelSetting> all = simulator.simulated;
      if (tuned.ok()) all.push_back(tuned->setting);
      return all;
    };
    // None of these values is among the planner's.
    for (const LevelSetting& s : simulated({777, kAuto, kAuto, 0})) EXPECT_EQ(s.threshold, 777);
    for (const LevelSetting& s : simulated({kAuto, 778, kAuto, 0})) {
      if (!s.syncs_swap_ins()) {
        EXPECT_EQ(s.ahead, 778);
      }
    }
    for (const LevelSetting& s : simulated({kAuto, kAuto, 779, 0})) EXPECT_EQ(s.groupby, 779);
    for (int mode = 0; mode <= 3; ++mode) {
      const auto settings = simulated({kAuto, kAuto, kAuto, mode});
      for (const LevelSetting& s : settings) EXPECT_GE(s.sync_mode, mode);
      EXPECT_EQ(settings.back().sync_mode, mode);  // The fastest.
    }
    const auto all = simulated({777, 778, 779, 3});
    EXPECT_EQ(all.size(), 2u);
    EXPECT_EQ(all.back().sync_mode, 3);
  }
}

// A setting that fits only in a later mode is found.
TEST(LevelTuningTest, LaterModesAreTriedWhereEarlierOnesDoNotFit) {
  for (int large = 0; large <= 1; ++large) {
    FakePlanner planner;
    planner.thresholds = UpTo(1, large ? 200 : 3);
    planner.aheads = UpTo(1, large ? 200 : 2);
    planner.groupbys = UpTo(0, large ? 50 : 1);
    for (int needed = 0; needed <= 3; ++needed) {
      FakeSimulator simulator(kTunedMiB, kTooMuch, [&](const LevelSetting& s) {
        return Cost{10'000 - s.threshold, s.sync_mode >= needed ? kTunedMiB : 2 * kTunedMiB};
      });
      const auto tuned = Tune(kAll, planner, &simulator);
      ASSERT_THAT(tuned, testing::IsOk());
      EXPECT_EQ(tuned->setting.sync_mode, needed);
    }
  }
}

// ---- Many settings: a search ----

// Landscapes like the simulator's: a larger threshold swaps less, so a step is faster and takes
// more memory; a larger `ahead` hides copies, up to a point, and holds memory longer; a larger
// `groupby` saves copies and holds memory longer; modes that wait take less memory and more time.
// The strength of each effect is random.
CostFunction SmoothLandscape(uint64_t seed) {
  Random random(seed);
  const auto draw = [&](int low, int high) {
    return static_cast<double>(random.Between(low, high));
  };
  const double swapped_bytes = draw(4'000, 12'000), scale = draw(20, 150), copy_ns = draw(20, 200);
  const double hidden_at = draw(3, 60), held = draw(1, 20), shared = draw(5, 40) / 100;
  const double grouped_bytes = draw(1, 30), out_waits = draw(1, 20) / 100,
               in_waits = draw(5, 60) / 100;
  return [=](const LevelSetting& s) {
    const double swapped = swapped_bytes / (1 + s.threshold / scale);  // MiB.
    const double group = s.groupby / (s.groupby + 10.0);
    const bool sync_in = s.sync_mode >= 2, sync_out = s.sync_mode == 1 || s.sync_mode == 3;
    const double hidden = sync_in ? 0 : std::min(1.0, s.ahead / hidden_at);
    double stall = swapped * copy_ns * (1 - shared * group) * (1 - hidden);
    if (sync_out) stall += swapped * copy_ns * out_waits;
    if (sync_in) stall += swapped * copy_ns * in_waits;
    double peak = 16'000 - swapped + grouped_bytes * group * 20;
    if (!sync_in) peak += held * s.ahead;
    if (!sync_out) peak += swapped * 0.05;
    return Cost{static_cast<int64_t>(1'000'000 + stall), static_cast<int64_t>(peak * kTunedMiB)};
  };
}

FakePlanner LargePlanner() {
  FakePlanner planner;
  planner.thresholds = UpTo(1, 300);
  planner.aheads = UpTo(1, 120);
  planner.groupbys = UpTo(0, 20);
  return planner;
}

// Nearly always within 5 % of the best, and much closer on average. The exceptions are budgets
// hardly above the minimum, where only a corner of the settings fits, and two parameters have to
// change together.
TEST(LevelTuningTest, TheSearchComesNearTheBestOnSmoothLandscapes) {
  const FakePlanner planner = LargePlanner();
  int tuned_count = 0, far_count = 0;
  double sum = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const CostFunction cost = SmoothLandscape(seed);
    for (int64_t budget : {9'000, 11'000, 13'000, 15'000}) {
      FakeSimulator simulator(budget * kTunedMiB, kTooMuch, cost);
      const auto tuned = Tune(kAll, planner, &simulator);
      LevelSetting best_setting;
      const int64_t best = BruteForce(planner, cost, budget * kTunedMiB, &best_setting);
      if (best == kUnlimited) {
        EXPECT_FALSE(tuned.ok());
        continue;
      }
      ASSERT_THAT(tuned, testing::IsOk()) << seed << " " << budget;
      EXPECT_FALSE(tuned->report.exhaustive());
      EXPECT_LE(tuned->fit.peak_bytes(), budget * kTunedMiB);
      EXPECT_LE(tuned->report.setting_count(), kMaxSimulations);
      EXPECT_LE(simulator.simulations, kMaxSimulations + 3);
      const double ratio = static_cast<double>(tuned->fit.step_time_ns()) / best;
      sum += ratio;
      ++tuned_count;
      if (ratio <= 1.05) continue;
      ++far_count;
      std::cout << "seed " << seed << ", " << budget << " MiB: " << Text(tuned->setting)
                << " takes " << ratio << " times as long as " << Text(best_setting) << "\n";
    }
  }
  std::cout << tuned_count << " landscapes and budgets: on average " << sum / tuned_count
            << " times the best, " << far_count << " above 1.05\n";
  EXPECT_GT(tuned_count, 80);
  EXPECT_LE(sum / tuned_count, 1.01);
  EXPECT_LE(far_count, tuned_count / 20);
}

// On a landscape without any order, the only guarantees are that the result fits, that it is the
// best of the simulated settings, and that the search ends.
TEST(LevelTuningTest, TheSearchNeverReturnsWhatDoesNotFit) {
  const FakePlanner planner = LargePlanner();
  int fitting = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    // From nearly all settings fitting to nearly none.
    const int64_t budget = static_cast<int64_t>(seed % 10 + 1) * 9 * kTunedMiB;
    const CostFunction cost = [seed](const LevelSetting& s) {
      const uint64_t hash = Hash(seed, s);
      return Cost{static_cast<int64_t>(1'000 + hash % 100'000),
                  static_cast<int64_t>(hash / 100'000 % 100 + 1) * kTunedMiB};
    };
    FakeSimulator simulator(budget, kTooMuch, cost);
    const auto tuned = Tune(kAll, planner, &simulator);
    int64_t best = kUnlimited;
    for (const LevelSetting& s : simulator.simulated) {
      if (cost(s).peak_bytes <= budget) best = std::min(best, cost(s).time_ns);
    }
    if (!tuned.ok()) {
      ++refused;
      // The simulations for the smallest budget are additional: a bisection to 1/1024 for each
      // mode.
      EXPECT_LE(simulator.simulations, kMaxSimulations + 2 + 4 * 12);
      continue;
    }
    ++fitting;
    EXPECT_LE(simulator.simulations, kMaxSimulations + 3);
    EXPECT_EQ(tuned->fit.step_time_ns(), best);
    EXPECT_LE(tuned->fit.peak_bytes(), budget);
  }
  EXPECT_GT(fitting, 150);
}

// ---- No swapping ----

TEST(LevelTuningTest, NothingIsSwappedWhereTheStepFits) {
  FakeSimulator simulator(10 * kTunedMiB, {1'000, 10 * kTunedMiB}, [](const LevelSetting&) {
    return Cost{900, kTunedMiB};
  });
  const auto tuned = Tune(kAll, LargePlanner(), &simulator);
  ASSERT_THAT(tuned, testing::IsOk());
  EXPECT_TRUE(tuned->fit.not_needed());
  EXPECT_TRUE(tuned->swaps.empty());
  EXPECT_EQ(tuned->fit.budget_bytes(), 10 * kTunedMiB);
  EXPECT_EQ(tuned->fit.budget_source(), v1::MEMORY_SOURCE_PRESET);
  EXPECT_EQ(tuned->fit.unswapped_peak_bytes(), 10 * kTunedMiB);
  EXPECT_EQ(tuned->fit.full_speed_step_time_ns(), 1'000);
  EXPECT_EQ(tuned->fit.step_time_ns(), 1'000);
  EXPECT_EQ(tuned->report.setting_count(), 0);
  EXPECT_EQ(simulator.simulations, 3);  // Unlimited, within the budget, and for the need.
  EXPECT_EQ(tuned->fit.need_bytes(), 10 * kTunedMiB);
}

TEST(LevelTuningTest, AByteTooMuchIsSwapped) {
  FakeSimulator simulator(10 * kTunedMiB - 1, {1'000, 10 * kTunedMiB}, [](const LevelSetting&) {
    return Cost{2'000, kTunedMiB};
  });
  const auto tuned = Tune(kAll, LargePlanner(), &simulator);
  ASSERT_THAT(tuned, testing::IsOk());
  EXPECT_FALSE(tuned->fit.not_needed());
  EXPECT_EQ(tuned->swaps.size(), 1u);
  EXPECT_EQ(tuned->fit.unswapped_peak_bytes(), 10 * kTunedMiB);
  EXPECT_EQ(tuned->fit.full_speed_step_time_ns(), 1'000);
  EXPECT_EQ(tuned->fit.step_time_ns(), 2'000);
}

// ---- Nothing fits ----

int64_t Number(const std::string& text) {
  int64_t number = -1;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

TEST(LevelTuningTest, SaysWhatDoesNotFitAndTheBudgetThatWould) {
  const CostFunction cost = SmoothLandscape(7);
  FakeSimulator simulator(1'000 * kTunedMiB, kTooMuch, cost);
  const auto tuned = Tune(kAll, LargePlanner(), &simulator);
  EXPECT_THAT(tuned, FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                               "node 'the_node' asks for"));
  for (const char* part : {"1000.00 MiB (preset p100_pcie)", "'/gpu:0'"}) {
    EXPECT_THAT(tuned, FailsWith(absl::StatusCode::kFailedPrecondition,
                                 v1::ERROR_REASON_DOES_NOT_FIT, part));
  }
  EXPECT_EQ(ErrorDetailOf(tuned, "device"), "/gpu:0");
  EXPECT_EQ(ErrorDetailOf(tuned, "node"), "the_node");
  EXPECT_EQ(ErrorDetailOf(tuned, "budget_bytes"), absl::StrCat(1'000 * kTunedMiB));
  EXPECT_EQ(ErrorDetailOf(tuned, "budget_source"), "PRESET");
  const int64_t smallest = Number(ErrorDetailOf(tuned, "smallest_budget_bytes"));
  EXPECT_GT(smallest, 1'000 * kTunedMiB);

  // That budget has a setting. A hundredth less need not have one, and here it does not: its
  // settings are those that swap the most.
  FakeSimulator enough(smallest, kTooMuch, cost);
  EXPECT_THAT(Tune(kAll, LargePlanner(), &enough), testing::IsOk());
  EXPECT_EQ(BruteForce(LargePlanner(), cost, smallest - smallest / 100), kUnlimited);
}

TEST(LevelTuningTest, TheSmallestBudgetSucceedsOnRandomTables) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    FakePlanner planner = LargePlanner();
    if (seed % 2 == 0) {
      planner.thresholds = UpTo(1, 3);
      planner.aheads = UpTo(1, 2);
      planner.groupbys = UpTo(0, 1);
    }
    const CostFunction cost = [seed](const LevelSetting& s) {
      const uint64_t hash = Hash(seed, s);
      return Cost{static_cast<int64_t>(1'000 + hash % 1'000),
                  static_cast<int64_t>(hash / 1'000 % 100 + 10) * kTunedMiB};
    };
    const LevelSetting wanted = {kAuto, kAuto, kAuto, static_cast<int32_t>(seed % 4)};
    FakeSimulator simulator(kTunedMiB, kTooMuch, cost);
    const auto tuned = Tune(wanted, planner, &simulator);
    ASSERT_EQ(GetErrorReason(tuned.status()), v1::ERROR_REASON_DOES_NOT_FIT);
    const int64_t smallest = Number(ErrorDetailOf(tuned, "smallest_budget_bytes"));
    FakeSimulator enough(smallest, kTooMuch, cost);
    const auto again = Tune(wanted, planner, &enough);
    EXPECT_THAT(again, testing::IsOk()) << "seed " << seed << ", " << smallest;
    ++tried;
  }
  EXPECT_EQ(tried, 100);
}

TEST(LevelTuningTest, NamesWhatIsResident) {
  FakeSimulator simulator(10 * kTunedMiB, {100, 30 * kTunedMiB}, [](const LevelSetting&) {
    return Cost{100, 20 * kTunedMiB};
  });
  simulator.resident_bytes = 12 * kTunedMiB;
  const auto tuned = Tune(kAll, LargePlanner(), &simulator);
  EXPECT_THAT(tuned, FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                               "the resident buffers (variables, constants) take 12.00 MiB"));
  EXPECT_EQ(ErrorDetailOf(tuned, "resident_bytes"), absl::StrCat(12 * kTunedMiB));
  EXPECT_EQ(ErrorDetailOf(tuned, "node"), "");
  EXPECT_EQ(Number(ErrorDetailOf(tuned, "smallest_budget_bytes")), 20 * kTunedMiB);
}

TEST(LevelTuningTest, WithoutCandidatesTheSmallestBudgetIsThatOfTheStepItself) {
  FakeSimulator simulator(10 * kTunedMiB, {100, 30 * kTunedMiB}, [](const LevelSetting&) {
    return Cost{100, 20 * kTunedMiB};
  });
  FakePlanner planner;
  planner.aheads = {1};
  planner.groupbys = {0};
  const auto tuned = Tune(kAll, planner, &simulator);
  EXPECT_EQ(GetErrorReason(tuned.status()), v1::ERROR_REASON_DOES_NOT_FIT);
  const int64_t smallest = Number(ErrorDetailOf(tuned, "smallest_budget_bytes"));
  EXPECT_EQ(smallest, 30 * kTunedMiB);
  EXPECT_TRUE(simulator.simulated.empty());
}

TEST(LevelTuningTest, WhereTheHostIsFullNoBudgetHelps) {
  FakeSimulator simulator(10 * kTunedMiB, {100, 30 * kTunedMiB}, [](const LevelSetting&) {
    return Cost{100, kTunedMiB};
  });
  simulator.host_is_full = true;
  const auto tuned = Tune(kAll, LargePlanner(), &simulator);
  EXPECT_THAT(tuned, FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                               "no budget helps"));
  EXPECT_EQ(ErrorDetailOf(tuned, "smallest_budget_bytes"), "(absent)");
}

}  // namespace
}  // namespace spillway::core
