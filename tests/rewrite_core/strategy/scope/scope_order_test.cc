#include "rewrite_core/strategy/scope/scope_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/recorded_v1.h"

namespace spillway::core {
namespace {

using testing::TestGraph;

// Orders by name; the backward part consists of the nodes named `G/...`.
using Orders = std::map<std::string, int>;

struct Result {
  int operator[](const std::string& name) const { return orders.at(name); }

  Orders orders;
  int backward_start = kNoOrder;
  int level_count = 0;
};

Result OrderOf(const std::string& text, const std::vector<std::string>& seeds) {
  const TestGraph graph(text);
  const Topology topology = testing::ValueOrDie(Topology::Build(*graph, StopToken()), "topology");
  NodeFlags backward;
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    backward.push_back(absl::StartsWith(graph->name(id), "G/"));
  }
  std::vector<NodeId> seed_ids;
  for (const std::string& seed : seeds) seed_ids.push_back(graph.Node(seed));
  const ScopeOrder order = testing::ValueOrDie(
      BuildScopeOrder(*graph, topology, backward, seed_ids, StopToken()), "order");
  Result result{{}, order.backward_start, order.level_count};
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    result.orders[std::string(graph->name(id))] = order.order[id];
  }
  return result;
}

TEST(ScopeOrderTest, LevelsAreLongestPathsFromTheSeeds) {
  const Result r = OrderOf(R"(
      w = VariableV2()
      a = Relu(w)
      b = Relu(a)
      c = AddV2(a, b)
      G/c = Relu(c)
      G/b = AddV2(G/c, b)
  )",
                           {"w"});
  EXPECT_EQ(r.orders, (Orders{{"w", 0}, {"a", 1}, {"b", 2}, {"c", 3}, {"G/c", 4}, {"G/b", 5}}));
  EXPECT_EQ(r.backward_start, 4);
  EXPECT_EQ(r.level_count, 6);
}

constexpr char kTwoSources[] = R"(
    w = VariableV2()
    y0 = Placeholder()
    y1 = Relu(y0)
    y2 = Relu(y1)
    loss = Sub(w, y2)
    G/g = Relu(loss)
)";

// "those that lie both on a forward walk from the seeds and on a backward walk from B"
TEST(ScopeOrderTest, WhatTheSeedsDoNotReachDoesNotCount) {
  const Result r = OrderOf(kTwoSources, {"w"});
  EXPECT_EQ(r.orders, (Orders{{"w", 0},
                              {"y0", kNoOrder},
                              {"y1", kNoOrder},
                              {"y2", kNoOrder},
                              {"loss", 1},
                              {"G/g", 2}}));
}

TEST(ScopeOrderTest, WhatTheSeedsReachCounts) {
  const Result r = OrderOf(kTwoSources, {"w", "y0"});
  EXPECT_EQ(r.orders, (Orders{{"w", 0}, {"y0", 0}, {"y1", 1}, {"y2", 2}, {"loss", 3}, {"G/g", 4}}));
}

TEST(ScopeOrderTest, WhatDoesNotLeadToTheBackwardPartDoesNotCount) {
  // `argmax` counts its input, which leads on; `equal` and `mean` have no inputs that count.
  const Result r = OrderOf(R"(
      w = VariableV2()
      logits = Relu(w)
      argmax = Relu(logits)
      equal = Relu(argmax)
      mean = Relu(equal)
      G/g = Relu(logits)
      G/h = Relu(G/g)
  )",
                           {"w"});
  EXPECT_EQ(r["argmax"], 2);
  EXPECT_EQ(r["equal"], 0);
  EXPECT_EQ(r["mean"], 0);
  // G/g shares level 2 with argmax, which is outside the backward part.
  EXPECT_EQ(r["G/g"], kNoOrder);
  EXPECT_EQ(r["G/h"], 3);
}

// "An op depends on its control inputs"
TEST(ScopeOrderTest, ControlInputsCountByTheSameRule) {
  const Result counted = OrderOf(R"(
      w = VariableV2()
      a = Relu(w)
      b = Relu(a)
      c = AddV2(w, w, ^b)
      G/g = AddV2(b, c)
  )",
                                 {"w"});
  EXPECT_EQ(counted["c"], 3);
  EXPECT_EQ(counted["G/g"], 4);
  const Result outside = OrderOf(R"(
      w = VariableV2()
      x0 = Placeholder()
      x1 = Relu(x0)
      c = Relu(w, ^x1)
      G/g = Relu(c)
  )",
                                 {"w"});
  EXPECT_EQ(outside["c"], 1);
  EXPECT_EQ(outside["x1"], kNoOrder);
}

// "(an op without data inputs keeps all its control inputs as dependencies, and such outside ops
// then have level 0)"
TEST(ScopeOrderTest, AnOpWithoutDataInputsKeepsAllControlInputs) {
  const Result r = OrderOf(R"(
      x = Placeholder()
      outside = Relu(x)
      w = VariableV2(^outside)
      a = Relu(w)
      G/g = Relu(a)
  )",
                           {"w"});
  EXPECT_EQ(r.orders, (Orders{{"x", kNoOrder}, {"outside", 0}, {"w", 1}, {"a", 2}, {"G/g", 3}}));
  const Result without = OrderOf(R"(
      x = Placeholder()
      outside = Relu(x)
      w = VariableV2()
      a = Relu(w)
      G/g = Relu(a)
  )",
                                 {"w"});
  EXPECT_EQ(without.orders,
            (Orders{{"x", kNoOrder}, {"outside", kNoOrder}, {"w", 0}, {"a", 1}, {"G/g", 2}}));
}

// "in a level that holds ops outside B, the ops of B are dropped from the level; ops that are
// reachable from B but not in B are dropped; empty levels vanish and the rest are renumbered"
TEST(ScopeOrderTest, DropsAndRenumbers) {
  const Result r = OrderOf(R"(
      w = VariableV2()
      a = Relu(w)
      loss = Relu(a)
      G/beside_a = Relu(w)
      G/g1 = Relu(loss)
      G/g2 = AddV2(G/g1, a)
      update = Relu(G/g1)
      G/g3 = Relu(G/g2)
      G/g4 = Relu(G/g3)
  )",
                           {"w"});
  // Before anything is dropped: w 0; a, G/beside_a 1; loss 2; G/g1 3; G/g2, update 4; G/g3 5; G/g4
  // 6. Level 1 holds a, so G/beside_a goes; level 4 holds update, so G/g2 goes, then update itself,
  // being behind the backward part: level 4 vanishes.
  EXPECT_EQ(r.orders, (Orders{{"w", 0},
                              {"a", 1},
                              {"loss", 2},
                              {"G/beside_a", kNoOrder},
                              {"G/g1", 3},
                              {"G/g2", kNoOrder},
                              {"update", kNoOrder},
                              {"G/g3", 4},
                              {"G/g4", 5}}));
  EXPECT_EQ(r.backward_start, 3);
  EXPECT_EQ(r.level_count, 6);
}

TEST(ScopeOrderTest, WithoutAnOrderedBackwardOpThereIsNoStart) {
  // The only backward op shares its level with a forward op.
  const Result r = OrderOf("w = VariableV2()\na = Relu(w)\nG/g = Relu(w)", {"w"});
  EXPECT_EQ(r.orders, (Orders{{"w", 0}, {"a", 1}, {"G/g", kNoOrder}}));
  EXPECT_EQ(r.backward_start, kNoOrder);
  EXPECT_EQ(r.level_count, 2);
}

TEST(ScopeOrderTest, ALoopsBackEdgeDoesNotCount) {
  // v1 fails here; Spillway's order is that of the graph without the back edge.
  const Result r = OrderOf(R"(
      w = VariableV2()
      enter = Enter(w) {frame_name="f"}
      merge = Merge(enter, next) {N=2}
      cond = LoopCond(merge)
      switch = Switch(merge, cond)
      next = NextIteration(switch:1)
      exit = Exit(switch)
      G/g = Relu(exit)
  )",
                           {"w"});
  EXPECT_EQ(r.orders, (Orders{{"w", 0},
                              {"enter", 1},
                              {"merge", 2},
                              {"cond", 3},
                              {"switch", 4},
                              {"next", 5},
                              {"exit", 5},
                              {"G/g", 6}}));
}

// Backward ops, levels and start as recorded by TFLMS v1 itself, from its seeds.
class RecordedOrderTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedOrderTest, EveryOpHasTheOrderThatV1Gives) {
  const testing::RecordedOrders record = testing::ReadV1Orders(GetParam());
  const std::vector<std::string> scopes = testing::OptimizerScopes(GetParam());
  const TestGraph graph =
      TestGraph::FromBytes(testing::ReadTestGraph(absl::StrCat(GetParam(), "/graph.pb")));
  const Topology topology = testing::ValueOrDie(Topology::Build(*graph, StopToken()), "topology");
  NodeFlags backward(graph->num_nodes(), false);
  std::vector<std::string> backward_names;
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    backward[id] = std::any_of(scopes.begin(), scopes.end(), [&](const std::string& scope) {
      return absl::StartsWith(graph->name(id), scope);
    });
    if (backward[id]) backward_names.emplace_back(graph->name(id));
  }
  std::sort(backward_names.begin(), backward_names.end());
  EXPECT_EQ(backward_names, record.backward);
  std::vector<NodeId> seeds;
  for (const std::string& seed : record.seeds) seeds.push_back(graph.Node(seed));

  const auto order = BuildScopeOrder(*graph, topology, backward, seeds, StopToken());
  ASSERT_THAT(order, testing::IsOk());
  EXPECT_EQ(order->backward_start, record.backward_start);
  EXPECT_EQ(order->level_count, static_cast<int>(record.levels.size()));
  std::vector<int> expected(graph->num_nodes(), kNoOrder);
  int level = 0;
  for (const std::vector<std::string>& ops : record.levels) {
    for (const std::string& op : ops) expected[graph.Node(op)] = level;
    ++level;
  }
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    EXPECT_EQ(order->order[id], expected[id]) << graph->name(id);
  }
}

INSTANTIATE_TEST_SUITE_P(ScopeOrder, RecordedOrderTest,
                         ::testing::ValuesIn(testing::GraphsWithV1Orders()),
                         [](const auto& graph) { return graph.param; });

}  // namespace
}  // namespace spillway::core
