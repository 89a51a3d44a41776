#include "rewrite_core/analysis/flow/active_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestGraph;
using testing::ValueOrDie;

absl::StatusOr<ActiveNodes> Find(const TestGraph& graph, const std::vector<std::string>& targets,
                                 v1::Step step = {}) {
  for (const std::string& target : targets) step.add_targets(target);
  const Topology topology = ValueOrDie(Topology::Build(*graph, {}), "topology");
  const Shapes shapes = ValueOrDie(Shapes::Infer(*graph, topology, step, {}), "shapes");
  return FindActiveNodes(*graph, topology, shapes, step, nullptr, {});
}

std::vector<std::string> Names(const TestGraph& graph, const NodeFlags& flags) {
  std::vector<std::string> names;
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    if (flags[id]) names.emplace_back(graph->name(id));
  }
  return names;
}

constexpr char kSmall[] =
    "a = Abs() {T=float32}\nb = Relu(a) {T=float32}\nc = Relu(a, ^d) {T=float32}\n"
    "d = NoOp()\ne = NoOp(^b)";

TEST(ActiveNodesTest, AreTheAncestorsOverDataAndControlEdges) {
  const TestGraph graph(kSmall);
  const ActiveNodes active = ValueOrDie(Find(graph, {"c:0"}), "active");
  EXPECT_THAT(Names(graph, active.flags), ElementsAre("a", "c", "d"));
  EXPECT_THAT(active.targets, ElementsAre(graph["c"]));
  EXPECT_EQ(active.source, TargetSource::kGiven);
}

TEST(ActiveNodesTest, WithoutTargetsAndUpdatesAllSinks) {
  const TestGraph graph(kSmall);
  const ActiveNodes active = ValueOrDie(Find(graph, {}), "active");
  EXPECT_THAT(active.targets, ElementsAre(graph["c"], graph["e"]));
  EXPECT_EQ(active.source, TargetSource::kSinks);
  EXPECT_EQ(Names(graph, active.flags).size(), 5);
}

TEST(ActiveNodesTest, WithoutTargetsTheWeightUpdates) {
  const TestGraph graph(
      "v = VariableV2() {dtype=float32, shape=(3)}\nread = Identity(v) {T=float32}\n"
      "x = Abs() {T=float32}\nlr = Const() {dtype=float32}\n"
      "y = Mul(read, x) {T=float32}\nr = Relu(y) {T=float32}\n"
      "g = ReluGrad(r, y) {T=float32}\ngv = Mul(g, x) {T=float32}\n"
      "up = ApplyGradientDescent(v, lr, gv) {T=float32}\n"
      "init = Assign(v, lr) {T=float32}\nsummary = ScalarSummary(r) {T=float32}");
  const ActiveNodes active = ValueOrDie(Find(graph, {}), "active");
  EXPECT_THAT(active.targets, ElementsAre(graph["up"]));
  EXPECT_EQ(active.source, TargetSource::kUpdates);
  EXPECT_FALSE(active.flags[graph["init"]]);
  EXPECT_FALSE(active.flags[graph["summary"]]);
  EXPECT_TRUE(active.flags[graph["y"]]);
}

TEST(ActiveNodesTest, WhatOnlyFedNodesNeedDoesNotRun) {
  const TestGraph graph(
      "read = Abs() {T=float32}\n"
      "x = PlaceholderWithDefault(read) {dtype=float32, shape=(2)}\n"
      "y = Relu(x) {T=float32}");
  v1::Step step;
  v1::Feed* feed = step.add_feeds();
  feed->set_name("x");
  feed->add_dims(2);
  EXPECT_THAT(Names(graph, ValueOrDie(Find(graph, {"y"}, step), "active").flags),
              ElementsAre("x", "y"));
  EXPECT_EQ(Names(graph, ValueOrDie(Find(graph, {"y"}), "active").flags).size(), 3);
}

TEST(ActiveNodesTest, RefusesWhatTheGraphDoesNotHave) {
  const TestGraph graph(kSmall);
  constexpr auto kNothing = v1::ERROR_REASON_NAME_MATCHES_NOTHING;
  constexpr auto kBad = v1::ERROR_REASON_BAD_OPTION;
  for (const auto& [target, reason] :
       std::vector<std::pair<std::string, v1::ErrorReason>>{{"nobody", kNothing},
                                                            {"a:1", kNothing},
                                                            {"a:x", kBad},
                                                            {"a:-1", kBad},
                                                            {"", kNothing}}) {
    const absl::Status status = Find(graph, {target}).status();
    EXPECT_EQ(GetErrorReason(status), reason) << target;
    EXPECT_THAT(std::string(status.message()), HasSubstr("target '" + target + "'"));
  }
}

}  // namespace
}  // namespace spillway::core
