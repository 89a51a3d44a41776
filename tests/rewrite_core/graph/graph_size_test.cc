#include "rewrite_core/graph/graph_size.h"

#include <string>

#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"

namespace spillway::core {
namespace {

TEST(GraphSizeTest, CountsWhatTheParserFinds) {
  for (const char* name : {"mnist_deep/graph.pb", "lstm_while/graph.pb", "cond_v2/graph.pb"}) {
    const std::string bytes = testing::ReadTestGraph(name);
    const Graph graph =
        testing::ValueOrDie(Graph::Parse(bytes, DefaultLimits(), StopToken()), name);
    const GraphSize size = MeasureGraph(bytes, StopToken());
    EXPECT_EQ(size.nodes, graph.num_nodes()) << name;
    EXPECT_EQ(size.inputs, graph.num_inputs()) << name;
  }
}

TEST(GraphSizeTest, OtherBytesHaveNone) {
  EXPECT_EQ(MeasureGraph("", StopToken()).nodes, 0);
  EXPECT_EQ(MeasureGraph("no graph at all", StopToken()).inputs, 0);
}

}  // namespace
}  // namespace spillway::core
