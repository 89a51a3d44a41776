#include "rewrite_core/analysis/flow/reachability.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGraph;

class ReachabilityTest : public ::testing::Test {
 protected:
  std::vector<NodeId> Ids(const std::vector<std::string>& names) const {
    std::vector<NodeId> ids;
    for (const std::string& name : names) ids.push_back(graph_.Node(name));
    return ids;
  }
  NodeFlags Flags(const std::vector<std::string>& names) const {
    NodeFlags flags(graph_->num_nodes(), false);
    for (NodeId id : Ids(names)) flags[id] = true;
    return flags;
  }
  std::vector<std::string> Names(const absl::StatusOr<NodeFlags>& flags) const {
    std::vector<std::string> names;
    for (NodeId id(0); id < graph_->num_nodes(); ++id) {
      if ((*flags)[id]) names.emplace_back(graph_->name(id));
    }
    return names;
  }
  std::vector<std::string> From(const std::vector<std::string>& from,
                                const std::vector<std::string>& barred = {}) const {
    const NodeFlags flags = Flags(barred);
    return Names(ReachedFrom(*graph_, Ids(from), barred.empty() ? nullptr : &flags, StopToken()));
  }
  std::vector<std::string> To(const std::vector<std::string>& to) const {
    return Names(LeadingTo(*graph_, Flags(to), StopToken()));
  }

  // a -> b -> c -> d over data, b => x over a control edge, y alone.
  const TestGraph graph_ = TestGraph(R"(
      a = Const()
      b = Relu(a)
      c = Relu(b)
      d = AddV2(c, a)
      x = NoOp(^b)
      y = Const()
  )");
};

TEST_F(ReachabilityTest, WalksForwardOverDataEdgesAlone) {
  EXPECT_THAT(From({"b"}), ElementsAre("b", "c", "d"));
  EXPECT_THAT(From({"a"}), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(From({"y"}), ElementsAre("y"));
  EXPECT_THAT(From({"c", "y", "c"}), ElementsAre("c", "d", "y"));
  EXPECT_THAT(From({}), IsEmpty());
}

TEST_F(ReachabilityTest, DoesNotEnterBarredNodes) {
  EXPECT_THAT(From({"b"}, {"c"}), ElementsAre("b"));
  EXPECT_THAT(From({"a"}, {"c"}), ElementsAre("a", "b", "d"));
  EXPECT_THAT(From({"a"}, {"a"}), IsEmpty());
}

TEST_F(ReachabilityTest, WalksBackwardOverDataEdgesAlone) {
  EXPECT_THAT(To({"c"}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(To({"d"}), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(To({"x"}), ElementsAre("x"));
  EXPECT_THAT(To({"b", "y"}), ElementsAre("a", "b", "y"));
  EXPECT_THAT(To({}), IsEmpty());
}

TEST_F(ReachabilityTest, MarksAreEmptiedByClear) {
  VisitMarks marks(3);
  EXPECT_TRUE(marks.Insert(NodeId(1)));
  EXPECT_FALSE(marks.Insert(NodeId(1)));
  EXPECT_TRUE(marks.Insert(NodeId(2)));
  marks.Clear();
  EXPECT_TRUE(marks.Insert(NodeId(1)));
  EXPECT_FALSE(marks.Insert(NodeId(1)));
}

TEST_F(ReachabilityTest, WhatLeadsToMoreIsWhatLeadsToAll) {
  const std::vector<std::string> all = {"a", "b", "c", "d", "x", "y"};
  for (const std::string& one : all) {
    for (const std::string& other : all) {
      auto leading = LeadingTo(*graph_, Flags({one}), StopToken());
      ASSERT_TRUE(AddLeadingTo(*graph_, Ids({other}), StopToken(), &*leading).ok());
      EXPECT_EQ(Names(leading), To({one, other})) << one << " and " << other;
    }
  }
}

}  // namespace
}  // namespace spillway::core
