#include "rewrite_core/analysis/active_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestGraph;
using testing::ValueOrDie;

absl::StatusOr<ActiveNodes> Find(const TestGraph& graph, const std::vector<std::string>& targets,
                                 const v1::RewriteOptions& options = {}) {
  const Topology topology = ValueOrDie(Topology::Build(*graph, {}), "topology");
  const Shapes shapes = ValueOrDie(Shapes::Infer(*graph, topology, options, {}), "shapes");
  return FindActiveNodes(*graph, topology, shapes, targets, nullptr, {});
}

std::vector<std::string> Names(const TestGraph& graph, const NodeFlags& flags) {
  std::vector<std::string> names;
  for (NodeId id = 0; id < graph->num_nodes(); ++id) {
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
  v1::RewriteOptions options;
  v1::FeedShape* feed = options.add_feeds();
  feed->set_name("x");
  feed->add_dims(2);
  EXPECT_THAT(Names(graph, ValueOrDie(Find(graph, {"y"}, options), "active").flags),
              ElementsAre("x", "y"));
  EXPECT_EQ(Names(graph, ValueOrDie(Find(graph, {"y"}), "active").flags).size(), 3);
}

TEST(ActiveNodesTest, RefusesWhatTheGraphDoesNotHave) {
  const TestGraph graph(kSmall);
  for (const char* target : {"nobody", "a:1", "a:x", "a:-1", ""}) {
    const absl::Status status = Find(graph, {target}).status();
    EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION) << target;
    EXPECT_THAT(std::string(status.message()), HasSubstr("target '" + std::string(target) + "'"));
  }
}

}  // namespace
}  // namespace spillway::core
