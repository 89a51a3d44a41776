#include "rewrite_core/plan/swap_plan.h"

#include <gtest/gtest.h>

#include "tests/testing/core_test_util.h"
#include "tests/testing/plan_text.h"

namespace spillway::core {
namespace {

using testing::PrintPlan;

class SwapPlanTest : public ::testing::Test {
 protected:
  NodeId N(absl::string_view name) const { return graph_.Node(name); }

  const testing::TestGraph graph_ = testing::TestGraph(R"(
      a = Split() {T=float32, num_split=2}
      scope/b = Relu(a)
      c = AddV2(a, a:1)
      t = Const()
      u = Const()
  )");
};

TEST_F(SwapPlanTest, AnEmptyPlanPrintsNothing) {
  EXPECT_TRUE(SwapPlan().empty());
  EXPECT_EQ(PrintPlan(*graph_, SwapPlan()), "");
}

TEST_F(SwapPlanTest, PrintsALinePerSwapInAndPerControlEdge) {
  SwapPlan plan;
  PlannedSwap swap;
  swap.tensor = {N("a"), 0};
  swap.size_bytes = 1024;
  swap.swap_ins = {PlannedSwapIn{{{N("scope/b"), 0}, {N("c"), 0}}, {N("t"), N("u")}},
                   PlannedSwapIn{{{N("c"), 0}}, {}}};
  plan.swaps.push_back(swap);
  PlannedSwap unknown;
  unknown.tensor = {N("a"), 1};
  unknown.swap_ins = {PlannedSwapIn{{{N("c"), 1}}, {N("scope/b")}}};
  unknown.deadlines = {N("c")};
  plan.swaps.push_back(unknown);
  plan.controls = {{N("t"), N("c"), v1::EDGE_KIND_SERIALIZATION}};
  EXPECT_FALSE(plan.empty());
  EXPECT_EQ(PrintPlan(*graph_, plan),
            "a:0 (1024 bytes) -> scope/b[0], c[0] after t, u\n"
            "a:0 (1024 bytes) -> c[0]\n"
            "a:1 (? bytes) -> c[1] after scope/b\n"
            "a:1 out => c\n"
            "t => c\n");
}

TEST_F(SwapPlanTest, SwapsOfOneTensorBecomeOne) {
  std::vector<PlannedSwap> swaps(4);
  swaps[0].tensor = swaps[2].tensor = {N("a"), 1};
  swaps[1].tensor = {N("a"), 0};
  swaps[3].tensor = {N("t"), 0};
  swaps[0].swap_ins = {PlannedSwapIn{{{N("c"), 1}}, {N("t")}}};
  swaps[2].swap_ins = {PlannedSwapIn{{{N("c"), 1}}, {N("u")}}};
  EXPECT_TRUE(SortSwaps(&swaps, {}));
  MergeSwaps(&swaps);
  ASSERT_EQ(swaps.size(), 3u);
  EXPECT_EQ(swaps[0].tensor.port, 0);
  ASSERT_EQ(swaps[1].swap_ins.size(), 2u);
  EXPECT_EQ(swaps[1].swap_ins[0].triggers[0], N("t"));
  EXPECT_EQ(swaps[1].swap_ins[1].triggers[0], N("u"));
  EXPECT_EQ(swaps[2].tensor.node, N("t"));
  swaps.clear();
  MergeSwaps(&swaps);
  EXPECT_TRUE(swaps.empty());
}

TEST_F(SwapPlanTest, ASizeOfZeroIsNoUnknownSize) {
  SwapPlan plan;
  PlannedSwap swap;
  swap.tensor = {N("a"), 0};
  swap.size_bytes = 0;
  swap.swap_ins = {PlannedSwapIn{{{N("c"), 0}}, {}}};
  plan.swaps.push_back(swap);
  EXPECT_EQ(PrintPlan(*graph_, plan), "a:0 (0 bytes) -> c[0]\n");
}

// Each kind of edge, and a swap that is named by its buffer; also under other ids.
TEST_F(SwapPlanTest, KindsOfEdgesArePrintedAndMoved) {
  SwapPlan plan;
  PlannedSwap swap;
  swap.tensor = {N("a"), 0};
  swap.size_bytes = 8;
  swap.buffer = BufferIndex(3);
  swap.swap_ins = {PlannedSwapIn{{{N("c"), 0}}, {N("t")}, {N("u")}}};
  swap.deadlines = {N("scope/b")};
  plan.swaps.push_back(swap);
  plan.controls = {{N("t"), N("c"), v1::EDGE_KIND_SERIALIZATION},
                   {N("u"), N("c"), v1::EDGE_KIND_ORDER}};
  const std::string edges =
      " -> c[0] after t\n"
      "a:0 in => u\n"
      "a:0 out => scope/b\n"
      "t => c\n"
      "u => c (order)\n";
  EXPECT_EQ(PrintPlan(*graph_, plan), "a:0 (8 bytes of buffer 3)" + edges);
  const testing::TestGraph other(R"(
      u = Const()
      t = Const()
      more = Const()
      a = Split() {T=float32, num_split=2}
      c = AddV2(a, a:1)
      scope/b = Relu(a)
  )");
  EXPECT_EQ(PrintPlan(*other, *MovePlan(plan, *graph_, *other, {})), "a:0 (8 bytes)" + edges);
}

TEST_F(SwapPlanTest, APlanOfControlEdgesAloneIsNotEmpty) {
  SwapPlan plan;
  plan.controls = {{N("t"), N("c"), v1::EDGE_KIND_ORDER}};
  EXPECT_FALSE(plan.empty());
}

}  // namespace
}  // namespace spillway::core
