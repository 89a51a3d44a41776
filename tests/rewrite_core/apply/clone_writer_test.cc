#include "rewrite_core/plan/clone_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/node_writer.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::TestGraph;
using testing::ValueOrDie;

std::string NodeText(const Graph& graph, absl::string_view name) {
  const NodeSpec node = ReadNode(graph.node_bytes(graph.Find(name)));
  std::string text = absl::StrCat(node.op, "(");
  for (const std::string& input : node.inputs) absl::StrAppend(&text, input, " ");
  absl::StrAppend(&text, ")", node.device, " {");
  for (const auto& attr : node.attrs) absl::StrAppend(&text, attr.first, " ");
  return text + "}";
}

// A split is recomputed for y, and of it a Relu; an update waits for the split.
TEST(CloneWriterTest, WritesClones) {
  const TestGraph graph(R"(
    axis = Const() {dtype=int32}
    x = Placeholder() {dtype=float32}
    net/s = Split(axis, x, ^axis) @/gpu:0 {T=float32, num_split=2, _z=1, _spillway_undo=["^axis"]}
    net/r = Relu(net/s:1) {T=float32}
    lms/recompute_net_r = NoOp()
    y = AddV2(net/r, net/s:1) {T=float32}
    z = AddV2(y, net/s) {T=float32}
    u = Neg(y) {T=float32}
)");
  ClonePlan plan;
  PlannedClone split;
  split.original = graph["net/s"];
  split.trigger = graph["net/r"];
  split.consumers = {{graph["y"], 1}, {graph["z"], 1}};
  split.updates = {graph["u"]};
  plan.clones.push_back(split);
  PlannedClone relu;
  relu.original = graph["net/r"];
  relu.inputs = {{0, CloneIndex(0)}};
  relu.consumers = {{graph["y"], 0}};
  plan.clones.push_back(relu);
  GraphEdit edit(*graph);
  EXPECT_THAT(ValueOrDie(WriteClones(*graph, plan, {}, &edit), "names"),
              ElementsAre("lms/recompute_net_s", "lms/recompute_net_r_1"));
  const TestGraph after = TestGraph::FromBytes(ValueOrDie(edit.Apply({}), "apply"));
  EXPECT_EQ(NodeText(*after, "lms/recompute_net_s"),
            "Split(axis x ^axis ^net/r )/gpu:0 {T _spillway_undo _z num_split }");
  EXPECT_EQ(NodeText(*after, "lms/recompute_net_r_1"),
            "Relu(lms/recompute_net_s:1 ) {T _spillway_undo }");
  EXPECT_EQ(NodeText(*after, "y"),
            "AddV2(lms/recompute_net_r_1 lms/recompute_net_s:1 ) {T _spillway_undo }");
  EXPECT_EQ(NodeText(*after, "z"), "AddV2(y lms/recompute_net_s ) {T _spillway_undo }");
  EXPECT_EQ(NodeText(*after, "u"), "Neg(y ^lms/recompute_net_s ) {T _spillway_undo }");
  EXPECT_EQ(NodeText(*after, "net/s"), NodeText(*graph, "net/s"));
}

// Of an attribute that is given twice, TensorFlow reads the last, wherever it stands.
TEST(CloneWriterTest, AttributesGivenTwice) {
  std::string node_def;
  for (const char* value : {"zz", "aa"}) AppendAttrField("twice", value, &node_def);
  AppendAttrField("once", "x", &node_def);
  EXPECT_THAT(ReadCleanNode(node_def).attrs,
              ElementsAre(std::make_pair("once", "x"), std::make_pair("twice", "aa")));
}

}  // namespace
}  // namespace spillway::core
