#include "rewrite_core/inspect/explore.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/sanitizers.h"

namespace spillway::core {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::GraphBytes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The memory of y at batch size N: the 64x64 weights, and 64 floats for each example, once as its
// input (fed, and copied to the GPU) and once as its output.
constexpr char kDense[] = R"(
  x = Placeholder() {dtype=float32, shape=(?,64)}
  w = VariableV2() {dtype=float32, shape=(64,64)}
  r = Identity(w) {T=float32}
  y = MatMul(x, r) {T=float32}
)";
constexpr int64_t kWeightBytes = 64 * 64 * 4;
constexpr int64_t kExampleBytes = 2 * 64 * 4;

// y takes twice 4 N^2 bytes, each rounded up to 256.
constexpr char kSquare[] = R"(
  x = Placeholder() {dtype=float32, shape=(?,?)}
  y = MatMul(x, x) {T=float32}
)";

v1::ExploreOptions Budget(int64_t bytes, std::vector<int64_t> sizes = {}) {
  v1::ExploreOptions options;
  options.mutable_step()->add_targets("y");
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(bytes);
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  for (int64_t size : sizes) options.add_sizes(size);
  return options;
}

// -1 stands for the size.
void AddFeed(std::vector<int64_t> dims, v1::ExploreOptions* options) {
  v1::Feed* feed = options->mutable_step()->add_feeds();
  feed->set_name("x");
  for (int64_t dim : dims) feed->add_dims(dim);
}

absl::StatusOr<v1::ExploreReport> TryExplore(absl::string_view graph,
                                             const v1::ExploreOptions& options) {
  return Explore(GraphBytes(graph), options, DefaultLimits(), StopToken());
}

v1::ExploreReport Explored(absl::string_view graph, const v1::ExploreOptions& options) {
  auto report = TryExplore(graph, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : v1::ExploreReport();
}

void ExpectError(absl::string_view graph, const v1::ExploreOptions& options, v1::ErrorReason reason,
                 const std::string& text) {
  const auto report = TryExplore(graph, options);
  ASSERT_FALSE(report.ok()) << report->DebugString();
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetErrorReason(report.status()), reason) << report.status();
  EXPECT_THAT(std::string(report.status().message()), HasSubstr(text));
}

std::vector<int64_t> SizesOf(const v1::ExploreReport& report) {
  std::vector<int64_t> sizes;
  for (const v1::ExploredSize& size : report.sizes()) sizes.push_back(size.size());
  return sizes;
}

TEST(ExploreTest, FindsTheLargestBatchToTheByte) {
  const int64_t exact = kWeightBytes + 100 * kExampleBytes;
  for (const auto& [budget, largest] : std::vector<std::pair<int64_t, int64_t>>{
           {exact - 1, 99}, {exact, 100}, {exact + kExampleBytes - 1, 100}}) {
    const v1::ExploreReport report = Explored(kDense, Budget(budget));
    EXPECT_EQ(report.largest_fitting_size(), largest) << budget;
    EXPECT_TRUE(report.size_is_batch());
    for (const v1::ExploredSize& size : report.sizes()) {
      ASSERT_EQ(size.unswapped().devices_size(), 1);
      EXPECT_EQ(size.unswapped().devices(0).peak_bytes(),
                kWeightBytes + size.size() * kExampleBytes);
      EXPECT_EQ(size.unswapped().fit() != v1::FIT_DOES_NOT_FIT, size.size() <= largest)
          << size.size();
      EXPECT_EQ(size.has_steps_per_s(), size.size() <= largest);
      EXPECT_EQ(size.has_sizes_per_s(), size.size() <= largest);
    }
  }
}

TEST(ExploreTest, DoublesUntilOneDoesNotFitThenHalves) {
  const v1::ExploreReport report = Explored(kDense, Budget(kWeightBytes + 100 * kExampleBytes));
  EXPECT_THAT(SizesOf(report),
              ElementsAre(1, 2, 4, 8, 16, 32, 64, 96, 100, 101, 102, 104, 112, 128));
  EXPECT_EQ(report.largest_fitting_size(), 100);
}

TEST(ExploreTest, TheNextTwoSizesAreTriedToo) {
  const v1::ExploreReport report = Explored(kDense, Budget(kWeightBytes + 99 * kExampleBytes));
  EXPECT_THAT(SizesOf(report),
              ElementsAre(1, 2, 4, 8, 16, 32, 64, 96, 98, 99, 100, 101, 104, 112, 128));
  EXPECT_EQ(report.largest_fitting_size(), 99);
}

TEST(ExploreTest, ThroughputIsOfTheStepAndOfItsExamples) {
  const v1::ExploreReport report =
      Explored(kDense, Budget(kWeightBytes + 100 * kExampleBytes, {64}));
  for (const v1::ExploredSize& size : report.sizes()) {
    if (size.unswapped().fit() == v1::FIT_DOES_NOT_FIT) continue;
    EXPECT_DOUBLE_EQ(size.steps_per_s(), 1e9 / size.unswapped().step_time_ns());
    EXPECT_DOUBLE_EQ(size.sizes_per_s(), size.steps_per_s() * size.size());
  }
}

// At the limit of memory this net fits if launched ahead, but not synchronously.
TEST(ExploreTest, ThroughputIsOfSizesThatFitBothWays) {
  v1::ExploreOptions options;
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(200'000'000);
  auto report =
      Explore(testing::ReadTestGraph("lstm_while/graph.pb"), options, DefaultLimits(), StopToken());
  ASSERT_TRUE(report.ok()) << report.status();
  int one_way = 0;
  for (const v1::ExploredSize& size : report->sizes()) {
    const v1::Forecast& forecast = size.unswapped();
    one_way += forecast.fit() == v1::FIT_DOES_NOT_FIT && forecast.has_step_time_ns();
    EXPECT_EQ(size.has_steps_per_s(), forecast.fit() != v1::FIT_DOES_NOT_FIT) << size.size();
  }
  EXPECT_GT(one_way, 0);
}

TEST(ExploreTest, SizesAskedForAreTriedAndTheSearchGoesOnBetweenThem) {
  const v1::ExploreReport report =
      Explored(kDense, Budget(kWeightBytes + 100 * kExampleBytes, {104, 96, 96}));
  EXPECT_THAT(SizesOf(report), ElementsAre(96, 100, 101, 102, 104));
  EXPECT_EQ(report.largest_fitting_size(), 100);
}

TEST(ExploreTest, OnlyMultiples) {
  v1::ExploreOptions options = Budget(kWeightBytes + 100 * kExampleBytes);
  options.set_multiple_of(8);
  const v1::ExploreReport report = Explored(kDense, options);
  EXPECT_EQ(report.largest_fitting_size(), 96);
  for (int64_t size : SizesOf(report)) EXPECT_EQ(size % 8, 0) << size;
}

TEST(ExploreTest, NoneFits) {
  const v1::ExploreReport report = Explored(kDense, Budget(kWeightBytes));
  EXPECT_FALSE(report.has_largest_fitting_size());
  EXPECT_THAT(SizesOf(report), ElementsAre(1));
  EXPECT_EQ(report.sizes(0).unswapped().fit(), v1::FIT_DOES_NOT_FIT);
}

TEST(ExploreTest, TwoOpenDimensionsAreOneSize) {
  v1::ExploreOptions options = Budget(2 * 40192);  // 4 * 100^2 bytes rounded up to 157 * 256.
  AddFeed({-1, -1}, &options);
  const v1::ExploreReport report = Explored(kSquare, options);
  EXPECT_EQ(report.largest_fitting_size(), 100);
  EXPECT_FALSE(report.size_is_batch());
}

TEST(ExploreTest, TheFirstDimensionOfAFeedIsTheBatch) {
  v1::ExploreOptions options = Budget(kWeightBytes + 70 * kExampleBytes);
  AddFeed({-1, 64}, &options);
  const v1::ExploreReport report = Explored(kDense, options);
  EXPECT_EQ(report.largest_fitting_size(), 70);
  EXPECT_TRUE(report.size_is_batch());
}

// On the GPU, 2 * 4 N^2 <= 2^60 up to N = 2^28.5. At 2^29 all buffers, including the host's, exceed
// the limit of the simulator (2^61), and at 2^31 - 1 a single matrix has more than 2^63 bytes.
TEST(ExploreTest, SizesThatOverflowDoNotFit) {
  v1::ExploreOptions options = Budget(int64_t{1} << 60, {1, 2147483647});
  options.mutable_step()->mutable_hardware()->set_host_memory_bytes(int64_t{1} << 60);
  AddFeed({-1, -1}, &options);
  const v1::ExploreReport report = Explored(kSquare, options);
  EXPECT_EQ(report.largest_fitting_size(), 379625062);
  ASSERT_GE(report.warnings_size(), 1);
  EXPECT_THAT(report.warnings(report.warnings_size() - 1).message(),
              HasSubstr("size 536870912 counts as one that does not fit"));
}

// Up to 64 examples take 256 bytes, the allocator's rounding.
TEST(ExploreTest, NeighboursThatAreRoundedAlikeDoNotMakeAFixedBatch) {
  constexpr char kTiny[] = R"(
    x = Placeholder() {dtype=float32, shape=(?,1)}
    w = VariableV2() {dtype=float32, shape=(1,1)}
    r = Identity(w) {T=float32}
    y = MatMul(x, r) {T=float32}
  )";
  EXPECT_EQ(Explored(kTiny, Budget(3 * 256)).largest_fitting_size(), 64);
}

TEST(ExploreTest, ASizeThatTheGraphDoesNotAllowIsAnError) {
  v1::ExploreOptions options = Budget(1 << 20, {64, 80});
  AddFeed({8, -1}, &options);
  ExpectError(kDense, options, v1::ERROR_REASON_BAD_OPTION, "[8,80]");
}

TEST(ExploreTest, WithoutABudgetOnlyTheSizesAskedFor) {
  v1::ExploreOptions options = Budget(1, {5, 3});
  options.set_no_budget(true);
  const v1::ExploreReport report = Explored(kDense, options);
  EXPECT_THAT(SizesOf(report), ElementsAre(3, 5));
  EXPECT_EQ(report.sizes(0).unswapped().fit(), v1::FIT_FITS);
  EXPECT_FALSE(report.has_largest_fitting_size());
  options.clear_sizes();
  ExpectError(kDense, options, v1::ERROR_REASON_CONFLICTING_OPTIONS, "no_budget");
}

TEST(ExploreTest, AFixedBatchIsAnError) {
  constexpr char kFixed[] = R"(
    x = Placeholder() {dtype=float32, shape=(8,64)}
    y = MatMul(x, x) {T=float32, transpose_b=true}
  )";
  ExpectError(kFixed, Budget(1 << 20), v1::ERROR_REASON_BAD_OPTION, "give the same step");
  // Also if not even that fits.
  ExpectError(kFixed, Budget(1), v1::ERROR_REASON_BAD_OPTION, "the graph fixes the batch");
  ExpectError(kFixed, Budget(1 << 20, {2147483647}), v1::ERROR_REASON_BAD_OPTION,
              "sizes 2147483647 and 2097151 ");
}

v1::RewriteOptions TunedAt(int64_t batch_size, int64_t gpu_memory_bytes) {
  v1::RewriteOptions options;
  options.mutable_budget()->set_recompute(v1::RECOMPUTE_OFF);
  options.mutable_step()->set_batch_size(batch_size);
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(gpu_memory_bytes);
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  return options;
}

constexpr int64_t kSwappingBudget = 16 << 20;
constexpr double kRounding = 1 + 1e-9;

v1::ExploreOptions TestSwapping(std::vector<int64_t> sizes = {}) {
  v1::ExploreOptions options;
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(kSwappingBudget);
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  options.set_swapping(true);
  for (int64_t size : sizes) options.add_sizes(size);
  return options;
}

// Every size of the report is passed on once, and unchanged.
void ExpectRowsAreTheReport(const std::string& graph, const v1::ExploreOptions& options) {
  std::map<int64_t, std::string> rows;
  const auto report =
      Explore(graph, options, DefaultLimits(), StopToken(), [&rows](const v1::ExploredSize& size) {
        EXPECT_TRUE(rows.emplace(size.size(), size.SerializeAsString()).second) << size.size();
      });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->sizes_size(), 1);
  std::map<int64_t, std::string> expected;
  for (const v1::ExploredSize& size : report->sizes()) {
    expected[size.size()] = size.SerializeAsString();
  }
  EXPECT_EQ(rows, expected);
}

TEST(ExploreTest, SizesAreToldOnceEachAsTheyAreFound) {
  const std::string dense = GraphBytes(kDense);
  ExpectRowsAreTheReport(dense, Budget(kWeightBytes + 100 * kExampleBytes));
  ExpectRowsAreTheReport(dense, Budget(kWeightBytes + 100 * kExampleBytes, {104, 96, 96}));
  if (testing::kAddressSanitizer) return;  // Searches take minutes.
  v1::ExploreOptions swapping = TestSwapping({8, 1});
  swapping.set_recompute(v1::RECOMPUTE_OFF);  // A third of the time; it is the same loop.
  // No size then takes the plan of a larger one, which is in the report alone.
  swapping.mutable_step()->set_kernel_memory(v1::KERNEL_MEMORY_OFF);
  ExpectRowsAreTheReport(testing::ReadTestGraph("unet3d_s16/graph.pb"), swapping);
}

TEST(ExploreTest, SizesThatWereFoundBeforeAnErrorWereTold) {
  const v1::ExploreOptions options = Budget(kWeightBytes + 100 * kExampleBytes);
  std::vector<int64_t> told;
  const StopToken counter;
  const auto tell = [&told](const v1::ExploredSize& size) { told.push_back(size.size()); };
  ASSERT_TRUE(Explore(GraphBytes(kDense), options, DefaultLimits(), counter, tell).ok());
  const std::vector<int64_t> all = std::move(told);
  ASSERT_GE(all.size(), 2u);
  told.clear();
  const StopToken stop = StopToken::AfterStepsForTest(counter.steps() - 1);
  const auto stopped = Explore(GraphBytes(kDense), options, DefaultLimits(), stop, tell);
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_GE(told.size(), 1u);
  EXPECT_LT(told.size(), all.size());
}

// With recomputation, sizes are faster than the bound of swaps, which is then not reported.
TEST(ExploreTest, WithRecomputation) {
  if (testing::kAddressSanitizer) GTEST_SKIP() << "searches take minutes";
  const std::string graph = testing::ReadTestGraph("unet3d_s16/graph.pb");
  v1::ExploreOptions options = TestSwapping({6});
  options.set_multiple_of(1 << 20);  // No other size.
  options.mutable_step()->mutable_hardware()->set_h2d_bytes_per_s(1e9);
  options.mutable_step()->mutable_hardware()->set_d2h_bytes_per_s(1e9);
  options.set_recompute(v1::RECOMPUTE_OFF);
  const auto swaps = Explore(graph, options, DefaultLimits(), StopToken());
  ASSERT_TRUE(swaps.ok()) << swaps.status();
  options.set_recompute(v1::RECOMPUTE_ALL);
  const auto both = Explore(graph, options, DefaultLimits(), StopToken());
  ASSERT_TRUE(both.ok()) << both.status();
  std::map<int64_t, double> bounds;
  for (const v1::ExploredSize& size : swaps->sizes()) {
    bounds[size.size()] = size.bound_sizes_per_s();
  }
  int beyond = 0, with_bound = 0;
  for (const v1::ExploredSize& size : both->sizes()) {
    if (size.has_bound_sizes_per_s()) {
      EXPECT_LE(size.swapped_sizes_per_s(), size.bound_sizes_per_s() * 1.000001);
      with_bound += size.has_swapped();
    }
    beyond += bounds[size.size()] > 0 && size.swapped_sizes_per_s() > bounds[size.size()];
  }
  EXPECT_GT(beyond, 0);
  EXPECT_GT(with_bound, 0);
  options.set_recompute(static_cast<v1::Recompute>(9));
  const auto wrong = Explore(graph, options, DefaultLimits(), StopToken());
  EXPECT_EQ(GetErrorReason(wrong.status()), v1::ERROR_REASON_UNKNOWN_OPTION);
  options.set_recompute(v1::RECOMPUTE_ALL);
  options.set_swapping(false);
  const auto alone = Explore(graph, options, DefaultLimits(), StopToken());
  EXPECT_EQ(GetErrorReason(alone.status()), v1::ERROR_REASON_CONFLICTING_OPTIONS);
}

TEST(ExploreTest, OptionsAreCheckedBeforeTheGraphIsRead) {
  v1::ExploreOptions options = Budget(1 << 20);
  options.GetReflection()->MutableUnknownFields(&options)->AddVarint(99, 1);
  auto report = Explore("not a graph", options, DefaultLimits(), StopToken());
  EXPECT_EQ(GetErrorReason(report.status()), v1::ERROR_REASON_UNKNOWN_OPTION);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("ExploreOptions has field 99"));
  options = Budget(-1);
  report = Explore("not a graph", options, DefaultLimits(), StopToken());
  v1::RewriteOptions rewrite;
  *rewrite.mutable_step() = options.step();
  const auto rewritten = Rewrite("not a graph", rewrite, DefaultLimits(), StopToken());
  EXPECT_EQ(GetErrorReason(report.status()), v1::ERROR_REASON_BAD_OPTION);
  EXPECT_EQ(report.status().message(), rewritten.status().message());
}

// Every row equals the forecast of a rewrite at that size.
TEST(ExploreTest, WithSwapping) {
  if (testing::kAddressSanitizer) GTEST_SKIP() << "searches take minutes";
  const std::string graph = testing::ReadTestGraph("unet3d_s16/graph.pb");
  v1::ExploreOptions options = TestSwapping();
  options.set_recompute(v1::RECOMPUTE_OFF);  // As TunedAt.
  const auto report = Explore(graph, options, DefaultLimits(), StopToken());
  ASSERT_TRUE(report.ok()) << report.status();
  const int64_t largest = report->largest_fitting_size();
  const int64_t swapped = report->largest_fitting_size_swapped();
  EXPECT_GE(largest, 1);
  EXPECT_GT(swapped, largest);
  bool next_tried = false;
  for (const v1::ExploredSize& size : report->sizes()) {
    SCOPED_TRACE(size.size());
    EXPECT_TRUE(size.has_swapped() || size.size() > swapped);
    if (size.size() == swapped + 1) {
      next_tried = true;
      EXPECT_FALSE(size.has_swapped());
    }
    v1::SimulateOptions free;
    *free.mutable_step() = options.step();
    free.mutable_step()->set_batch_size(size.size());
    free.set_no_budget(true);
    const auto full = SimulateGraph(graph, free, DefaultLimits(), StopToken());
    ASSERT_TRUE(full.ok()) << full.status();
    EXPECT_DOUBLE_EQ(size.full_speed_sizes_per_s(),
                     1e9 / full->forecast().step_time_ns() * size.size());

    const auto rewritten =
        Rewrite(graph, TunedAt(size.size(), kSwappingBudget), DefaultLimits(), StopToken());
    // Without a plan there may still be a bound.
    EXPECT_TRUE(size.has_bound_sizes_per_s() || !size.has_swapped());
    EXPECT_LE(size.swapped_sizes_per_s(), size.bound_sizes_per_s() * kRounding);
    EXPECT_EQ(size.has_swapped_sizes_per_s(), size.has_swapped());
    if (!size.has_swapped()) {
      EXPECT_EQ(GetErrorReason(rewritten.status()), v1::ERROR_REASON_DOES_NOT_FIT);
      continue;
    }
    ASSERT_TRUE(rewritten.ok()) << rewritten.status();
    if (size.has_plan_of_size()) continue;  // See PlansOfLargerSizes.
    const v1::RewriteReport& r = rewritten->report();
    const bool needed = r.outcome() == v1::OUTCOME_REWRITTEN;
    EXPECT_EQ(needed, size.unswapped().fit() == v1::FIT_DOES_NOT_FIT);
    v1::Forecast expected = needed ? r.forecast_after() : r.forecast_before();
    for (v1::DeviceForecast& device : *expected.mutable_devices()) device.clear_bounds();
    EXPECT_EQ(size.swapped().DebugString(), expected.DebugString());
    EXPECT_DOUBLE_EQ(size.swapped_steps_per_s(), 1e9 / expected.step_time_ns());
    EXPECT_DOUBLE_EQ(size.swapped_sizes_per_s(), size.swapped_steps_per_s() * size.size());
  }
  EXPECT_TRUE(next_tried);
}

// Near the smallest memory that suffices for a step, searches of neighbouring sizes find plans of
// very different speeds. No size keeps a slower plan than a larger size's plan that fits; and the
// report holds for the plan saved at the one size and applied at the other.
TEST(ExploreTest, PlansOfLargerSizes) {
  if (testing::kAddressSanitizer) GTEST_SKIP() << "searches take minutes";
  const std::string graph = testing::ReadTestGraph("cnn_mnist/graph.pb");
  v1::ExploreOptions options;
  options.mutable_step()->mutable_hardware()->set_preset("v100_pcie");
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(200'000'000);
  options.set_swapping(true);
  options.mutable_step()->set_kernel_memory(v1::KERNEL_MEMORY_OFF);  // So that it is tight enough.
  for (const int64_t size : {608, 645, 655}) options.add_sizes(size);
  const auto report = Explore(graph, options, DefaultLimits(), StopToken());
  ASSERT_TRUE(report.ok()) << report.status();
  int with_others = 0;
  for (const v1::ExploredSize& size : report->sizes()) {
    if (!size.has_plan_of_size()) continue;
    SCOPED_TRACE(size.size());
    ++with_others;
    EXPECT_GT(size.plan_of_size(), size.size());
    v1::RewriteOptions rewrite = TunedAt(size.plan_of_size(), 200'000'000);
    *rewrite.mutable_step() = options.step();
    rewrite.mutable_step()->set_batch_size(size.plan_of_size());
    rewrite.mutable_budget()->clear_recompute();
    rewrite.add_outputs(v1::OUTPUT_PLAN);
    const auto planned = Rewrite(graph, rewrite, DefaultLimits(), StopToken());
    ASSERT_TRUE(planned.ok()) << planned.status();
    v1::RewriteOptions apply;
    *apply.mutable_step() = options.step();
    apply.mutable_step()->set_batch_size(size.size());
    apply.mutable_apply()->set_plan(planned->plan().SerializeAsString());
    const auto applied = Rewrite(graph, apply, DefaultLimits(), StopToken());
    ASSERT_TRUE(applied.ok()) << applied.status();
    const v1::Forecast& after = applied->report().forecast_after();
    EXPECT_EQ(after.fit(), v1::FIT_FITS);
    EXPECT_EQ(after.step_time_ns(), size.swapped().step_time_ns());
    EXPECT_DOUBLE_EQ(size.swapped_sizes_per_s(), 1e9 / after.step_time_ns() * size.size());
    // Faster than its own.
    v1::RewriteOptions own = rewrite;
    own.mutable_step()->set_batch_size(size.size());
    const auto alone = Rewrite(graph, own, DefaultLimits(), StopToken());
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_LT(1.01 * after.step_time_ns(), alone->report().fits(0).step_time_ns());
  }
  EXPECT_GE(with_others, 1);
}

TEST(ExploreTest, WithoutSwappingNothingIsSaidOfIt) {
  const v1::ExploreReport report = Explored(kDense, Budget(1 << 20));
  EXPECT_FALSE(report.has_largest_fitting_size_swapped());
  for (const v1::ExploredSize& size : report.sizes()) {
    EXPECT_FALSE(size.has_swapped());
    EXPECT_FALSE(size.has_swapped_steps_per_s());
    EXPECT_FALSE(size.has_full_speed_sizes_per_s());
  }
}

// Nothing in kDense can be swapped: both searches end at the same size.
TEST(ExploreTest, WhereNothingCanBeSwappedBothAreTheSame) {
  v1::ExploreOptions options = Budget(kWeightBytes + 100 * kExampleBytes);
  options.set_swapping(true);
  const v1::ExploreReport report = Explored(kDense, options);
  EXPECT_EQ(report.largest_fitting_size(), 100);
  EXPECT_EQ(report.largest_fitting_size_swapped(), 100);
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(kWeightBytes);
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  const v1::ExploreReport none = Explored(kDense, options);
  EXPECT_FALSE(none.has_largest_fitting_size());
  EXPECT_FALSE(none.has_largest_fitting_size_swapped());
}

TEST(ExploreTest, SwappingNeedsABudget) {
  v1::ExploreOptions options = Budget(1 << 20, {8});
  options.set_no_budget(true);
  options.set_swapping(true);
  ExpectError(kDense, options, v1::ERROR_REASON_CONFLICTING_OPTIONS, "swapping");
}

TEST(ExploreTest, BadOptions) {
  v1::ExploreOptions batch = Budget(1 << 20);
  batch.mutable_step()->set_batch_size(8);
  ExpectError(kDense, batch, v1::ERROR_REASON_CONFLICTING_OPTIONS, "batch_size");
  // Values measured at one size would apply to all.
  v1::ExploreOptions profile = Budget(1 << 20);
  profile.mutable_step()->set_profile("measured");
  ExpectError(kDense, profile, v1::ERROR_REASON_CONFLICTING_OPTIONS, "profile");
  for (int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{1} << 31}) {
    v1::ExploreOptions multiple = Budget(1 << 20);
    multiple.set_multiple_of(bad);
    ExpectError(kDense, multiple, v1::ERROR_REASON_BAD_OPTION, "multiple_of is ");
    ExpectError(kDense, Budget(1 << 20, {4, bad}), v1::ERROR_REASON_BAD_OPTION, "sizes is ");
  }
  v1::ExploreOptions rank = Budget(1 << 20);
  AddFeed({-1, 64, 1}, &rank);
  ExpectError(kDense, rank, v1::ERROR_REASON_BAD_OPTION, "'x:0'");
  v1::ExploreOptions target = Budget(1 << 20);
  target.mutable_step()->add_targets("nope");
  ExpectError(kDense, target, v1::ERROR_REASON_NAME_MATCHES_NOTHING, "target 'nope'");
}

// With the size, which appears nowhere else in the error.
TEST(ExploreTest, AMistakeOfTheGraphIsToldWithTheSize) {
  v1::ExploreOptions options = Budget(1 << 20);
  AddFeed({8, -1}, &options);
  ExpectError(R"(
    x = Placeholder() {dtype=float32, shape=(?,?)}
    w = VariableV2() {dtype=float32, shape=(64,64)}
    r = Identity(w) {T=float32}
    y = MatMul(x, r) {T=float32}
  )",
              options, v1::ERROR_REASON_BAD_INPUT,
              "at size 1 (to skip it: sizes, multiple_of): node 'y'");
}

}  // namespace
}  // namespace spillway::core
