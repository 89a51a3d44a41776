// The levels and the inactive ops of whole training graphs, as TFLMS v2 itself recorded them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/strategy/level/inactive_ops.h"
#include "rewrite_core/strategy/level/level_order.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/recorded_v2.h"

namespace spillway::core {
namespace {

using testing::TestGraph;

class RecordedLevelsTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Whether it reads the side of a Switch that Keras uses for inference, or only inactive ops.
  bool IsInferenceOfKeras(NodeId id, const NodeFlags& inactive) const {
    bool any = false, all = true;
    for (Tensor input : graph_->inputs(id)) {
      const auto switched = graph_->inputs(input.node);
      if (graph_->op(input.node) == "Switch" && input.port == 0 &&
          graph_->name(switched[1].node) == "keras_learning_phase") {
        return true;
      }
      if (graph_->op(input.node) == "Const") continue;
      any = any || inactive[input.node];
      all = all && inactive[input.node];
    }
    return any && all;
  }

  const TestGraph graph_ =
      TestGraph::FromBytes(testing::ReadTestGraph(absl::StrCat(GetParam(), "/graph.pb")));
  const Topology topology_ = testing::ValueOrDie(Topology::Build(*graph_, StopToken()), "topology");
  const ControlFlowAnalysis control_flow_ = testing::ValueOrDie(
      ControlFlowAnalysis::Build(*graph_, topology_, StopToken()), "control flow");
  const testing::RecordedLevelsV2 record_ = testing::ReadV2Levels(GetParam());
};

TEST_P(RecordedLevelsTest, EveryOpHasTheLevelThatV2Gives) {
  const auto order = LevelOrder::Build(*graph_, topology_, control_flow_, {}, StopToken());
  ASSERT_THAT(order, testing::IsOk());
  EXPECT_EQ(order->num_levels(), static_cast<int32_t>(record_.levels.size()));
  std::vector<int32_t> expected(graph_->num_nodes(), kNoLevel);
  int32_t level = 0;
  for (const std::vector<std::string>& ops : record_.levels) {
    for (const std::string& op : ops) expected[graph_.Node(op)] = level;
    ++level;
  }
  for (NodeId id(0); id < graph_->num_nodes(); ++id) {
    EXPECT_EQ(order->level(id), expected[id]) << graph_->name(id);
  }
}

// The records are of imported graphs, to which v2's rule for graphs built by Keras in its session
// does not apply. Further inactive ops must therefore follow from that rule.
TEST_P(RecordedLevelsTest, TheOpsThatV2LeavesAloneAreInactive) {
  const auto inactive = FindInactiveOps(*graph_, control_flow_, Phase::kTraining, StopToken());
  ASSERT_THAT(inactive, testing::IsOk());
  NodeFlags expected(graph_->num_nodes(), false);
  for (const std::string& op : record_.inactive) expected[graph_.Node(op)] = true;
  for (NodeId id(0); id < graph_->num_nodes(); ++id) {
    if ((*inactive)[id] == expected[id]) continue;
    ASSERT_EQ(GetParam(), "resnet50_keras") << graph_->name(id);
    EXPECT_TRUE((*inactive)[id] && IsInferenceOfKeras(id, *inactive)) << graph_->name(id);
  }
}

INSTANTIATE_TEST_SUITE_P(LevelOrder, RecordedLevelsTest,
                         ::testing::ValuesIn(testing::GraphsWithV2Records()),
                         [](const auto& graph) { return graph.param; });

}  // namespace
}  // namespace spillway::core
