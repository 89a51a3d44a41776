// The text form: round trips, and the errors for invalid text.
#include "tests/testing/text_form.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::testing {
namespace {

using ::spillway::testing::GraphBytes;
using ::spillway::testing::IsInvalid;
using ::spillway::testing::ReadProto;
using ::spillway::testing::TestGraph;
using ::testing::HasSubstr;

TEST(TextTest, EveryPartOfANodeIsRead) {
  const testing::GraphDef proto =
      ReadProto(GraphBytes("c = Conv2D(x, w/read:0, ^init) @/gpu:0 {T=float32, strides=[1,2]}"));
  ASSERT_EQ(proto.node_size(), 1);
  const testing::NodeDef& node = proto.node(0);
  EXPECT_EQ(node.name(), "c");
  EXPECT_EQ(node.op(), "Conv2D");
  EXPECT_THAT(node.input(), ::testing::ElementsAre("x", "w/read:0", "^init"));
  EXPECT_EQ(node.device(), "/gpu:0");
  EXPECT_EQ(node.attr().at("T").type(), 1);
  EXPECT_THAT(node.attr().at("strides").list().i(), ::testing::ElementsAre(1, 2));
}

TEST(TextTest, WhatIsLeftOutIsNotThere) {
  const testing::NodeDef node = ReadProto(GraphBytes("n = NoOp()")).node(0);
  EXPECT_EQ(node.input_size(), 0);
  EXPECT_EQ(node.device(), "");
  EXPECT_TRUE(node.attr().empty());
}

TEST(TextTest, SpaceCommentsAndEmptyLinesDoNotCount) {
  EXPECT_EQ(GraphBytes("\n# a comment\n   a  =  NoOp( ^b ,^b )  @ /gpu:0  { T = float32 }  \r\n\n"),
            GraphBytes("a = NoOp(^b, ^b) @/gpu:0 {T=float32}"));
  EXPECT_EQ(GraphBytes("# only a comment"), "");
}

TEST(TextTest, OtherFieldsOfTheGraphKeepTheirPlace) {
  const std::string bytes = GraphBytes("a = NoOp()\n! 0x22020801\nb = NoOp()");
  EXPECT_EQ(bytes, GraphBytes("a = NoOp()") + testing::RawField(4, testing::RawNumber(1, 1)) +
                       GraphBytes("b = NoOp()"));
  EXPECT_EQ(ReadProto(bytes).versions().producer(), 1);
  EXPECT_EQ(PrintGraph(*TestGraph::FromBytes(bytes)), "a = NoOp()\n! 0x22020801\nb = NoOp()\n");
}

TEST(TextTest, PrintsAttributesInOrderOfTheirNames) {
  const TestGraph g("a = Const() {dtype=float32, _z=1, B=true}\nb = Neg(a:0, ^a) @/cpu:0");
  EXPECT_EQ(PrintNode(*g, core::NodeId(0)), "a = Const() {B=true, _z=1, dtype=float32}");
  EXPECT_EQ(PrintNode(*g, core::NodeId(1)), "b = Neg(a:0, ^a) @/cpu:0");
}

struct BadText {
  const char* text;
  int line, column;
  const char* expected;
};

// The column is that of the first invalid character, from 1, in the line as given.
constexpr BadText kBadTexts[] = {
    {"a", 1, 2, "'='"},
    {"a = NoOp", 1, 9, "'('"},
    {"a = NoOp(", 1, 10, "')'"},
    {"a = NoOp(x", 1, 11, "')'"},
    {"a = NoOp() x", 1, 12, "the end of the line"},
    {"a = NoOp() {T}", 1, 15, "'='"},
    {"a = NoOp() {T=}", 1, 15, "an attribute value"},
    {"a = NoOp() {T=flaot32}", 1, 15, "an attribute value"},
    {"a = NoOp() {T=[1,true]}", 1, 18, "an attribute value"},
    {"a = NoOp() {T=[1 2]}", 1, 18, "an attribute value"},
    {"a = NoOp() {T=\"x}", 1, 15, "an attribute value"},
    {"a = NoOp() {T=(1,2}", 1, 15, "an attribute value"},
    {"a = NoOp() {T=(1,x)}", 1, 15, "an attribute value"},
    {"a = NoOp() {T=1 U=2}", 1, 17, "','"},
    {"a = NoOp() {T=1", 1, 16, "'}'"},
    {"a = NoOp()\n\n# c\nb NoOp()", 4, 9, "'='"},
    {"! 0x123", 1, 3, "even number"},
    {"! 123", 1, 3, "0x"},
    {"! 0x12 x", 1, 8, "the end of the line"},
    {"   a = NoOp() x", 1, 15, "the end of the line"},
};

TEST(TextTest, ErrorsNameLineAndColumn) {
  for (const BadText& c : kBadTexts) {
    SCOPED_TRACE(c.text);
    const auto bytes = ParseGraphText(c.text);
    EXPECT_THAT(bytes, IsInvalid(v1::ERROR_REASON_MALFORMED_GRAPH,
                                 absl::StrCat("line ", c.line, ", column ", c.column, ": ")));
    EXPECT_THAT(std::string(bytes.status().message()), HasSubstr(c.expected));
  }
}

// The message without the fields of nodes that the form leaves out (debug info, full types).
testing::GraphDef FiveFields(const std::string& bytes) {
  testing::GraphDef graph = ReadProto(bytes);
  for (testing::NodeDef& node : *graph.mutable_node()) {
    node.clear_experimental_debug_info();
    node.GetReflection()->MutableUnknownFields(&node)->Clear();
  }
  return graph;
}

// Print, parse, print: the second text is the first, and the message is the original.
void ExpectRoundTrip(const std::string& bytes) {
  const auto graph = testing::ParseGraph(bytes);
  ASSERT_THAT(graph, testing::IsOk());
  const std::string text = PrintGraph(*graph);
  const auto again = ParseGraphText(text);
  ASSERT_THAT(again, testing::IsOk());
  EXPECT_EQ(testing::Difference(FiveFields(bytes), FiveFields(*again)), "");
  const auto second = testing::ParseGraph(*again);
  ASSERT_THAT(second, testing::IsOk());
  EXPECT_EQ(PrintGraph(*second), text);
}

class TextOfRealGraphs : public ::testing::TestWithParam<const char*> {};

TEST_P(TextOfRealGraphs, ReadsBackAsTheSameMessage) {
  ExpectRoundTrip(testing::ReadTestGraph(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, TextOfRealGraphs,
                         ::testing::Values("mnist_deep/graph.pb", "mnist_deep/graph_shapes.pb",
                                           "cond_v1/graph.pb", "cond_v1/graph_shapes.pb",
                                           "resnet50_tf1_b4/graph.pb",
                                           "resnet50_tf1_b4/graph_shapes.pb",
                                           "resnet50_tf1/graph_shapes.pb",
                                           "bert_base/graph_shapes.pb"));

TEST(TextTest, RandomGraphsReadBackAsTheSameMessage) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    testing::RandomGraphOptions options;
    options.conds = seed % 2 == 0;
    options.loops = seed % 3 == 0;
    SCOPED_TRACE(seed);
    ExpectRoundTrip(testing::WriteProto(testing::MakeRandomGraph(seed, options)));
  }
}

}  // namespace
}  // namespace spillway::testing
