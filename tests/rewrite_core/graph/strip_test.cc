// Strip restores the original from the file alone, byte for byte, for any original.
#include "rewrite_core/graph/strip.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::core {
namespace {

using ::spillway::testing::FailsWith;
using ::spillway::testing::GraphBytes;
using ::spillway::testing::IsOk;
using ::spillway::testing::RawField;
using ::spillway::testing::RawGroup;
using ::spillway::testing::RawNumber;
using ::spillway::testing::RawVarint;
using ::spillway::testing::ReadProto;
using ::spillway::testing::TestGraph;

using Edits = std::function<void(const TestGraph&, GraphEdit*)>;

std::string Edited(const std::string& bytes, const Edits& make) {
  const TestGraph graph = TestGraph::FromBytes(bytes);
  GraphEdit edit(*graph);
  make(graph, &edit);
  auto after = edit.Apply(StopToken());
  EXPECT_THAT(after, IsOk());
  return after.ok() ? *std::move(after) : "";
}

std::string Stripped(const std::string& bytes) {
  const TestGraph graph = TestGraph::FromBytes(bytes);
  auto stripped = Strip(*graph, StopToken());
  EXPECT_THAT(stripped, IsOk());
  return stripped.ok() ? *std::move(stripped) : "";
}

// All kinds of edits of a rewrite, on nodes `b` (two data inputs) and `c` (none).
void EditBAndC(const TestGraph& g, GraphEdit* e) {
  const std::string name = e->UniqueName("lms/swapin_a_0");
  NodeSpec spec;
  spec.name = name;
  spec.op = "Identity";
  spec.inputs = {"a", "^c"};
  spec.attrs = {{"T", TypeAttr(kDtFloat32)}};
  e->AddNode(spec);
  e->RewireInput(g["b"], 0, name);
  e->RewireInput(g["b"], 1, name);
  e->AddControlInput(g["b"], name);
  e->AddControlInput(g["b"], "c");
  e->AddControlInput(g["c"], "a");
}

struct Original {
  const char* what;
  std::string bytes;
};

std::vector<Original> Originals() {
  const std::string a = GraphBytes("a = Placeholder() {dtype=float32}");
  const std::string b = GraphBytes("b = AddN(a, a) {N=2, T=float32}");
  const std::string c = GraphBytes("c = NoOp()");
  const auto b_of = [&](const std::string& fields) { return a + RawField(1, fields) + c; };
  const std::string name = RawField(1, "b"), op = RawField(2, "AddN");
  const std::string in0 = RawField(3, "a"), in1 = RawField(3, "a:0");
  const std::string n = RawField(5, RawField(1, "N") + RawField(2, RawNumber(3, 2)));
  return {
      {"plain", a + b + c},
      {"inputs spelled x:0", GraphBytes("a = Placeholder() {dtype=float32}\n"
                                        "b = AddN(a:0, a:00) {N=2, T=float32}\nc = NoOp()")},
      {"duplicate ^x", GraphBytes("a = Placeholder() {dtype=float32}\n"
                                  "b = AddN(a, a, ^a, ^a) {N=2, T=float32}\nc = NoOp()")},
      {"^x and ^y, x again", GraphBytes("a = Placeholder() {dtype=float32}\nd = NoOp()\n"
                                        "b = AddN(a, a, ^a, ^d, ^a) {N=2}\nc = NoOp(^d, ^d)")},
      {"attributes out of order",
       GraphBytes("a = Placeholder() {dtype=float32}") +
           RawField(1,
                    name + op + in0 + in1 + RawField(5, RawField(1, "z") + RawField(2, "")) + n) +
           c},
      {"an attribute twice", b_of(name + op + in0 + in1 + n + n)},
      {"an entry with its value first",
       b_of(name + op + in0 + in1 + RawField(5, RawField(2, RawNumber(3, 2)) + RawField(1, "N")))},
      {"inputs behind the attributes", b_of(name + op + n + in0 + in1)},
      {"inputs apart", b_of(in0 + name + n + in1 + op)},
      {"inputs first", b_of(in0 + in1 + name + op)},
      {"unknown fields", b_of(name + RawField(70, "x") + op + in0 + RawNumber(71, 3) + in1 +
                              RawGroup(72, RawNumber(1, 1)))},
      {"debug info", b_of(name + op + in0 + in1 + RawField(6, RawField(1, "original")))},
      {"an over-long length of the node", a + RawField(1, name + op + in0 + in1, 1) + c},
      {"an over-long tag of the node", a + RawVarint(1 << 3 | 2, 1) +
                                           RawVarint((name + op + in0 + in1).size()) + name + op +
                                           in0 + in1 + c},
      {"an over-long length of a rewired input", b_of(name + op + RawField(3, "a", 2) + in1)},
      {"an over-long tag of a rewired input",
       b_of(name + op + RawVarint(3 << 3 | 2, 1) + RawVarint(1) + "a" + in1)},
      {"an over-long length of the name", b_of(RawField(1, "b", 3) + op + in0 + in1)},
      {"an over-long length of a node without inputs",
       a + b + RawField(1, RawField(1, "c") + RawField(2, "NoOp"), 2)},
      {"library and versions first", GraphBytes("! 0x12020a00\n! 0x22020801") + a + b + c},
      {"library and versions between nodes",
       a + GraphBytes("! 0x12020a00") + b + GraphBytes("! 0x22020801") + c},
      {"library and versions last", a + b + c + GraphBytes("! 0x12020a00\n! 0x22020801")},
      {"versions twice", GraphBytes("! 0x22020801") + a + b + c + GraphBytes("! 0x22020802")},
      {"the deprecated version", a + b + c + RawNumber(3, 21)},
      {"unknown fields of the graph", RawField(50, "x") + a + b + RawNumber(51, 7) + c},
      {"readers before producers", c + b + a},
  };
}

TEST(StripTest, GivesTheOriginalBytes) {
  for (const Original& original : Originals()) {
    SCOPED_TRACE(original.what);
    const std::string edited = Edited(original.bytes, EditBAndC);
    ASSERT_NE(edited, original.bytes);
    EXPECT_EQ(Stripped(edited), original.bytes);
  }
}

TEST(StripTest, EditsOnTopOfEditsAreUndoneTogether) {
  for (const Original& original : Originals()) {
    SCOPED_TRACE(original.what);
    std::string edited = original.bytes;
    for (int round = 0; round < 3; ++round) edited = Edited(edited, EditBAndC);
    EXPECT_EQ(Stripped(edited), original.bytes);
  }
}

TEST(StripTest, AGraphWithoutRecordsComesBackAsItIs) {
  for (const Original& original : Originals()) {
    EXPECT_EQ(Stripped(original.bytes), original.bytes) << original.what;
  }
}

// TensorFlow reads a GraphDef into a message and writes it back: fields in order, attributes sorted
// by name, lengths in the minimum number of bytes.
TEST(StripTest, AfterTensorFlowWroteItAgainTheMessageIsTheSame) {
  for (const Original& original : Originals()) {
    SCOPED_TRACE(original.what);
    const std::string edited = Edited(Edited(original.bytes, EditBAndC), EditBAndC);
    const std::string again = testing::WriteProto(ReadProto(edited));
    EXPECT_EQ(testing::Difference(ReadProto(original.bytes), ReadProto(Stripped(again))), "");
  }
}

// TensorFlow's importer may write `x:0` as `x` and reorder control inputs.
TEST(StripTest, AfterAnImportDataInputsAndControlsAreThoseOfTheOriginal) {
  const std::string original = GraphBytes(
      "a = Placeholder() {dtype=float32}\nb = AddN(a:0, a, ^a) {N=2, T=float32}\nc = NoOp()");
  testing::GraphDef graph = ReadProto(Edited(original, EditBAndC));
  testing::NodeDef* b = graph.mutable_node(1);
  ASSERT_EQ(b->input_size(), 5);  // Two tensors, ^a, the swap-in and ^c.
  b->mutable_input()->SwapElements(2, 4);
  EXPECT_EQ(
      testing::Difference(ReadProto(original), ReadProto(Stripped(testing::WriteProto(graph)))),
      "");
}

TEST(StripTest, RandomGraphsInUnusualBytesComeBack) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    testing::RandomGraphOptions options;
    options.conds = seed % 2 == 0;
    const testing::GraphDef proto = testing::MakeRandomGraph(seed, options);
    testing::Random random(seed);
    const std::string original = testing::RoughenBytes(proto, &random);
    const std::string edited = Edited(original, [&](const TestGraph& g, GraphEdit* e) {
      for (NodeId id(0); id < g->num_nodes(); ++id) {
        for (int i = 0; i < static_cast<int>(g->inputs(id).size()); ++i) {
          const Tensor input = g->inputs(id)[i];
          if (!input.is_control() && random.OneIn(3)) {
            e->RewireInput(id, i, TensorName(*g, input));
          }
        }
        if (random.OneIn(3)) e->AddControlInput(id, g->name(NodeId(random.Below(g->num_nodes()))));
      }
    });
    ASSERT_EQ(Stripped(edited), original);
    const std::string again = testing::WriteProto(ReadProto(edited));
    ASSERT_EQ(testing::Difference(ReadProto(original), ReadProto(Stripped(again))), "");
  }
}

// ---- Pieces ----

TEST(StripTest, PiecesAreInOrderAndNoneIsEmpty) {
  const std::string original = Originals()[0].bytes;
  const TestGraph graph = TestGraph::FromBytes(Edited(original, EditBAndC));
  std::string all;
  int pieces = 0;
  EXPECT_THAT(StripTo(*graph, StopToken(),
                      [&](absl::string_view piece) {
                        EXPECT_FALSE(piece.empty());
                        absl::StrAppend(&all, piece);
                        return ++pieces > 0;
                      }),
              IsOk());
  EXPECT_EQ(all, original);
}

TEST(StripTest, ASinkMayStop) {
  const TestGraph graph = TestGraph::FromBytes(Edited(Originals()[0].bytes, EditBAndC));
  int pieces = 0;
  EXPECT_THAT(StripTo(*graph, StopToken(), [&](absl::string_view) { return ++pieces < 2; }),
              IsOk());
  EXPECT_EQ(pieces, 2);
}

// ---- Earlier rewrites ----

TEST(StripTest, TellsWhoRewroteAGraph) {
  struct Case {
    const char* text;
    bool ours;
    NodeId foreign;
  };
  const Case kCases[] = {
      {"a = NoOp()", false, kNoNode},
      {"a = NoOp()\nlms/swapin_0 = NoOp()\nlms/swapout_0 = NoOp()", false, NodeId(1)},
      {"a = NoOp() {_spillway_undo=[\"added\"]}", true, kNoNode},
      // Spillway's node goes first: then a node of that name is the user's own.
      {"lms/swapin_0 = NoOp()\na = NoOp(^b) {_spillway_undo=[\"^b\"]}\nb = NoOp()", true, kNoNode},
      {"x/lms/swap = NoOp()", false, NodeId(0)},
      {"lms/swa = NoOp()", false, kNoNode},
  };
  for (const Case& c : kCases) {
    const TestGraph graph(c.text);
    EXPECT_EQ(FindEarlierRewrite(*graph, StopToken())->ours, c.ours) << c.text;
    EXPECT_EQ(FindEarlierRewrite(*graph, StopToken())->foreign_node, c.foreign) << c.text;
  }
}

TEST(StripTest, AddedNodesAreThoseWhoseRecordSaysSo) {
  const TestGraph graph(
      "a = NoOp() {_spillway_undo=[\"added\"]}\nb = NoOp(^a) {_spillway_undo=[\"^a\"]}\n"
      "c = NoOp()\nd = NoOp() {_spillway_undo=3}");
  EXPECT_TRUE(IsAddedNode(*graph, graph["a"]));
  EXPECT_FALSE(IsAddedNode(*graph, graph["b"]));
  EXPECT_FALSE(IsAddedNode(*graph, graph["c"]));
  EXPECT_FALSE(IsAddedNode(*graph, graph["d"]));
}

TEST(StripTest, ForeignGraphsAreRefused) {
  const TestGraph graph("a = NoOp()\nlms/swapin_0 = NoOp()");
  EXPECT_THAT(Strip(*graph, StopToken()),
              FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_FOREIGN_REWRITE,
                        "'lms/swapin_0'"));
}

// ---- Damaged records, through Strip ----

absl::Status StripStatus(const std::string& text) {
  v1::RewriteOptions options;
  options.mutable_strip();
  return Rewrite(GraphBytes(text), options, DefaultLimits(), StopToken()).status();
}

// Includes damage that shows only after undoing: a record must not lead to an invalid graph.
TEST(StripTest, DamagedRecordsAreRefusedAsSuch) {
  constexpr const char* kRecords[] = {
      "3",
      "[]",
      "[\"\"]",
      "[\"0\"]",
      "[\"x=a\"]",
      "[\"1=a\"]",  // No such input.
      "[\"^a\"]",   // No such control input.
      "[\"added\",\"0=a\"]",
      "[\"0=nobody\"]",  // A node that does not exist.
      "[\"0=\"]",
      "[\"0=a:7\"]",  // A port that does not exist.
      "[\"0=^a\"]",
      "[\"raw=\"]",   // Not a node: then `c` reads nothing.
      "[\"raw=x\"]",  // No GraphDef.
      "[\"added\"]",  // `c` reads it.
  };
  for (const char* record : kRecords) {
    EXPECT_THAT(
        StripStatus(absl::StrCat("a = Const() {dtype=float32}\nb = Neg(a) {T=float32, "
                                 "_spillway_undo=",
                                 record, "}\nc = Neg(b)")),
        FailsWith(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_BAD_UNDO_RECORD, ""))
        << record;
  }
  // The valid counterpart.
  EXPECT_THAT(StripStatus("a = Const() {dtype=float32}\nb = Neg(a) {T=float32, "
                          "_spillway_undo=[\"0=a:0\"]}\nc = Neg(b)"),
              IsOk());
}

// ---- Stopping ----

}  // namespace
}  // namespace spillway::core
