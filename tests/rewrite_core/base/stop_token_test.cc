// A deadline or a cancellation reaches the loops of the core quickly.
#include "rewrite_core/base/stop_token.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/steady_time.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/inspect/explore.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sanitizers.h"

namespace spillway::core {
namespace {

using ::spillway::testing::ErrorDetailOf;
using ::spillway::testing::FailsWith;
using ::spillway::testing::GraphBytes;
using ::spillway::testing::IsOk;

TEST(StopTokenTest, ByDefaultItNeverStops) {
  const StopToken stop;
  EXPECT_FALSE(stop.ShouldStop(1'000'000'000));
  EXPECT_THAT(stop.status("x"), IsOk());
  EXPECT_EQ(stop.steps(), 1'000'000'000);
  EXPECT_EQ(stop.steps_after_stop(), 0);
}

TEST(StopTokenTest, FiresOnceItsStepsAreCounted) {
  const StopToken stop = StopToken::AfterStepsForTest(10);
  EXPECT_FALSE(stop.ShouldStop(10));
  EXPECT_THAT(stop.status("order"), IsOk());
  EXPECT_TRUE(stop.ShouldStop(1));
  EXPECT_EQ(stop.steps_after_stop(), 0);  // The step that noticed it.
  EXPECT_TRUE(stop.ShouldStop(5));
  EXPECT_EQ(stop.steps(), 16);
  EXPECT_EQ(stop.steps_after_stop(), 5);
  EXPECT_THAT(stop.status("order"),
              FailsWith(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED, "stage order"));
  EXPECT_EQ(ErrorDetailOf(stop.status("order"), "stage"), "order");
}

TEST(StopTokenTest, ACancelledFlagStops) {
  std::atomic<bool> cancelled{false};
  const StopToken stop(absl::InfiniteFuture(), &cancelled);
  EXPECT_FALSE(stop.ShouldStop(1));
  cancelled = true;
  EXPECT_THAT(stop.status("x"), IsOk());  // Not noticed yet.
  EXPECT_TRUE(stop.ShouldStop(1));
  EXPECT_EQ(stop.status("x").code(), absl::StatusCode::kCancelled);
  cancelled = false;
  EXPECT_TRUE(stop.ShouldStop(1)) << "a token that has fired stays so";
}

TEST(StopTokenTest, ADeadlineStops) {
  const StopToken past(SteadyNow() - absl::Seconds(1));
  EXPECT_TRUE(past.ShouldStop(1));
  EXPECT_THAT(past.status("x"), FailsWith(absl::StatusCode::kDeadlineExceeded,
                                          v1::ERROR_REASON_STOPPED, "the deadline passed"));
  const StopToken future(SteadyNow() + absl::Hours(1));
  EXPECT_FALSE(future.ShouldStop(1));
}

TEST(StopTokenTest, CancellationGoesBeforeTheDeadline) {
  const std::atomic<bool> cancelled{true};
  const StopToken stop(absl::InfinitePast(), &cancelled);
  EXPECT_TRUE(stop.ShouldStop(1));
  EXPECT_EQ(stop.status("x").code(), absl::StatusCode::kCancelled);
}

TEST(StopTokenTest, ACopyHasTheSameLimitsAndFreshCounts) {
  const StopToken stop = StopToken::AfterStepsForTest(10);
  EXPECT_TRUE(stop.ShouldStop(11));
  const StopToken copy(stop);
  EXPECT_EQ(copy.steps(), 0);
  EXPECT_FALSE(copy.ShouldStop(10));
  EXPECT_TRUE(copy.ShouldStop(1));
}

TEST(StopPollerTest, LooksOnceInAStride) {
  const StopToken stop = StopToken::AfterStepsForTest(0);
  StopPoller poll(stop);
  for (int i = 1; i < StopPoller::kStride; ++i) ASSERT_FALSE(poll.Tick()) << i;
  EXPECT_TRUE(poll.Tick());
  EXPECT_EQ(stop.steps(), StopPoller::kStride);
}

TEST(StopPollerTest, CountsStepsOfSeveralExactly) {
  const StopToken stop;
  StopPoller poll(stop);
  for (const int64_t steps : {StopPoller::kStride - 1, 5, 2 * StopPoller::kStride, 1}) {
    EXPECT_FALSE(poll.Tick(steps));
  }
  EXPECT_EQ(stop.steps(), 3 * StopPoller::kStride + 4) << "the last is not looked at yet";
}

TEST(StopPollerTest, StaysStoppedWithoutAskingAgain) {
  const StopToken stop = StopToken::AfterStepsForTest(0);
  StopPoller poll(stop);
  EXPECT_FALSE(poll.stopped());
  EXPECT_TRUE(poll.Tick(StopPoller::kStride));
  for (int i = 0; i < 3 * StopPoller::kStride; ++i) ASSERT_TRUE(poll.Tick());
  EXPECT_TRUE(poll.Tick(int64_t{1} << 62));
  EXPECT_TRUE(poll.Tick(int64_t{1} << 62));
  EXPECT_TRUE(poll.stopped());
  EXPECT_EQ(stop.steps_after_stop(), 0);
}

// ---- In the core ----

// A chain of forward ops and one of backward ops, each reading its forward twin, so that each stage
// takes many steps.
std::string LongChain(int length) {
  std::string text = "f0 = Placeholder() @/gpu:0 {dtype=float32}\n";
  for (int i = 1; i < length; ++i) {
    absl::StrAppend(&text, "f", i, " = Relu(f", i - 1, ") @/gpu:0 {T=float32}\n");
  }
  absl::StrAppend(&text, "gradients/g", length, " = Neg(f", length - 1, ") @/gpu:0 {T=float32}\n");
  for (int i = length - 1; i >= 0; --i) {
    absl::StrAppend(&text, "gradients/g", i, " = ReluGrad(gradients/g", i + 1, ", f", i,
                    ") @/gpu:0 {T=float32}\n");
  }
  return GraphBytes(text);
}

class StopInTheCoreTest : public ::testing::Test {
 protected:
  StopInTheCoreTest() {
    options_.mutable_scope()->add_optimizer_scopes("gradients");
    options_.mutable_scope()->add_starting_op_names("f0");
  }
  absl::Status RewriteStatus(const StopToken& stop) const {
    return Rewrite(bytes_, options_, DefaultLimits(), stop).status();
  }

  const std::string bytes_ = LongChain(2000);
  v1::RewriteOptions options_;
};

// However late the token fires, the current loop ends immediately and no other one starts.
void ExpectStopsAtOnce(const absl::Status& status, const StopToken& stop, int64_t limit) {
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED, "stage"));
  // A look comes once in a stride, or after the step of several that passes it.
  EXPECT_LT(stop.steps(), limit + 2 * StopPoller::kStride);
  EXPECT_EQ(stop.steps_after_stop(), 0);
}

TEST_F(StopInTheCoreTest, ParseStopsWhereverItIs) {
  const StopToken whole;
  ASSERT_THAT(Graph::Parse(bytes_, DefaultLimits(), whole), IsOk());
  ASSERT_GT(whole.steps(), 10'000) << "4,001 nodes in three passes, 6,000 inputs";
  for (int64_t limit = 0; limit < whole.steps(); limit += 1500) {
    const StopToken stop = StopToken::AfterStepsForTest(limit);
    ExpectStopsAtOnce(Graph::Parse(bytes_, DefaultLimits(), stop).status(), stop, limit);
  }
  const StopToken enough = StopToken::AfterStepsForTest(whole.steps());
  EXPECT_THAT(Graph::Parse(bytes_, DefaultLimits(), enough), IsOk());
}

TEST_F(StopInTheCoreTest, EveryStageStops) {
  // The stages in which a token that fires after some number of steps is noticed.
  std::set<std::string> stages;
  const StopToken whole;
  ASSERT_THAT(RewriteStatus(whole), IsOk());
  for (int64_t limit = 0; limit < whole.steps(); limit += 3 * StopPoller::kStride) {
    const StopToken stop = StopToken::AfterStepsForTest(limit);
    stages.insert(ErrorDetailOf(RewriteStatus(stop), "stage"));
  }
  // A shorter stage (the strategy's, the report's) may end between two checks of the token.
  EXPECT_THAT(stages,
              ::testing::IsSupersetOf({"parse", "analysis", "simulate", "apply", "verify"}));
  for (const std::string& stage : stages) {
    v1::Stage value;
    EXPECT_TRUE(v1::Stage_Parse(absl::StrCat("STAGE_", absl::AsciiStrToUpper(stage)), &value))
        << stage << " is no stage of the API";
  }
}

// A step's analyses, its simulation with and without budgets, the timeline, the bounds; the list of
// shapes; many simulations.
TEST_F(StopInTheCoreTest, SimulationsStopToo) {
  v1::SimulateOptions simulate;
  v1::Step& step = *simulate.mutable_step();
  v1::Feed* feed = step.add_feeds();
  feed->set_name("f0");
  feed->add_dims(1024);
  step.mutable_hardware()->set_gpu_memory_bytes(4 << 20);
  simulate.set_memory(true);
  v1::ExploreOptions explore;
  *explore.mutable_step() = step;
  explore.mutable_step()->mutable_feeds(0)->set_dims(0, -1);
  const std::vector<std::function<absl::Status(const StopToken&)>> calls = {
      [&](const StopToken& stop) {
        return SimulateGraph(bytes_, simulate, DefaultLimits(), stop).status();
      },
      [&](const StopToken& stop) {
        v1::InspectOptions all;
        all.set_tensors(true);
        return Inspect(bytes_, all, DefaultLimits(), stop,
                       [](v1::InspectResponse&&) { return true; });
      },
      [&](const StopToken& stop) {
        return Explore(bytes_, explore, DefaultLimits(), stop).status();
      },
  };
  std::set<std::string> stages;
  for (const auto& call : calls) {
    const StopToken whole;
    ASSERT_THAT(call(whole), IsOk());
    // No stage is shorter than these strides: one per node. For many simulations, some points.
    const bool is_explore = &call == &calls.back();
    const int64_t points = testing::kAddressSanitizer && is_explore ? 30 : 240;
    const int64_t stride = std::max<int64_t>(3 * StopPoller::kStride, whole.steps() / points);
    for (int64_t limit = 0; limit < whole.steps(); limit += stride) {
      const StopToken stop = StopToken::AfterStepsForTest(limit);
      const absl::Status status = call(stop);
      ExpectStopsAtOnce(status, stop, limit);
      stages.insert(ErrorDetailOf(status, "stage"));
    }
    EXPECT_THAT(call(StopToken::AfterStepsForTest(whole.steps())), IsOk());
  }
  EXPECT_THAT(stages, ::testing::IsSupersetOf({"parse", "analysis", "placement", "buffers", "costs",
                                               "workload", "simulate", "lower bounds", "tensors"}));
}

TEST_F(StopInTheCoreTest, ACancelledCallEndsAsCancelled) {
  const std::atomic<bool> cancelled{true};
  EXPECT_THAT(RewriteStatus(StopToken(absl::InfiniteFuture(), &cancelled)),
              FailsWith(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED, "cancelled"));
}

TEST_F(StopInTheCoreTest, APastDeadlineEndsAsDeadlineExceeded) {
  EXPECT_THAT(
      RewriteStatus(StopToken(SteadyNow() - absl::Seconds(1))),
      FailsWith(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_STOPPED, "allow more time"));
}

}  // namespace
}  // namespace spillway::core
