// Graph::Parse reads good graphs correctly and refuses bad ones cleanly.
#include "rewrite_core/graph/graph.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::core {
namespace {

using ::spillway::testing::ErrorDetailOf;
using ::spillway::testing::FailsWith;
using ::spillway::testing::GraphBytes;
using ::spillway::testing::IsInvalid;
using ::spillway::testing::IsOk;
using ::spillway::testing::ParseGraph;
using ::spillway::testing::RawField;
using ::spillway::testing::RawGroup;
using ::spillway::testing::RawNumber;
using ::spillway::testing::RawVarint;
using ::spillway::testing::TestGraph;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A node as raw fields, and a graph of such nodes.
std::string Name(const std::string& name) { return RawField(1, name); }
std::string Op(const std::string& op) { return RawField(2, op); }
std::string Input(const std::string& input) { return RawField(3, input); }
std::string Device(const std::string& device) { return RawField(4, device); }
std::string Attr(const std::string& key, const std::string& value) {
  return RawField(5, RawField(1, key) + RawField(2, value));
}
std::string Node(const std::string& fields) { return RawField(1, fields); }

// Node `b`, which reads `input` of node `p`.
std::string ReadsFrom(const std::string& producer, const std::string& input) {
  return Node(Name("p") + producer) + Node(Name("b") + Op("Neg") + Input(input));
}
std::string TwoShapes() { return RawField(1, RawField(7, "") + RawField(7, "")); }

using Edge = std::tuple<std::string, int, int>;  // Consumer, position, port.

std::vector<Edge> ReadersOf(const TestGraph& g, absl::string_view name) {
  std::vector<Edge> edges;
  const Graph::Readers readers = g->readers(g[name]);
  for (uint32_t i = 0; i < readers.size(); ++i) {
    edges.emplace_back(std::string(g->name(readers[i].node)), readers[i].index, readers[i].port);
  }
  return edges;
}

constexpr char kSmallGraph[] = R"(
late = AddN(split:1, split, x, ^init) @/gpu:0 {T=float32, N=3}
split = Split(axis, x:0) @/gpu:1 {T=float32, num_split=2}
axis = Const() {dtype=int32}
x = Placeholder() @/gpu:0 {dtype=float32}
init = NoOp(^x, ^x)
! 0x220308da05
)";

// ---- Good graphs ----

TEST(GraphTest, NodesAreInFileOrder) {
  const TestGraph g(kSmallGraph);
  ASSERT_EQ(g->num_nodes(), 5);
  EXPECT_EQ(g->num_inputs(), 8);  // 4 + 2 + 0 + 0 + 2.
  const char* const kNames[] = {"late", "split", "axis", "x", "init"};
  for (NodeId id(0); id < 5; ++id) {
    EXPECT_EQ(g->name(id), kNames[id]);
    EXPECT_EQ(g->Find(kNames[id]), id);
  }
  EXPECT_EQ(g->Find("nobody"), kNoNode);
  EXPECT_EQ(g->Find(""), kNoNode);
  EXPECT_EQ(g->Find("lat"), kNoNode);
}

TEST(GraphTest, LongNamesOfOpsAndDevicesAreRefused) {
  const std::string most(4096, 'd');
  EXPECT_THAT(ParseGraph(Node(Name("x") + Op(most) + Device(most))), IsOk());
  for (const std::string& node : {Op(most + "d"), Op("NoOp") + Device(most + "d")}) {
    EXPECT_THAT(
        ParseGraph(Node(Name("x") + node)),
        IsInvalid(v1::ERROR_REASON_BAD_ATTRIBUTE, "of 4097 bytes, more than the 4096 allowed"));
  }
}

TEST(GraphTest, OpsAndDevicesAreDenseInOrderOfTheirFirstNode) {
  const TestGraph g(kSmallGraph);
  EXPECT_EQ(g->num_ops(), 5);
  EXPECT_EQ(g->op(g["split"]), "Split");
  EXPECT_EQ(g->op_id(g["late"]), 0);
  EXPECT_EQ(g->op_id(g["init"]), 4);
  EXPECT_EQ(g->op_name(1), "Split");
  EXPECT_EQ(g->num_devices(), 3);  // /gpu:0, /gpu:1 and none.
  EXPECT_EQ(g->device_name(g->device_id(g["x"])), "/gpu:0");
  EXPECT_EQ(g->device_id(g["x"]), g->device_id(g["late"]));
  EXPECT_EQ(g->device(g["axis"]), "");
  EXPECT_EQ(g->device_id(g["axis"]), 2);
}

TEST(GraphTest, InputsResolveForwardsAndBackwardsInTheFile) {
  const TestGraph g(kSmallGraph);
  const auto inputs = g->inputs(g["late"]);
  ASSERT_EQ(inputs.size(), 4);
  EXPECT_EQ(inputs[0], (Tensor{g["split"], 1}));
  EXPECT_EQ(inputs[1], (Tensor{g["split"], 0}));
  EXPECT_EQ(inputs[2], (Tensor{g["x"], 0}));
  EXPECT_EQ(inputs[3], (Tensor{g["init"], kControl}));
  EXPECT_TRUE(inputs[3].is_control());
  EXPECT_FALSE(inputs[2].is_control());
}

TEST(GraphTest, SpellingsAreThoseOfTheFile) {
  const TestGraph g(kSmallGraph);
  EXPECT_THAT(g->input_spellings(g["late"]), ElementsAre("split:1", "split", "x", "^init"));
  EXPECT_THAT(g->input_spellings(g["split"]), ElementsAre("axis", "x:0"));
  EXPECT_THAT(g->input_spellings(g["axis"]), IsEmpty());
  EXPECT_EQ(TensorName(*g, {g["split"], 1}), "split:1");
}

TEST(GraphTest, ReadersAreInOrderOfPortConsumerAndPosition) {
  const TestGraph g(kSmallGraph);
  EXPECT_THAT(ReadersOf(g, "split"), ElementsAre(Edge{"late", 1, 0}, Edge{"late", 0, 1}));
  EXPECT_THAT(ReadersOf(g, "x"), ElementsAre(Edge{"init", 0, kControl}, Edge{"init", 1, kControl},
                                             Edge{"late", 2, 0}, Edge{"split", 1, 0}));
  EXPECT_THAT(ReadersOf(g, "late"), IsEmpty());
}

TEST(GraphTest, NodeBytesAreTheFilesOwn) {
  const TestGraph g(kSmallGraph);
  EXPECT_EQ(g->bytes(), g.bytes());
  std::string all;
  for (NodeId id(0); id < g->num_nodes(); ++id) {
    testing::NodeDef proto;
    ASSERT_TRUE(proto.ParseFromString(std::string(g->node_bytes(id))));
    EXPECT_EQ(proto.name(), g->name(id));
    absl::StrAppend(&all, g->node_field(id));
  }
  EXPECT_EQ(g->nodes_end(), all.size());
  // The last line of the text is the field `versions` (4) with producer 730.
  EXPECT_EQ(absl::StrCat(all, RawField(4, RawNumber(1, 730))), g.bytes());
}

TEST(GraphTest, AttributesAreFoundByName) {
  const TestGraph g(kSmallGraph);
  EXPECT_EQ(g->attr(g["late"], "N"), RawNumber(3, 3));
  EXPECT_EQ(g->attr(g["late"], "T"), RawNumber(6, 1));
  EXPECT_FALSE(g->attr(g["late"], "num_split"));
  EXPECT_FALSE(g->attr(g["init"], "T"));
}

TEST(GraphTest, OfAnAttributeGivenTwiceTheLastCounts) {
  const std::string bytes =
      Node(Name("a") + Attr("k", RawNumber(3, 1)) + Op("NoOp") + Attr("k", RawNumber(3, 2)));
  const auto graph = ParseGraph(bytes);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->attr(NodeId(0), "k"), RawNumber(3, 2));
  EXPECT_EQ(testing::ReadProto(bytes).node(0).attr().at("k").i(), 2);  // As protobuf reads it.
}

TEST(GraphTest, AttributesOfAWideNodeAreThoseOfANarrowOne) {
  const auto node = [](int inputs) {
    std::string text = Name("a") + Attr("k", RawNumber(3, 1)) + Op("AddN");
    for (int i = 0; i < inputs; ++i) text += Input("in");
    return Node(Name("in") + Op("Placeholder")) + Node(text + Attr("k", RawNumber(3, 2)));
  };
  for (int inputs : {1, 1000}) {
    const std::string bytes = node(inputs);
    const auto graph = ParseGraph(bytes);
    ASSERT_THAT(graph, IsOk());
    // Edited, it has moved.
    const std::string moved = absl::StrCat(Node(Name("b") + Op("NoOp")), bytes);
    Graph::Edited edited;
    const auto after = Graph::ParseEdited(moved, *graph, DefaultLimits(), {}, &edited);
    ASSERT_THAT(after, IsOk());
    EXPECT_THAT(edited.changed, ElementsAre(NodeId(0)));
    for (const auto& [of, id] :
         {std::make_pair(&*graph, NodeId(1)), std::make_pair(&*after, NodeId(2))}) {
      EXPECT_EQ(of->attr(id, "k"), RawNumber(3, 2)) << inputs;
      EXPECT_FALSE(of->attr(id, "T")) << inputs;
      EXPECT_FALSE(of->attr(NodeId(id - 1), "k")) << inputs;
    }
  }
}

TEST(GraphTest, FlagsSayWhatTheGraphHolds) {
  struct Case {
    const char* text;
    bool functions, control_flow, undo;
  };
  const Case kCases[] = {
      {"a = NoOp()", false, false, false},
      {"a = NoOp()\n! 0x1200", false, false, false},  // An empty library.
      {"a = NoOp()\n! 0x12020a00", true, false, false},
      {"a = Merge(b) {T=float32, N=1}\nb = Const() {dtype=float32}", false, true, false},
      {"a = NoOp() {_spillway_undo=[\"added\"]}", false, false, true},
      {"a = NoOp() {_spillway_und=[\"added\"], _spillway_undoo=3}", false, false, false},
  };
  for (const Case& c : kCases) {
    const TestGraph g(c.text);
    EXPECT_EQ(g->has_functions(), c.functions) << c.text;
    EXPECT_EQ(g->has_control_flow(), c.control_flow) << c.text;
    EXPECT_EQ(g->has_undo(NodeId(0)), c.undo) << c.text;
  }
}

TEST(GraphTest, AnUndoKeyBehindItsValueIsSeen) {
  const std::string bytes =
      Node(Name("a") + Op("NoOp") + RawField(5, RawField(2, "") + RawField(1, "_spillway_undo")));
  const auto graph = ParseGraph(bytes);
  ASSERT_THAT(graph, IsOk());
  EXPECT_TRUE(graph->has_undo(NodeId(0)));
}

// Bytes that no serializer writes but protobuf reads.
TEST(GraphTest, UnusualEncodingsAreRead) {
  struct Case {
    const char* what;
    std::string bytes;
  };
  const std::string a = Node(Name("a") + Op("Const"));
  const Case kCases[] = {
      {"name given twice", a + Node(Name("z") + Op("Neg") + Input("a") + Name("b"))},
      {"op given twice", a + Node(Name("b") + Op("NoOp") + Input("a") + Op("Neg"))},
      {"inputs first, name last", a + Node(Input("a") + Op("Neg") + Name("b"))},
      {"over-long length", a + RawField(1, Name("b") + Op("Neg") + Input("a"), 3)},
      {"over-long tag", a + RawVarint(1 << 3 | 2, 2) +
                            RawVarint((Name("b") + Op("Neg") + Input("a")).size()) + Name("b") +
                            Op("Neg") + Input("a")},
      {"unknown fields",
       a + RawNumber(90, 7) +
           Node(Name("b") + RawField(91, "x") + Op("Neg") + Input("a") + RawNumber(92, 1))},
      {"fixed32 and fixed64", a + Node(Name("b") + Op("Neg") + Input("a") + RawVarint(93 << 3 | 5) +
                                       "1234" + RawVarint(94 << 3 | 1) + "12345678")},
      {"groups", a + RawGroup(95, RawNumber(1, 2)) +
                     Node(RawGroup(96, RawGroup(97, "")) + Name("b") + Op("Neg") + Input("a"))},
      {"a name as a number too", a + Node(RawNumber(1, 5) + Name("b") + Op("Neg") + Input("a"))},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const auto graph = ParseGraph(c.bytes);
    ASSERT_THAT(graph, IsOk());
    ASSERT_EQ(graph->num_nodes(), 2);
    EXPECT_EQ(graph->name(NodeId(1)), "b");
    EXPECT_EQ(graph->op(NodeId(1)), "Neg");
    ASSERT_EQ(graph->inputs(NodeId(1)).size(), 1);
    EXPECT_EQ(graph->inputs(NodeId(1))[0], (Tensor{NodeId(0), 0}));
    const testing::GraphDef proto = testing::ReadProto(c.bytes);
    EXPECT_EQ(proto.node(1).name(), "b");
    EXPECT_EQ(proto.node(1).op(), "Neg");
  }
}

TEST(GraphTest, LegalNames) {
  // TensorFlow's rule: [A-Za-z0-9.][A-Za-z0-9_.\\/>-]*, and a leading _ for its own nodes.
  for (const std::string name : {"a", "A", "0", ".", ".a", "a/b", "a-b", "a_b", "a.b", "a>b",
                                 "a\\b", "_a", "a/", "lms/swapout_x_0"}) {
    const std::string bytes =
        Node(Name(name) + Op("NoOp")) + Node(Name("reader") + Op("NoOp") + Input("^" + name));
    EXPECT_THAT(ParseGraph(bytes), IsOk()) << name;
  }
}

// ---- Bad graphs ----

struct BadGraph {
  const char* what;
  std::string bytes;
  v1::ErrorReason reason;
  const char* message;  // Part of it.
  std::vector<std::pair<const char*, const char*>> details = {};
};

std::vector<BadGraph> BadGraphs() {
  constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_GRAPH;
  constexpr auto kBadName = v1::ERROR_REASON_BAD_NODE_NAME;
  constexpr auto kDangling = v1::ERROR_REASON_DANGLING_INPUT;
  constexpr auto kBadInput = v1::ERROR_REASON_BAD_INPUT;
  constexpr auto kNoPort = v1::ERROR_REASON_PORT_OUT_OF_RANGE;
  const std::string a = Node(Name("a") + Op("Const") + Attr("dtype", RawNumber(6, 1)));
  const auto reads = [&a](const std::string& input) {
    return a + Node(Name("b") + Op("Neg") + Input(input));
  };
  return {
      {"no bytes", "", v1::ERROR_REASON_EMPTY_GRAPH, "no nodes"},
      {"versions alone", RawField(4, ""), v1::ERROR_REASON_EMPTY_GRAPH, "no nodes"},
      {"text", "node { name: \"a\" }", kMalformed, "not a GraphDef"},
      {"an end of a group alone", a + RawVarint(9 << 3 | 4), kMalformed, "after node 1"},
      {"a group without end", a + RawVarint(9 << 3 | 3), kMalformed, "after node 1"},
      {"a zero tag", a + std::string(1, '\0'), kMalformed, "after node 1"},
      {"a length beyond the end", a + RawVarint(1 << 3 | 2) + RawVarint(100) + "x", kMalformed,
       "after node 1"},
      {"a length of 4 GiB", a + RawVarint(1 << 3 | 2) + RawVarint(0xffffffff) + "x", kMalformed,
       "after node 1"},
      {"a varint of 11 bytes", a + RawVarint(4 << 3) + std::string(10, '\x80') + "\x01", kMalformed,
       "after node 1"},
      {"a node that is cut off", a + Node(Name("b") + RawVarint(2 << 3 | 2) + RawVarint(9) + "N"),
       kMalformed, "in node 1 'b'"},

      {"no name",
       a + Node(Op("NoOp")),
       kBadName,
       "node 1 has the name ''",
       {{"index", "1"}, {"field", "name"}}},
      {"no op",
       a + Node(Name("b")),
       kBadName,
       "'b' has the op type ''",
       {{"node", "b"}, {"field", "op"}}},
      {"a name with a colon", Node(Name("a:0") + Op("NoOp")), kBadName, "'a:0'", {{"node", "a:0"}}},
      {"a name with a caret", Node(Name("^a") + Op("NoOp")), kBadName, "'^a'"},
      {"a name with a space", Node(Name("a b") + Op("NoOp")), kBadName, "'a b'"},
      {"a name with a zero", Node(Name(std::string("a\0b", 3)) + Op("NoOp")), kBadName,
       "'a\\x00\\x62'"},
      {"a name that begins with a slash", Node(Name("/a") + Op("NoOp")), kBadName, "'/a'"},
      {"a name that begins with a dash", Node(Name("-a") + Op("NoOp")), kBadName, "'-a'"},
      {"a name that is not UTF-8",
       Node(Name("a\xff") + Op("NoOp")),
       kBadName,
       "'a\\xff'",
       {{"node", "a\\xff"}}},
      {"a name in UTF-8",
       Node(Name("gr\xc3\xb6\xc3\x9f"
                 "e") +
            Op("NoOp")),
       kBadName, "\\xc3\\xb6"},
      {"a device that is not UTF-8", Node(Name("a") + Op("NoOp") + Device("/gpu\xff")), kMalformed,
       "'a' is '/gpu\\xff'"},
      {"an op with a space",
       Node(Name("a") + Op("No Op")),
       kBadName,
       "'No Op'",
       {{"value", "No Op"}}},

      {"a name twice",
       a + Node(Name("c") + Op("NoOp")) + a,
       v1::ERROR_REASON_DUPLICATE_NODE,
       "nodes 0 and 2 are both named 'a'",
       {{"node", "a"}, {"first_index", "0"}, {"second_index", "2"}}},

      {"a missing node",
       reads("nobody:1"),
       kDangling,
       "node 'b' input 0 refers to missing node 'nobody'",
       {{"node", "b"}, {"field", "input"}, {"input_index", "0"}, {"value", "nobody"}}},
      {"a missing node to wait for",
       reads("^nobody"),
       kDangling,
       "missing node 'nobody'",
       {{"value", "nobody"}}},
      {"waiting for a tensor", reads("^a:0"), kDangling, "missing node 'a:0'"},

      {"an empty input",
       reads(""),
       kBadInput,
       "node 'b' input 0 is ''",
       {{"node", "b"}, {"input_index", "0"}}},
      {"a caret alone", reads("^"), kBadInput, "'^'", {{"value", "^"}}},
      {"a port alone", reads(":0"), kBadInput, "':0'"},
      {"a port that is no number", reads("a:abc"), kBadInput, "'a:abc'", {{"value", "a:abc"}}},
      {"a port below zero", reads("a:-1"), kBadInput, "'a:-1'"},
      {"a port with a plus", reads("a:+1"), kBadInput, "'a:+1'"},
      {"a port with a space", reads("a: 1"), kBadInput, "'a: 1'"},
      {"no port behind the colon", reads("a:"), kBadInput, "'a:'"},
      {"a port beyond 31 bits", reads("a:2147483648"), kBadInput, "'a:2147483648'"},
      {"a tensor behind a control input",
       a + Node(Name("b") + Op("Neg") + Input("^a") + Input("a")),
       kBadInput,
       "put control inputs last",
       {{"node", "b"}, {"input_index", "1"}, {"value", "a"}}},

      {"output 1 of an op with one",
       reads("a:1"),
       kNoPort,
       "reads output 1 of 'a', a Const with 1 output",
       {{"node", "b"}, {"value", "a:1"}, {"output_count", "1"}}},
      {"output 0 of an op with none",
       ReadsFrom(Op("NoOp"), "p"),
       kNoPort,
       "a NoOp with 0 outputs",
       {{"output_count", "0"}}},
      {"output 3 of a Split in three",
       ReadsFrom(Op("Split") + Attr("num_split", RawNumber(3, 3)), "p:3"),
       kNoPort,
       "a Split with 3 outputs",
       {{"value", "p:3"}}},
      {"output 2 of an IdentityN of two",
       ReadsFrom(Op("IdentityN") + Attr("T", RawField(1, RawField(6, "\x01\x03"))), "p:2"), kNoPort,
       "IdentityN with 2 outputs"},
      {"output 2 of an unknown op with two shapes",
       ReadsFrom(Op("MyOwnOp") + Attr("_output_shapes", TwoShapes()), "p:2"),
       kNoPort,
       "with 2 outputs",
       {{"output_count", "2"}}},
  };
}

TEST(GraphTest, BadGraphsAreRefusedWithTheReasonAndTheNames) {
  for (const BadGraph& c : BadGraphs()) {
    SCOPED_TRACE(c.what);
    const auto graph = ParseGraph(c.bytes);
    EXPECT_THAT(graph, IsInvalid(c.reason, c.message));
    for (const auto& [key, value] : c.details) {
      EXPECT_EQ(ErrorDetailOf(graph.status(), key), value) << key;
    }
  }
}

// Their counterparts: inputs just within the limits.
TEST(GraphTest, PortsThatExistOrMayExistAreAccepted) {
  const std::string kGood[] = {
      ReadsFrom(Op("Const"), "p:0"),
      ReadsFrom(Op("Const"), "p:00"),
      ReadsFrom(Op("NoOp"), "^p"),
      ReadsFrom(Op("Split") + Attr("num_split", RawNumber(3, 3)), "p:2"),
      ReadsFrom(Op("IdentityN") + Attr("T", RawField(1, RawField(6, "\x01\x03"))), "p:1"),
      ReadsFrom(Op("MyOwnOp") + Attr("_output_shapes", TwoShapes()), "p:1"),
      // The number of outputs of these is unknown.
      ReadsFrom(Op("MyOwnOp"), "p:99"),
      ReadsFrom(Op("MyOwnOp"), "p:2147483647"),
      ReadsFrom(Op("Split"), "p:99"),
      ReadsFrom(Op("IdentityN"), "p:99"),
  };
  for (const std::string& bytes : kGood) {
    EXPECT_THAT(ParseGraph(bytes), IsOk()) << testing::ReadProto(bytes).ShortDebugString();
  }
}

TEST(GraphTest, NestedGroupsEndSomewhere) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += RawVarint(9 << 3 | 3);
  EXPECT_THAT(ParseGraph(Node(Name("a") + Op("NoOp")) + deep),
              IsInvalid(v1::ERROR_REASON_MALFORMED_GRAPH));
}

TEST(GraphTest, CutOffAnywhereIsAnErrorOrAShorterGraph) {
  const std::string bytes = GraphBytes(kSmallGraph);
  int accepted = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const auto graph = ParseGraph(cut);
    if (!graph.ok()) {
      EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(GetErrorReason(graph.status()), v1::ERROR_REASON_UNSPECIFIED);
      continue;
    }
    ++accepted;
    EXPECT_EQ(testing::ReadProto(cut).node_size(), graph->num_nodes());
  }
  // All nodes are needed by the first one, so only the prefix that ends before `versions` is a
  // graph.
  EXPECT_EQ(accepted, 1);
}

TEST(GraphTest, RandomBytesAreRefused) {
  testing::Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(1 + random.Below(60), '\0');
    for (char& c : bytes) c = static_cast<char>(random.Next());
    // Half of them begin as a node does.
    if (i % 2 == 0) bytes = RawVarint(1 << 3 | 2) + RawVarint(bytes.size()) + bytes;
    const auto graph = ParseGraph(bytes);
    if (graph.ok()) continue;  // Not impossible.
    ASSERT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << "i = " << i;
  }
}

// ---- Limits ----

class GraphLimitsTest : public ::testing::Test {
 protected:
  absl::Status ParseStatus() const { return Graph::Parse(bytes_, limits_, StopToken()).status(); }

  const std::string bytes_ = GraphBytes("a = NoOp()\nb = NoOp(^a, ^a)\nc = NoOp(^b)");
  v1::Limits limits_ = DefaultLimits();
};

TEST_F(GraphLimitsTest, Nodes) {
  limits_.set_max_node_count(3);
  EXPECT_THAT(ParseStatus(), IsOk());
  limits_.set_max_node_count(2);
  EXPECT_THAT(ParseStatus(), FailsWith(absl::StatusCode::kResourceExhausted,
                                       v1::ERROR_REASON_LIMIT_EXCEEDED, "more than 2 nodes"));
  EXPECT_EQ(ErrorDetailOf(ParseStatus(), "limit"), "max_node_count");
  EXPECT_EQ(ErrorDetailOf(ParseStatus(), "value"), "2");
}

TEST_F(GraphLimitsTest, Inputs) {
  limits_.set_max_input_count(3);
  EXPECT_THAT(ParseStatus(), IsOk());
  limits_.set_max_input_count(2);
  EXPECT_THAT(ParseStatus(), FailsWith(absl::StatusCode::kResourceExhausted,
                                       v1::ERROR_REASON_LIMIT_EXCEEDED, "more than 2 inputs"));
  EXPECT_EQ(ErrorDetailOf(ParseStatus(), "limit"), "max_input_count");
}

// TensorFlow takes more; nothing that trains has them.
TEST_F(GraphLimitsTest, InputsOfOneNode) {
  const auto wide = [](int inputs) {
    std::string node = Name("wide") + Op("AddN");
    for (int i = 0; i < inputs; ++i) node += Input("i");
    return ParseGraph(Node(Name("i") + Op("Placeholder")) + Node(node)).status();
  };
  EXPECT_THAT(wide(1'000'000), IsOk());
  EXPECT_THAT(wide(1'000'001), IsInvalid(v1::ERROR_REASON_LIMIT_EXCEEDED,
                                         "'wide' has more than the 1000000 inputs"));
}

TEST_F(GraphLimitsTest, Bytes) {
  limits_.set_max_graph_bytes(bytes_.size());
  EXPECT_THAT(ParseStatus(), IsOk());
  limits_.set_max_graph_bytes(bytes_.size() - 1);
  EXPECT_THAT(ParseStatus(), FailsWith(absl::StatusCode::kResourceExhausted,
                                       v1::ERROR_REASON_LIMIT_EXCEEDED, "bytes"));
  EXPECT_EQ(ErrorDetailOf(ParseStatus(), "limit"), "max_graph_bytes");
}

// ---- The graphs of the repository ----

TEST(GraphTest, AgreesWithProtobufOnRealGraphs) {
  for (const char* name : {"mnist_deep/graph.pb", "mnist_deep/graph_shapes.pb", "cond_v1/graph.pb",
                           "resnet50_tf1_b4/graph_shapes.pb"}) {
    SCOPED_TRACE(name);
    const std::string bytes = testing::ReadTestGraph(name);
    const auto graph = ParseGraph(bytes);
    ASSERT_THAT(graph, IsOk());
    const testing::GraphDef proto = testing::ReadProto(bytes);
    ASSERT_EQ(graph->num_nodes(), proto.node_size());
    int64_t inputs = 0;
    for (NodeId id(0); id < graph->num_nodes(); ++id) {
      const testing::NodeDef& node = proto.node(id);
      ASSERT_EQ(graph->name(id), node.name());
      ASSERT_EQ(graph->op(id), node.op());
      ASSERT_EQ(graph->device(id), node.device());
      ASSERT_EQ(graph->inputs(id).size(), node.input_size());
      inputs += node.input_size();
      for (int i = 0; i < node.input_size(); ++i) {
        const testing::InputName input = testing::SplitInput(node.input(i));
        const Tensor tensor = graph->inputs(id)[i];
        ASSERT_EQ(graph->name(tensor.node), input.node);
        ASSERT_EQ(tensor.port, input.control ? kControl : input.port);
      }
      for (const auto& [key, value] : node.attr()) {
        ASSERT_EQ(graph->attr(id, key), value.SerializeAsString()) << node.name() << " " << key;
      }
    }
    EXPECT_EQ(graph->num_inputs(), inputs);
  }
}

}  // namespace
}  // namespace spillway::core
