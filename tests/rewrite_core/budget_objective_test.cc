// The objectives of the strategy `budget` beyond a plan that fits: the maximum slowdown of a plan
// and the host's memory. On a step small enough to work out by hand, and by simulating the bytes of
// the answers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/sanitizers.h"

namespace spillway::core {
namespace {

using testing::ErrorDetailOf;
using testing::FailsWith;
using ::testing::HasSubstr;
using testing::IsInvalid;
using testing::ReadTestGraph;

constexpr int64_t kMiB = int64_t{1} << 20;

absl::StatusOr<v1::RewriteResponse> TryObjective(const std::string& bytes,
                                                 const std::string& text) {
  v1::RewriteOptions options;
  options.mutable_budget();
  if (!google::protobuf::TextFormat::MergeFromString(text, &options)) std::abort();
  return Rewrite(bytes, options, DefaultLimits(), StopToken());
}

v1::RewriteResponse WithObjective(const std::string& bytes, const std::string& text) {
  return testing::ValueOrDie(TryObjective(bytes, text), text);
}

// Simulates the graph's bytes like any other graph.
v1::Forecast ForecastOf(const std::string& bytes, const std::string& step, int64_t memory) {
  v1::SimulateOptions options;
  if (!google::protobuf::TextFormat::MergeFromString(step, &options)) std::abort();
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(memory);
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  return testing::ValueOrDie(SimulateGraph(bytes, options, DefaultLimits(), {}), step).forecast();
}

// Each product is 4 MiB and takes 2.15 ms. Without swaps, b3 to b8 need a and three more: 16 MiB.
// With a away between b1 and d, 12 MiB are enough from b3 on, if its copy out ends when b2 does. It
// comes back while e runs, which leaves 4 MiB.
void AddProducts(const std::string& x, const std::string& suffix, const std::string& device,
                 std::string* text) {
  const auto product = [&](const char* name, const std::string& a, const std::string& b) {
    absl::StrAppend(text, name, suffix, " = MatMul(", a, ", ", b, ")", device, " {T=float32}\n");
  };
  const auto of = [&](const char* name) { return absl::StrCat(name, suffix); };
  product("a", x, x);
  product("b1", of("a"), of("a"));
  product("b2", of("b1"), of("b1"));
  product("b3", of("b2"), of("b1"));
  product("b4", of("b3"), of("b2"));
  product("b5", of("b4"), of("b3"));
  product("b6", of("b5"), of("b4"));
  product("b7", of("b6"), of("b5"));
  product("b8", of("b7"), of("b6"));
  product("e", of("b8"), of("b8"));
  product("d", of("e"), of("a"));
}

constexpr char kHandInput[] = "x = Placeholder() {dtype=float32, shape=(1024,1024)}\n";

std::string HandMade() {
  std::string text = kHandInput;
  AddProducts("x", "", "", &text);
  return testing::TestGraph(text).bytes();
}

// The same on two GPUs, one after the other.
std::string TwoHandMade() {
  std::string text = kHandInput;
  AddProducts("x", "_0", " @/gpu:0", &text);
  AddProducts("d_0", "", " @/gpu:1", &text);
  return testing::TestGraph(text).bytes();
}

// With a link on which a copy of 4 MiB takes 0.35 ms, or 42 ms.
constexpr double kFast = 12e9, kSlow = 1e8;
std::string HandMachine(double link, int64_t memory) {
  return absl::StrCat(" step { targets: 'd' hardware { gpu_memory_bytes: ", memory,
                      " allocator_reserve: 0 peak_flops: 1e12 eff_matmul: 1 launch_s: 1e-6 "
                      "copy_latency_s: 0 d2h_bytes_per_s: ",
                      link, " h2d_bytes_per_s: ", link, " } } ");
}

std::vector<std::string> Swapped(const v1::RewriteReport& report) {
  std::vector<std::string> tensors;
  for (const v1::TensorSwap& swap : report.swaps()) tensors.push_back(swap.tensor());
  return tensors;
}

TEST(BudgetObjectiveTest, WhatFitsIsLeftAloneUnlessLessIsAskedFor) {
  const v1::RewriteReport report = WithObjective(HandMade(), HandMachine(kFast, 1 << 30)).report();
  EXPECT_EQ(report.outcome(), v1::OUTCOME_NOTHING_TO_DO);
  EXPECT_TRUE(report.fits(0).not_needed());
  EXPECT_EQ(report.fits(0).unswapped_peak_bytes(), 16 * kMiB);
  EXPECT_EQ(report.budget().objective(), v1::PLANNING_OBJECTIVE_FASTEST_THAT_FITS);
  EXPECT_FALSE(report.budget().has_max_slowdown());
}

TEST(BudgetObjectiveTest, ASwapThatHidesIsFree) {
  for (const char* objective : {"FREE_SWAPS_ONLY", "SMALLEST_PEAK"}) {
    const v1::RewriteReport report =
        WithObjective(HandMade(),
                      absl::StrCat(HandMachine(kFast, 1 << 30),
                                   "budget { objective: PLANNING_OBJECTIVE_", objective, " }"))
            .report();
    EXPECT_EQ(Swapped(report), std::vector<std::string>{"a:0"}) << objective;
    EXPECT_FALSE(report.fits(0).not_needed());
    EXPECT_EQ(report.fits(0).fit(), v1::FIT_FITS);
    EXPECT_EQ(report.fits(0).peak_bytes(), 12 * kMiB) << objective;
    // To one part in 64 of the peak.
    EXPECT_GE(report.budget().devices(0).least_budget_bytes(), 12 * kMiB);
    EXPECT_LE(report.budget().devices(0).least_budget_bytes(), 12 * kMiB + kMiB / 4 + 1);
  }
}

TEST(BudgetObjectiveTest, ASwapThatDoesNotHideIsMadeOnlyWhereItMayBeSlow) {
  // The step takes 66 ms, including x. Copies out and in take 84 ms, of which 6.4 ms are hidden.
  for (const char* budget : {"objective: PLANNING_OBJECTIVE_FREE_SWAPS_ONLY",
                             "objective: PLANNING_OBJECTIVE_SMALLEST_PEAK",
                             "objective: PLANNING_OBJECTIVE_SMALLEST_PEAK max_slowdown: 2"}) {
    const v1::RewriteReport report =
        WithObjective(HandMade(),
                      absl::StrCat(HandMachine(kSlow, 1 << 30), "budget { ", budget, " }"))
            .report();
    EXPECT_EQ(report.outcome(), v1::OUTCOME_NOTHING_TO_DO) << budget;
    EXPECT_THAT(report.summary(), HasSubstr("the unswapped graph fits, and no plan was found"));
    EXPECT_TRUE(report.fits(0).not_needed());
  }
  const v1::RewriteReport report =
      WithObjective(HandMade(), absl::StrCat(HandMachine(kSlow, 1 << 30), "budget { objective: ",
                                             "PLANNING_OBJECTIVE_SMALLEST_PEAK max_slowdown: 10 }"))
          .report();
  EXPECT_EQ(Swapped(report), std::vector<std::string>{"a:0"});
  EXPECT_EQ(report.fits(0).peak_bytes(), 12 * kMiB);
  EXPECT_EQ(report.budget().max_slowdown(), 10);
}

// a, its Relu r, which b1 and the last but one read, and b1 to b8: 20 MiB, or 16 MiB if r is
// recomputed from a, which takes a hundredth of a millisecond. No copy is fast enough.
TEST(BudgetObjectiveTest, WhatRunsAgainSavesMemoryInNoTime) {
  std::string text = kHandInput;
  const auto product = [&](const char* name, const char* a, const char* b) {
    absl::StrAppend(&text, name, " = MatMul(", a, ", ", b, ") {T=float32}\n");
  };
  product("a", "x", "x");
  absl::StrAppend(&text, "r = Relu(a) {T=float32}\n");
  product("b1", "r", "r");
  product("b2", "b1", "b1");
  product("b3", "b2", "b1");
  product("b4", "b3", "b2");
  product("b5", "b4", "b3");
  product("b6", "b5", "b4");
  product("b7", "b6", "b5");
  product("b8", "b7", "b6");
  product("e", "b8", "b8");
  product("f", "e", "r");
  product("d", "f", "a");
  const std::string bytes = testing::TestGraph(text).bytes();
  for (const char* objective : {"FREE_SWAPS_ONLY", "SMALLEST_PEAK"}) {
    for (const bool may_run_again : {false, true}) {
      SCOPED_TRACE(absl::StrCat(objective, may_run_again));
      const v1::RewriteReport report =
          WithObjective(
              bytes, absl::StrCat(HandMachine(kSlow, 1 << 30),
                                  "budget { objective: PLANNING_OBJECTIVE_", objective,
                                  " recompute: RECOMPUTE_", may_run_again ? "CHEAP" : "OFF", " }"))
              .report();
      EXPECT_EQ(report.fits(0).unswapped_peak_bytes(), 20 * kMiB);
      EXPECT_EQ(report.swaps_size(), 0);
      EXPECT_EQ(report.recomputation().node_count(), may_run_again ? 1 : 0);
      EXPECT_EQ(report.fits(0).peak_bytes(), (may_run_again ? 16 : 20) * kMiB);
    }
  }
}

// Below 16 MiB `a` must be swapped, which is too slow: the reported memory is that of the unswapped
// graph.
TEST(BudgetObjectiveTest, WhatIsTooSlowIsRefused) {
  const std::string machine = HandMachine(kSlow, 13 * kMiB);
  EXPECT_TRUE(TryObjective(HandMade(), machine).ok());
  EXPECT_TRUE(TryObjective(HandMade(), machine + "budget { max_slowdown: 10 }").ok());
  const auto refused = TryObjective(HandMade(), machine + "budget { max_slowdown: 2 }");
  ASSERT_THAT(refused.status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                        "takes at most 2 times full speed (max_slowdown): the fastest found"));
  EXPECT_EQ(ErrorDetailOf(refused, "max_slowdown"), "2");
  double slowdown = 0;
  ASSERT_TRUE(absl::SimpleAtod(ErrorDetailOf(refused, "slowdown"), &slowdown));
  // x and 11 products, 65.57 ms; against x, a, its copy out, b3 to b8, its copy in, and d: 143.0
  // ms.
  EXPECT_NEAR(slowdown, 143.0 / 65.57, 0.002);
  int64_t memory = 0;
  ASSERT_TRUE(absl::SimpleAtoi(ErrorDetailOf(refused, "smallest_gpu_memory_bytes"), &memory));
  EXPECT_GE(memory, 16 * kMiB);
  EXPECT_LE(memory, 16 * kMiB + kMiB / 2);
  for (const char* objective : {"FREE_SWAPS_ONLY", "SMALLEST_PEAK"}) {
    EXPECT_THAT(
        TryObjective(HandMade(), absl::StrCat(machine, "budget { objective: PLANNING_OBJECTIVE_",
                                              objective, " }"))
            .status(),
        FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                  "times full speed"));
  }
}

// x, d_0 from one GPU to the other through the host, and 22 products take 173 ms. Each GPU's swap
// adds 77 ms if it has only the memory that it needs: one is within the limit, both are not.
TEST(BudgetObjectiveTest, TheLimitIsThatOfAllGpusTogether) {
  const std::string machine = HandMachine(kSlow, 1 << 30);
  const auto with = [&](double slowdown) {
    return WithObjective(TwoHandMade(),
                         absl::StrCat(machine, "budget { max_slowdown: ", slowdown,
                                      " objective: PLANNING_OBJECTIVE_SMALLEST_PEAK }"));
  };
  const v1::RewriteReport both = with(4).report();
  EXPECT_EQ(both.swaps_size(), 2);
  const double full = static_cast<double>(both.fits(0).full_speed_step_time_ns());
  EXPECT_GT(static_cast<double>(both.forecast_after().step_time_ns()), 1.6 * full);
  const v1::RewriteReport one = with(1.6).report();
  EXPECT_EQ(one.swaps_size(), 1);
  EXPECT_LE(static_cast<double>(one.forecast_after().step_time_ns()), 1.6 * full);
  EXPECT_EQ(with(1.2).report().outcome(), v1::OUTCOME_NOTHING_TO_DO);
}

struct ObjectiveGraph {
  std::string name;
  std::string file;
  int batch;
};

class ObjectiveGraphTest : public ::testing::TestWithParam<ObjectiveGraph> {
 protected:
  std::string Step(const std::string& hardware) const {
    return absl::StrCat(" step { batch_size: ", GetParam().batch, " hardware { ", hardware,
                        " } } ");
  }

  const std::string bytes_ = ReadTestGraph(GetParam().file);
  const v1::DeviceFit ample_ =
      WithObjective(bytes_, Step("gpu_memory_bytes: 1125899906842624")).report().fits(0);
};

// The answer's bytes run within its minimum budget, within the GPU's memory, and in between, as
// fast as requested.
TEST_P(ObjectiveGraphTest, TheAnswerTakesWhatItSays) {
  const int64_t memory = ample_.unswapped_peak_bytes() * 10 / 9 + 10;
  const std::string machine = Step(absl::StrCat("gpu_memory_bytes: ", memory));
  int64_t last = ample_.unswapped_peak_bytes();
  for (const double slowdown : {1.005, 1.1, 1.5}) {
    const std::string objective =
        slowdown == 1.005
            ? std::string("PLANNING_OBJECTIVE_FREE_SWAPS_ONLY")
            : absl::StrCat("PLANNING_OBJECTIVE_SMALLEST_PEAK max_slowdown: ", slowdown);
    const v1::RewriteResponse answer = WithObjective(
        bytes_, absl::StrCat(machine, "budget { planning_effort: PLANNING_EFFORT_LOW objective: ",
                             objective, " }"));
    const v1::RewriteReport& report = answer.report();
    ASSERT_EQ(report.outcome(), v1::OUTCOME_REWRITTEN) << report.summary();
    const int64_t least = report.budget().devices(0).least_budget_bytes();
    EXPECT_LE(least, last) << slowdown;
    last = least;
    EXPECT_LE(report.fits(0).peak_bytes(), least);
    const double limit = slowdown * static_cast<double>(ample_.full_speed_step_time_ns());
    std::vector<int64_t> sizes = {least, report.fits(0).budget_bytes()};
    for (int64_t size : report.budget().devices(0).other_budget_bytes()) sizes.push_back(size);
    EXPECT_EQ(sizes.size(), 5u);
    for (int64_t size : sizes) {
      const v1::Forecast forecast = ForecastOf(answer.graph_def(), Step(""), size);
      EXPECT_NE(forecast.fit(), v1::FIT_DOES_NOT_FIT) << slowdown << " in " << size;
      EXPECT_LE(static_cast<double>(forecast.step_time_ns()), limit) << slowdown << " in " << size;
    }
  }
  EXPECT_LT(last, ample_.unswapped_peak_bytes() * 9 / 10);
}

// A refusal is justified: with the memory that it reports, there is a plan.
TEST_P(ObjectiveGraphTest, TheMemoryThatIsToldWillDo) {
  if (testing::kAddressSanitizer) GTEST_SKIP() << "searches take minutes";
  const std::string low = "planning_effort: PLANNING_EFFORT_LOW";
  const v1::RewriteReport least =
      WithObjective(bytes_, absl::StrCat(Step("gpu_memory_bytes: 1125899906842624"), "budget { ",
                                         low, " objective: PLANNING_OBJECTIVE_SMALLEST_PEAK ",
                                         "max_slowdown: 1.5 }"))
          .report();
  const auto with = [&](int64_t memory) {
    return TryObjective(
        bytes_, absl::StrCat(Step(absl::StrCat("allocator_reserve: 0 gpu_memory_bytes: ", memory)),
                             "budget { ", low, " max_slowdown: 1.02 }"));
  };
  const auto refused = with(least.budget().devices(0).least_budget_bytes());
  ASSERT_THAT(refused.status(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                          v1::ERROR_REASON_DOES_NOT_FIT, "1.02 times full speed"));
  int64_t memory = 0;
  ASSERT_TRUE(absl::SimpleAtoi(ErrorDetailOf(refused, "smallest_gpu_memory_bytes"), &memory));
  const auto answer = with(memory * 21 / 20);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_LE(static_cast<double>(answer->report().forecast_after().step_time_ns()),
            1.02 * static_cast<double>(ample_.full_speed_step_time_ns()));
}

// Swapped tensors stay within the host's memory; if that is impossible, the error says so, unless
// ops may be recomputed instead.
TEST_P(ObjectiveGraphTest, PlansKeepWithinTheHostsMemory) {
  if (testing::kAddressSanitizer) GTEST_SKIP() << "searches take minutes";
  const int64_t memory = ample_.unswapped_peak_bytes() * 8 / 10;
  const auto with = [&](int64_t host, const std::string& recompute = "RECOMPUTE_OFF") {
    return TryObjective(
        bytes_,
        absl::StrCat(Step(absl::StrCat("allocator_reserve: 0 gpu_memory_bytes: ", memory,
                                       " host_memory_bytes: ", host)),
                     "budget { planning_effort: PLANNING_EFFORT_LOW recompute: ", recompute, " }"));
  };
  const auto ample = with(int64_t{1} << 50);
  ASSERT_TRUE(ample.ok()) << ample.status();
  // Fed tensors are also on the host: the GPU does not fit until there is room for more.
  bool fits = true;
  const int64_t all = ample->report().forecast_after().host_peak_bytes();
  for (const double share : {1.0, 0.9, 0.8}) {
    const int64_t host = static_cast<int64_t>(share * static_cast<double>(all));
    const auto answer = with(host);
    if (!answer.ok()) {
      EXPECT_EQ(GetErrorReason(answer.status()), v1::ERROR_REASON_DOES_NOT_FIT) << answer.status();
      fits = false;
      continue;
    }
    EXPECT_TRUE(fits) << share;
    EXPECT_LE(answer->report().forecast_after().host_peak_bytes(), host) << share;
    const std::string step = Step(absl::StrCat("host_memory_bytes: ", host));
    EXPECT_NE(ForecastOf(answer->graph_def(), step, memory).fit(), v1::FIT_DOES_NOT_FIT) << share;
  }
  const int64_t little = (ample_.unswapped_peak_bytes() - memory) / 2;
  EXPECT_THAT(with(little).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
                        "of host memory (host_memory_bytes)"));
  const auto run_again = with(little, "RECOMPUTE_CHEAP");
  ASSERT_TRUE(run_again.ok()) << run_again.status();
  EXPECT_LE(run_again->report().forecast_after().host_peak_bytes(), little);
  EXPECT_GT(run_again->report().recomputation().node_count(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, ObjectiveGraphTest,
    ::testing::Values(ObjectiveGraph{"resnet50_free", "resnet50_free/graph.pb", 32},
                      ObjectiveGraph{"resnet50_tf1", "resnet50_tf1/graph_shapes.pb", 32}),
    testing::CaseName());

// The request's step limit bounds the search; the smallest budget found before that counts.
TEST(BudgetObjectiveTest, ASearchCutShortSaysSo) {
  const std::string bytes = ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  v1::RewriteOptions options;
  options.mutable_budget()->set_objective(v1::PLANNING_OBJECTIVE_SMALLEST_PEAK);
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(int64_t{1} << 50);
  bool refused = false, cut = false, whole = false;
  int64_t last = std::numeric_limits<int64_t>::max();
  for (int64_t simulations = 1; simulations <= 4096; simulations *= 4) {
    v1::Limits limits = DefaultLimits();
    limits.set_max_search_steps(simulations * 5000);
    const auto answer = Rewrite(bytes, options, limits, StopToken());
    if (!answer.ok()) {
      EXPECT_EQ(GetErrorReason(answer.status()), v1::ERROR_REASON_SEARCH_TOO_LONG)
          << answer.status();
      refused = true;
      continue;
    }
    if (answer->report().outcome() == v1::OUTCOME_NOTHING_TO_DO) continue;
    const v1::BudgetDevice& device = answer->report().budget().devices(0);
    EXPECT_LE(device.least_budget_bytes(), last) << simulations;
    last = device.least_budget_bytes();
    (device.cut_short() ? cut : whole) = true;
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(cut);
  EXPECT_TRUE(whole);
}

// Both towers are planned, though both fit without swaps; together they are as fast as requested.
TEST(BudgetObjectiveTest, TwoTowers) {
  const std::string bytes = ReadTestGraph("resnet50_2tower/graph.pb");
  const v1::RewriteReport report =
      WithObjective(
          bytes,
          "step { batch_size: 32 hardware { gpu_memory_bytes: 1125899906842624 } } budget "
          "{ planning_effort: PLANNING_EFFORT_LOW objective: "
          "PLANNING_OBJECTIVE_SMALLEST_PEAK max_slowdown: 1.05 }")
          .report();
  ASSERT_EQ(report.budget().devices_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(report.fits(i).not_needed());
    EXPECT_LT(report.budget().devices(i).least_budget_bytes(),
              report.fits(i).unswapped_peak_bytes());
  }
  EXPECT_LE(static_cast<double>(report.forecast_after().step_time_ns()),
            1.05 * static_cast<double>(report.fits(0).full_speed_step_time_ns()));
}

}  // namespace
}  // namespace spillway::core
