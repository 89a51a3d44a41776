#include "rewrite_core/strategy/budget/budget_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/simulate/lower_bounds.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/rewrite_core/strategy/budget/dear_graphs.h"
#include "tests/testing/files.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGpuStep;
using ::testing::UnorderedElementsAre;
using testing::ValueOrDie;

#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"

// "a: b..d": the buffer that a writes may be swapped out between b and d.
std::vector<std::string> Gaps(const TestGpuStep& step) {
  const auto name = [&](Slot slot) { return step.graph->name(step.order.node(slot)); };
  std::vector<std::string> gaps;
  for (const Gap& gap : step.planner.gaps()) {
    gaps.push_back(absl::StrCat(name(step.order.made(gap.buffer)), ": ", name(gap.after), "..",
                                name(gap.before)));
  }
  return gaps;
}

constexpr char kInput[] =
    "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n";

TEST(BudgetPlannerTest, EachTimeBetweenTwoUsesIsAGap) {
  const TestGpuStep step(absl::StrCat(
      kInput, "a = MatMul(x, x) " KIB_256 "b = MatMul(a, a) " KIB_256 "c = MatMul(b, b) " KIB_256
              "d = MatMul(c, a) " KIB_256 "e = MatMul(d, d) " KIB_256 "f = MatMul(e, a) " KIB_256));
  EXPECT_THAT(Gaps(step), UnorderedElementsAre("a: b..d", "a: d..f"));
}

// A reader that holds the memory keeps it resident: a While, or one on the host.
TEST(BudgetPlannerTest, NoGapWhereALaterReaderCannotReadASwapIn) {
  const std::string chain = absl::StrCat(
      kInput, "a = MatMul(x, x) " KIB_256 "b = MatMul(a, a) " KIB_256 "c = MatMul(b, b) " KIB_256
              "d = MatMul(c, a) " KIB_256 "e = MatMul(d, d) " KIB_256);
  EXPECT_THAT(Gaps(TestGpuStep(chain)), ElementsAre("a: b..d"));
  v1::Step fed;
  v1::Feed* feed = fed.add_feeds();
  feed->set_name("late");
  feed->add_dims(256);
  feed->add_dims(256);
  // `late` is fed: it does not run, and holds nothing.
  EXPECT_THAT(
      Gaps(TestGpuStep(
          absl::StrCat(chain, "late = MatMul(e, a) " KIB_256 "f = MatMul(late, e) " KIB_256), fed)),
      ElementsAre("a: b..d"));
}

// A reader of an alias uses the same memory: the gap takes both into account.
TEST(BudgetPlannerTest, AliasesAreOneBuffer) {
  const TestGpuStep step(absl::StrCat(kInput,
                                      "a = MatMul(x, x) " KIB_256 "same = Identity(a) " KIB_256
                                      "b = MatMul(same, a) " KIB_256 "c = MatMul(b, b) " KIB_256
                                      "d = MatMul(c, same) " KIB_256 "e = MatMul(d, d) " KIB_256
                                      "f = MatMul(e, a) " KIB_256));
  EXPECT_THAT(Gaps(step), UnorderedElementsAre("a: b..d", "a: d..f"));
}

// Computes by the test's own bookkeeping the memory in use at each slot, less the swapped buffers.
int64_t MostInUse(const TestGpuStep& step, const std::vector<GapId>& chosen) {
  std::vector<int64_t> live = step.order.live_bytes();
  for (GapId i : chosen) {
    const Gap& gap = step.planner.gaps()[i];
    for (Slot slot(gap.after + 1); slot < gap.before; ++slot) live[slot] -= gap.bytes;
  }
  return *std::max_element(live.begin(), live.end());
}

TEST(BudgetPlannerTest, TheCoverSufficesAndIsNearTheLeast) {
  testing::TrainingGraphOptions graph;
  for (const int64_t nodes : {400, 1500, 4000}) {
    graph.nodes = nodes;
    const TestGpuStep step(testing::TestGraph::FromBytes(testing::MakeTrainingGraph(graph)));
    const std::vector<int64_t>& live = step.order.live_bytes();
    const int64_t peak = *std::max_element(live.begin(), live.end());
    std::vector<GapId> all;
    for (GapId i(0); i < step.planner.num_gaps(); ++i) all.push_back(i);
    const int64_t least = MostInUse(step, all);
    ASSERT_LT(least, peak * 3 / 4) << "nothing to cover";
    for (const double share : {0.95, 0.8, 0.6}) {
      BudgetSetting setting;
      const int64_t target =
          std::max(least, static_cast<int64_t>(share * static_cast<double>(peak)));
      setting.targets.assign(live.size(), target);
      const std::vector<GapId> chosen = step.planner.Cover(setting);
      EXPECT_LE(MostInUse(step, chosen), target) << nodes << " nodes, " << share;
      EXPECT_EQ(std::set<GapId>(chosen.begin(), chosen.end()).size(), chosen.size());
      // The minimum that is possible with any parts of buffers (lower_bounds.h, bound B).
      std::vector<StepInterval> intervals;
      for (const Gap& gap : step.planner.gaps()) {
        intervals.push_back({gap.after + 1, gap.before - 1, gap.bytes});
      }
      std::vector<int64_t> demand;
      for (int64_t bytes : live) demand.push_back(std::max<int64_t>(0, bytes - target));
      const std::vector<int64_t> cover = LeastCover(intervals, demand);
      int64_t away = 0, largest = 0;
      for (GapId i : chosen) {
        away += step.planner.gaps()[i].bytes;
        largest = std::max(largest, step.planner.gaps()[i].bytes);
      }
      EXPECT_GE(away, cover.back()) << "less than the bound: the test is wrong";
      // Whole buffers: the cost of one that is not needed entirely, and of having few large ones.
      EXPECT_LE(away, cover.back() * 5 / 4 + largest) << nodes << " nodes, " << share;
    }
  }
}

// A plan is valid for the graph: each swap-in waits for a node that runs before its consumers, its
// gate does not depend on it, and the step with it completes.
TEST(BudgetPlannerTest, ThePlanRuns) {
  v1::Step options;
  options.set_batch_size(16);
  const TestGpuStep step(
      testing::TestGraph::FromBytes(testing::ReadTestGraph("resnet50_tf1/graph_shapes.pb")),
      options);
  const std::vector<int64_t>& live = step.order.live_bytes();
  BudgetSetting setting;
  setting.targets.assign(live.size(), *std::max_element(live.begin(), live.end()) * 7 / 10);
  SwapPlan plan;
  plan.swaps = ValueOrDie(
      step.planner.Plan(step.planner.Schedule(step.planner.Cover(setting), setting)), "");
  ASSERT_FALSE(plan.swaps.empty());
  size_t paces = 0;
  for (const PlannedSwap& swap : plan.swaps) {
    for (const PlannedSwapIn& swap_in : swap.swap_ins) {
      ASSERT_EQ(swap_in.triggers.size(), 1u);
      const Slot trigger = step.order.slot(swap_in.triggers[0]);
      for (const InputPosition& consumer : swap_in.consumers) {
        EXPECT_LT(trigger, step.order.slot(consumer.node));
      }
      for (NodeId node : swap_in.paces) EXPECT_LT(trigger, step.order.slot(node));
      paces += swap_in.paces.size();
    }
  }
  EXPECT_GT(paces, 0u);
  const StepResult result = step.Simulate(plan);
  EXPECT_TRUE(result.fits);
  // Launched ahead with unlimited memory, nothing waits for swap-outs.
  EXPECT_LT(result.synchronous.devices[0].peak_bytes,
            step.unswapped.synchronous.devices[0].peak_bytes);
}

// A trigger is searched for in 400 slots: 8 million looks at readers, if nothing bounded them.
TEST(BudgetPlannerTest, ManyReadersOfWhichTheLastMayNotWait) {
  const TestGpuStep step(testing::ManyReaders(20'000));
  const Tensor tensor{step.graph["s"], 0};
  const Slot wanted(step.SlotOf("a250") - 250);
  ASSERT_EQ(step.SlotOf("b_last"), step.order.num_slots() - 1);
  const std::vector<Eviction> evictions = {{step.planner.GapOver(tensor, wanted), wanted, 1}};
  std::vector<Eviction> sound = evictions;
  int64_t steps = step.stop.steps();
  step.planner.MakeSound(&sound);
  EXPECT_EQ(sound, evictions);
  EXPECT_LT(step.stop.steps() - steps, 5'000'000);
  EXPECT_THAT(ValueOrDie(step.planner.Plan(evictions), "plan"), IsEmpty());
  // It is polled.
  std::atomic<bool> cancelled{false};
  const StopToken stop(absl::InfiniteFuture(), &cancelled);
  const BudgetPlanner stopped =
      ValueOrDie(BudgetPlanner::Create(step.facts, step.eligibility, step.needs, step.order,
                                       step.ranks, /*filters=*/nullptr, stop),
                 "planner");
  cancelled = true;
  steps = stop.steps();
  stopped.MakeSound(&sound);
  EXPECT_LE(stop.steps() - steps, 3 * StopPoller::kStride);
}

}  // namespace
}  // namespace spillway::core
