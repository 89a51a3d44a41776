#include "rewrite_core/graph/topology.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::ErrorDetailOf;
using ::testing::HasSubstr;
using testing::IsInvalid;
using testing::IsOk;
using ::testing::Not;
using testing::TestGraph;

absl::StatusOr<Topology> BuildFrom(const TestGraph& graph) {
  return Topology::Build(*graph, StopToken());
}

std::map<std::string, int> LevelsOf(const TestGraph& graph) {
  const Topology topology = testing::ValueOrDie(BuildFrom(graph), "topology");
  std::map<std::string, int> levels;
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    levels[std::string(graph->name(id))] = topology.level(id);
  }
  return levels;
}

using Levels = std::map<std::string, int>;

TEST(TopologyTest, LevelIsTheLongestPathOverDataEdges) {
  EXPECT_EQ(LevelsOf(TestGraph(R"(
      a = Const()
      b = Relu(a)
      c = AddV2(a, b)
      d = Relu(a)
  )")),
            (Levels{{"a", 0}, {"b", 1}, {"c", 2}, {"d", 1}}));
}

TEST(TopologyTest, ControlEdgesCountAsDataEdgesDo) {
  EXPECT_EQ(LevelsOf(TestGraph(R"(
      a = Const()
      b = Relu(a)
      c = Relu(a, ^b)
      d = NoOp(^c)
  )")),
            (Levels{{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}}));
}

TEST(TopologyTest, LevelsDoNotDependOnFileOrder) {
  EXPECT_EQ(LevelsOf(TestGraph("d = NoOp(^c)\nc = Relu(a, ^b)\nb = Relu(a)\na = Const()")),
            (Levels{{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}}));
}

TEST(TopologyTest, AnInputReadTwiceIsWaitedForOnce) {
  EXPECT_EQ(LevelsOf(TestGraph("a = Const()\nb = Mul(a, a, ^a)\nc = Relu(b)")),
            (Levels{{"a", 0}, {"b", 1}, {"c", 2}}));
}

TEST(TopologyTest, OrderHoldsEveryNodeOnceAndProducersFirst) {
  const TestGraph graph(R"(
      e = AddV2(d, b, ^c)
      c = NoOp(^b)
      d = Relu(a)
      b = Relu(a)
      a = Const()
      lone = Const()
  )");
  const auto topology = BuildFrom(graph);
  ASSERT_THAT(topology, IsOk());
  std::vector<int> position(graph->num_nodes(), -1);
  for (size_t i = 0; i < topology->order().size(); ++i) {
    EXPECT_EQ(position[topology->order()[i]], -1);
    position[topology->order()[i]] = static_cast<int>(i);
  }
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    ASSERT_NE(position[id], -1) << graph->name(id);
    for (Tensor input : graph->inputs(id)) EXPECT_LT(position[input.node], position[id]);
  }
}

// A `while` of TensorFlow 1 that counts: the one legal cycle.
constexpr char kLoop[] = R"(
    zero = Const() {dtype=float32}
    enter = Enter(zero) {T=float32, frame_name="while"}
    merge = Merge(enter, next) {T=float32, N=2}
    less = Less(merge, enter) {T=float32}
    cond = LoopCond(less)
    switch = Switch(merge, cond) {T=float32}
    body = Relu(switch:1) {T=float32}
    next = NextIteration(body) {T=float32}
    exit = Exit(switch) {T=float32}
)";

TEST(TopologyTest, TheBackEdgeOfALoopDoesNotCount) {
  EXPECT_EQ(LevelsOf(TestGraph(kLoop)), (Levels{{"zero", 0},
                                                {"enter", 1},
                                                {"merge", 2},
                                                {"less", 3},
                                                {"cond", 4},
                                                {"switch", 5},
                                                {"body", 6},
                                                {"next", 7},
                                                {"exit", 6}}));
}

TEST(TopologyTest, OnlyNextIterationIntoMergeIsABackEdge) {
  const TestGraph graph(kLoop);
  EXPECT_TRUE(IsBackEdge(*graph, graph.Node("next"), graph.Node("merge")));
  EXPECT_FALSE(IsBackEdge(*graph, graph.Node("enter"), graph.Node("merge")));
  EXPECT_FALSE(IsBackEdge(*graph, graph.Node("next"), graph.Node("body")));
}

struct CycleCase {
  std::string name;
  std::string text;
  std::string message;  // In the error.
  std::string not_in_message;
  std::string length;
};

class CycleTest : public ::testing::TestWithParam<CycleCase> {};

TEST_P(CycleTest, IsRefusedAndNamed) {
  const TestGraph graph(GetParam().text);
  const auto topology = BuildFrom(graph);
  EXPECT_THAT(topology, IsInvalid(v1::ERROR_REASON_CYCLE, GetParam().message));
  EXPECT_THAT(std::string(topology.status().message()),
              Not(HasSubstr(absl::StrCat("'", GetParam().not_in_message, "'"))));
  EXPECT_EQ(ErrorDetailOf(topology, "cycle_length"), GetParam().length);
}

INSTANTIATE_TEST_SUITE_P(
    Topology, CycleTest,
    ::testing::Values(
        CycleCase{"SelfLoop", "x = Const()\na = AddV2(x, a)", "'a' -> 'a'", "x", "1"},
        CycleCase{"SelfControl", "x = Const()\na = Relu(x, ^a)", "'a' -> 'a'", "x", "1"},
        CycleCase{"Two", "a = Relu(b)\nb = Relu(a)", "'a'", "x", "2"},
        // Nodes before and behind the cycle are not part of it.
        CycleCase{"BehindIsNotNamed", "behind = Relu(a)\na = Relu(b)\nb = Relu(a)", "'b' -> 'a'",
                  "behind", "2"},
        CycleCase{"BeforeIsNotNamed", "before = Const()\na = AddV2(before, b)\nb = Relu(a)", "'b'",
                  "before", "2"},
        CycleCase{"ThroughControl", "x = Const()\na = NoOp(^c)\nb = Relu(x, ^a)\nc = NoOp(^b)",
                  "'b' -> 'c'", "x", "3"},
        CycleCase{"MergeWithoutNextIteration", "x = Const()\nm = Merge(x, r) {N=2}\nr = Relu(m)",
                  "'m'", "x", "2"},
        CycleCase{"NextIterationWithoutMerge", "x = Const()\na = AddV2(x, n)\nn = NextIteration(a)",
                  "'n'", "x", "2"}),
    testing::CaseName());

TEST(TopologyTest, ACycleIsPrintedInTheDirectionOfItsEdges) {
  // a -> b -> c -> a, wherever the walk starts.
  const TestGraph graph("a = Relu(c)\nb = Relu(a)\nc = Relu(b)");
  const std::string message(BuildFrom(graph).status().message());
  EXPECT_THAT(message, ::testing::AnyOf(HasSubstr("'a' -> 'b' -> 'c' -> 'a'"),
                                        HasSubstr("'b' -> 'c' -> 'a' -> 'b'"),
                                        HasSubstr("'c' -> 'a' -> 'b' -> 'c'")));
}

TEST(TopologyTest, OfALongCycleEightNodesAreNamed) {
  std::string text = "n0 = Relu(n99)\n";
  for (int i = 1; i < 100; ++i) absl::StrAppend(&text, "n", i, " = Relu(n", i - 1, ")\n");
  const TestGraph graph(text);
  const auto topology = BuildFrom(graph);
  EXPECT_THAT(topology, IsInvalid(v1::ERROR_REASON_CYCLE, "... (100 nodes)"));
  EXPECT_EQ(ErrorDetailOf(topology, "cycle_length"), "100");
  EXPECT_LT(topology.status().message().size(), 500u);
}

// Deep enough that a recursive walk would overflow an 8 MiB stack.
TEST(TopologyTest, ALongChainIsOrderedWithoutRecursion) {
  constexpr int kLength = 300'000;
  std::string text;
  for (int i = kLength - 1; i > 0; --i) absl::StrAppend(&text, "n", i, " = Relu(n", i - 1, ")\n");
  absl::StrAppend(&text, "n0 = Const()\n");
  const TestGraph graph(text);
  const auto topology = BuildFrom(graph);
  ASSERT_THAT(topology, IsOk());
  EXPECT_EQ(topology->level(graph.Node("n0")), 0);
  EXPECT_EQ(topology->level(graph.Node(absl::StrCat("n", kLength - 1))), kLength - 1);
}

}  // namespace
}  // namespace spillway::core
