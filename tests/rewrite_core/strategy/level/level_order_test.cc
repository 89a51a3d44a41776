#include "rewrite_core/strategy/level/level_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random_graph.h"

namespace spillway::core {
namespace {

using testing::TestFacts;
using testing::TestGraph;

using Levels = std::map<std::string, int>;  // Of the ops that have a level.

LevelOrder OrderOf(const TestFacts& f, const std::vector<ControlEdge>& added = {}) {
  return testing::ValueOrDie(
      LevelOrder::Build(*f.graph, f.facts.topology(), f.facts.control_flow(), added, StopToken()),
      "levels");
}

Levels LevelsOf(const TestFacts& f, const std::vector<ControlEdge>& added = {}) {
  const LevelOrder order = OrderOf(f, added);
  Levels levels;
  int32_t count = 0;
  for (NodeId id(0); id < f.graph->num_nodes(); ++id) {
    count = std::max(count, order.level(id) + 1);
    if (order.level(id) != kNoLevel) levels[std::string(f.graph->name(id))] = order.level(id);
  }
  EXPECT_EQ(order.num_levels(), count);
  return levels;
}

Levels LevelsOf(const std::string& text) { return LevelsOf(TestFacts(text)); }

TEST(LevelOrderTest, ALevelIsTheLongestPathOverDataAndControlEdges) {
  EXPECT_EQ(LevelsOf(R"(
      d = AddV2(a, c)
      a = Placeholder()
      b = Relu(a)
      c = Relu(b)
      e = Relu(a, ^d)
      alone = NoOp()
  )"),
            (Levels{{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}, {"e", 4}, {"alone", 0}}));
}

TEST(LevelOrderTest, AddedEdgesPushDownWhatFollows) {
  const TestFacts f(R"(
      a = Placeholder()
      b = Relu(a)
      b2 = Relu(b)
      c = Relu(a)
      c2 = Relu(c)
  )");
  EXPECT_EQ(LevelsOf(f), (Levels{{"a", 0}, {"b", 1}, {"b2", 2}, {"c", 1}, {"c2", 2}}));
  // b2 -> c; a duplicate edge makes no difference.
  const ControlEdge edge{f.graph["b2"], f.graph["c"]};
  const Levels pushed = {{"a", 0}, {"b", 1}, {"b2", 2}, {"c", 3}, {"c2", 4}};
  EXPECT_EQ(LevelsOf(f, {edge}), pushed);
  EXPECT_EQ(LevelsOf(f, {edge, edge}), pushed);
}

// v2: Enter, Merge, Switch and Exit of a loop take part, and the nodes behind it follow.
constexpr char kOrderLoop[] = R"(
    x = Placeholder() {dtype=float32}
    limit = Const() {dtype=float32}
    while/enter = Enter(x) {T=float32, frame_name="f"}
    while/merge = Merge(while/enter, while/next) {T=float32}
    while/bound = Enter(limit) {T=float32, frame_name="f", is_constant=true}
    while/less = Less(while/merge, while/bound) {T=float32}
    while/cond = LoopCond(while/less)
    while/switch = Switch(while/merge, while/cond) {T=float32}
    while/body = Relu(while/switch:1) {T=float32}
    while/next = NextIteration(while/body) {T=float32}
    while/exit = Exit(while/switch) {T=float32}
    out = Relu(while/exit) {T=float32}
    far = Relu(out) {T=float32}
)";

TEST(LevelOrderTest, OfALoopWhatLeadsInAndOutTakesPart) {
  EXPECT_EQ(LevelsOf(kOrderLoop), (Levels{{"x", 0},
                                          {"limit", 0},
                                          {"while/enter", 1},
                                          {"while/bound", 1},
                                          {"while/merge", 2},
                                          {"while/switch", 3},
                                          {"while/exit", 4},
                                          {"out", 5},
                                          {"far", 6}}));
}

TEST(LevelOrderTest, ALoopOfAnotherNameIsToldByItsFrame) {
  Levels expected;
  for (const auto& [name, level] : LevelsOf(kOrderLoop)) {
    expected[absl::StrReplaceAll(name, {{"while/", "repeat/"}})] = level;
  }
  EXPECT_EQ(LevelsOf(absl::StrReplaceAll(kOrderLoop, {{"while/", "repeat/"}})), expected);
}

// v2 decides by names: a node with an unrelated name in a loop named this way takes part.
TEST(LevelOrderTest, NamesTellWhatIsInsideOfALoopThatIsNamed) {
  const Levels levels = LevelsOf(std::string(kOrderLoop) + R"(
    guest = Tanh(while/switch:1) {T=float32}
    guest2 = Tanh(while/body) {T=float32}
  )");
  EXPECT_EQ(levels.at("guest"), 4);
  EXPECT_EQ(levels.count("guest2"), 0u);  // It depends on the body.
}

TEST(LevelOrderTest, WhatIsBehindAnOpWithoutALevelHasNone) {
  EXPECT_EQ(LevelsOf(R"(
      a = Placeholder()
      while/body = Relu(a)
      b = Relu(while/body)
      c = AddV2(a, b)
      d = Relu(a, ^c)
      e = Relu(a)
  )"),
            (Levels{{"a", 0}, {"e", 1}}));
}

// The same rules on random graphs, by iterating until nothing changes.
TEST(LevelOrderTest, AgreesWithTheRulesOnRandomGraphs) {
  int unleveled = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    testing::RandomGraphOptions options;
    options.conds = seed % 2 == 0;
    options.loops = seed % 3 != 0;
    std::string bytes = testing::WriteProto(testing::MakeRandomGraph(seed, options));
    const TestFacts f(TestGraph::FromBytes(std::move(bytes)));
    const Graph& graph = *f.graph;
    // The loops are named `while`, which is recognized, or `while_7`, which only its frames reveal;
    // nodes named after them in the backward part are not recognized.
    const auto inside = [&](NodeId id) {
      const absl::string_view name = graph.name(id);
      return absl::StrContains(name, "while/") ||
             (absl::StrContains(name, "while_") && !absl::StartsWith(name, "gradients"));
    };
    std::vector<ControlEdge> added;  // Up in the topological order, so they close no cycle.
    testing::Random random(seed);
    for (int i = 0; i < static_cast<int>(seed % 5) && graph.num_nodes() > 1; ++i) {
      const NodeId a(random.Below(graph.num_nodes())), b(random.Below(graph.num_nodes()));
      if (inside(a) || inside(b)) continue;
      if (f.facts.topology().level(a) < f.facts.topology().level(b)) added.push_back({a, b});
    }
    std::vector<int32_t> expected(graph.num_nodes(), kNoLevel);
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeId id(0); id < graph.num_nodes(); ++id) {
        const absl::string_view op = graph.op(id);
        if (inside(id) && op != "Enter" && op != "Merge" && op != "Switch" && op != "Exit")
          continue;
        int32_t level = 0;
        const auto wait = [&](NodeId from) {
          const int32_t of = expected[from];
          level = level == kNoLevel || of == kNoLevel ? kNoLevel : std::max(level, of + 1);
        };
        for (Tensor input : graph.inputs(id)) {
          const absl::string_view from = graph.op(input.node);
          if (inside(id) && op == "Merge" && from == "NextIteration") continue;
          if (inside(id) && op == "Switch" && from == "LoopCond") continue;
          wait(input.node);
        }
        for (const ControlEdge& edge : added) {
          if (edge.to == id) wait(edge.from);
        }
        changed = changed || level != expected[id];
        expected[id] = level;
      }
    }
    const LevelOrder order = OrderOf(f, added);
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      ASSERT_EQ(order.level(id), expected[id]) << "seed " << seed << ": " << graph.name(id);
      unleveled += expected[id] == kNoLevel;
    }
  }
  EXPECT_GT(unleveled, 1'000);
}

}  // namespace
}  // namespace spillway::core
