// GraphEdit: collect, validate, apply all or nothing; unedited parts stay byte for byte.
#include "rewrite_core/graph/graph_edit.h"

#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/strip.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/raw_bytes.h"
#include "tests/testing/text_form.h"

namespace spillway::core {
namespace {

using ::spillway::testing::GraphBytes;
using ::spillway::testing::IsInternal;
using ::spillway::testing::IsOk;
using ::spillway::testing::ParseGraph;
using ::spillway::testing::PrintNode;
using ::spillway::testing::RawField;
using ::spillway::testing::RawGroup;
using ::spillway::testing::TestGraph;

constexpr char kGraph[] = R"(
a = Placeholder() @/gpu:0 {dtype=float32}
b = Relu(a:0) @/gpu:0 {T=float32}
c = AddN(b, a, ^a) @/gpu:0 {N=2, T=float32}
d = NoOp()
)";

NodeSpec Identity(std::string name, std::vector<std::string> inputs) {
  NodeSpec spec;
  spec.name = std::move(name);
  spec.op = "Identity";
  spec.inputs = std::move(inputs);
  spec.attrs = {{"T", TypeAttr(kDtFloat32)}};
  return spec;
}

class GraphEditTest : public ::testing::Test {
 protected:
  std::string Apply() {
    auto bytes = edit_.Apply(StopToken());
    EXPECT_THAT(bytes, IsOk());
    return bytes.ok() ? *std::move(bytes) : "";
  }
  // Adds a node with exactly that name.
  void Add(const std::string& name, std::vector<std::string> inputs) {
    EXPECT_EQ(edit_.UniqueName(name), name);
    edit_.AddNode(Identity(name, std::move(inputs)));
  }

  const TestGraph graph_{kGraph};
  GraphEdit edit_{*graph_};
};

// ---- Apply ----

TEST_F(GraphEditTest, NoEditsGiveTheSameBytes) { EXPECT_EQ(Apply(), graph_.bytes()); }

TEST_F(GraphEditTest, ANewNodeStandsBehindTheOthers) {
  Add("s", {"b", "^a"});
  EXPECT_EQ(Apply(), graph_.bytes() + GraphBytes("s = Identity(b, ^a) {T=float32, "
                                                 "_spillway_undo=[\"added\"]}"));
}

TEST_F(GraphEditTest, ARewiredInputReadsAnotherTensor) {
  Add("s", {"b"});
  edit_.RewireInput(graph_["c"], 0, "s:0");
  const TestGraph after = TestGraph::FromBytes(Apply());
  EXPECT_EQ(PrintNode(*after, after["c"]),
            "c = AddN(s:0, a, ^a) @/gpu:0 {N=2, T=float32, _spillway_undo=[\"0=b\"]}");
}

TEST_F(GraphEditTest, AnAddedControlInputStandsLast) {
  edit_.AddControlInput(graph_["b"], "d");
  edit_.AddControlInput(graph_["c"], "d");
  edit_.AddControlInput(graph_["d"], "a");  // Has no inputs yet.
  const TestGraph after = TestGraph::FromBytes(Apply());
  EXPECT_EQ(PrintNode(*after, after["b"]),
            "b = Relu(a:0, ^d) @/gpu:0 {T=float32, _spillway_undo=[\"^d\"]}");
  EXPECT_EQ(PrintNode(*after, after["c"]),
            "c = AddN(b, a, ^a, ^d) @/gpu:0 {N=2, T=float32, _spillway_undo=[\"^d\"]}");
  EXPECT_EQ(PrintNode(*after, after["d"]), "d = NoOp(^a) {_spillway_undo=[\"^a\"]}");
}

TEST_F(GraphEditTest, AControlInputThatIsThereIsNotAdded) {
  edit_.AddControlInput(graph_["c"], "a");
  EXPECT_TRUE(edit_.controls().empty());
  EXPECT_EQ(Apply(), graph_.bytes());
  // A data input from the node is not a control input.
  edit_.AddControlInput(graph_["c"], "b");
  EXPECT_EQ(edit_.controls().size(), 1);
}

TEST_F(GraphEditTest, EditsOfOneNodeAreAppliedTogetherInAnyOrder) {
  Add("s", {"a"});
  edit_.AddControlInput(graph_["c"], "d");
  edit_.RewireInput(graph_["c"], 1, "s");
  edit_.RewireInput(graph_["c"], 0, "s");
  const TestGraph after = TestGraph::FromBytes(Apply());
  EXPECT_EQ(PrintNode(*after, after["c"]),
            "c = AddN(s, s, ^a, ^d) @/gpu:0 {N=2, T=float32, "
            "_spillway_undo=[\"0=b\",\"1=a\",\"^d\"]}");
}

TEST_F(GraphEditTest, OrderOfCollectionAcrossNodesDoesNotMatter) {
  GraphEdit other(*graph_);
  for (GraphEdit* edit : {&edit_, &other}) {
    EXPECT_EQ(edit->UniqueName("s"), "s");
    edit->AddNode(Identity("s", {"a"}));
  }
  edit_.RewireInput(graph_["b"], 0, "s");
  edit_.RewireInput(graph_["c"], 1, "s");
  other.RewireInput(graph_["c"], 1, "s");
  other.RewireInput(graph_["b"], 0, "s");
  EXPECT_EQ(Apply(), *other.Apply(StopToken()));
}

// ---- Unedited parts ----

TEST(GraphEditBytesTest, UntouchedNodesSurviveByteForByte) {
  // Attributes out of order, unknown fields, groups, over-long lengths, a name given twice.
  const std::string odd =
      RawField(1,
               RawField(2, "NoOp") + RawField(88, "future", 2) + RawField(1, "x") +
                   RawField(5, RawField(1, "z") + RawField(2, "")) + RawGroup(89, "") +
                   RawField(5, RawField(1, "a") + RawField(2, "")) + RawField(1, "odd"),
               3);
  const std::string versions = RawField(4, testing::RawNumber(1, 21), 1);
  const std::string library = RawField(2, RawField(1, ""));
  const std::string edited = GraphBytes("e = NoOp()");
  const std::string bytes = versions + odd + library + edited + versions;
  const auto graph = ParseGraph(bytes);
  ASSERT_THAT(graph, IsOk());
  GraphEdit edit(*graph);
  edit.AddControlInput(NodeId(1), "odd");
  EXPECT_EQ(edit.UniqueName("new"), "new");
  NodeSpec spec;
  spec.name = "new";
  spec.op = "NoOp";
  edit.AddNode(spec);
  const auto after = edit.Apply(StopToken());
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(*after, versions + odd + library +
                        GraphBytes("e = NoOp(^odd) {_spillway_undo=[\"^odd\"]}\n"
                                   "new = NoOp() {_spillway_undo=[\"added\"]}") +
                        versions);
}

TEST(GraphEditBytesTest, AnEditedNodeKeepsAllElse) {
  const std::string node = RawField(88, "future") +
                           RawField(5, RawField(1, "z") + RawField(2, "")) + RawField(3, "a") +
                           RawField(1, "e") + RawField(3, "a:0") + RawField(2, "AddN") +
                           RawField(5, RawField(1, "b") + RawField(2, ""));
  const std::string bytes = GraphBytes("a = Const() {dtype=float32}") + RawField(1, node);
  const auto graph = ParseGraph(bytes);
  ASSERT_THAT(graph, IsOk());
  GraphEdit edit(*graph);
  edit.RewireInput(NodeId(1), 1, "a");
  edit.AddControlInput(NodeId(1), "a");
  const auto after = edit.Apply(StopToken());
  ASSERT_THAT(after, IsOk());
  const std::string undo = StringListAttr({"1=a:0", "^a"});
  EXPECT_EQ(*after, GraphBytes("a = Const() {dtype=float32}") +
                        RawField(1, RawField(88, "future") +
                                        RawField(5, RawField(1, "z") + RawField(2, "")) +
                                        RawField(3, "a") + RawField(1, "e") + RawField(3, "a") +
                                        RawField(3, "^a") + RawField(2, "AddN") +
                                        RawField(5, RawField(1, "b") + RawField(2, "")) +
                                        RawField(5, RawField(1, kUndoAttr) + RawField(2, undo))));
}

// ---- Names ----

TEST_F(GraphEditTest, UniqueNameCountsUp) {
  EXPECT_EQ(edit_.UniqueName("s"), "s");
  EXPECT_EQ(edit_.UniqueName("s"), "s_1");
  EXPECT_EQ(edit_.UniqueName("s"), "s_2");
  EXPECT_EQ(edit_.UniqueName("a"), "a_1");  // The graph has an `a`.
  EXPECT_EQ(edit_.UniqueName("s_1"), "s_1_1");
  EXPECT_EQ(edit_.UniqueName("s"), "s_3");
}

TEST(GraphEditNamesTest, UniqueNameSkipsNamesOfTheGraph) {
  const TestGraph g("s = NoOp()\ns_1 = NoOp()\ns_3 = NoOp()");
  GraphEdit edit(*g);
  EXPECT_EQ(edit.UniqueName("s"), "s_2");
  EXPECT_EQ(edit.UniqueName("s"), "s_4");
}

// ---- Bad edits: refused as a whole ----

struct BadEdit {
  const char* what;
  std::function<void(GraphEdit*)> make;
  const char* message;
};

std::vector<BadEdit> BadEdits() {
  return {
      {"a new node with a name of the graph",
       [](GraphEdit* e) { e->AddNode(Identity("a", {"b"})); }, "'a': the name"},
      {"a new node whose name was not reserved",
       [](GraphEdit* e) { e->AddNode(Identity("s", {"b"})); }, "'s': the name"},
      {"two new nodes of one name",
       [](GraphEdit* e) {
         e->UniqueName("s");
         e->AddNode(Identity("s", {"b"}));
         e->AddNode(Identity("s", {"b"}));
       },
       "'s': the name"},
      {"a new node that reads a missing node",
       [](GraphEdit* e) {
         e->UniqueName("s");
         e->AddNode(Identity("s", {"nobody:1"}));
       },
       "'s': an input does not resolve"},
      {"a new node that waits for a missing node",
       [](GraphEdit* e) {
         e->UniqueName("s");
         e->AddNode(Identity("s", {"b", "^nobody"}));
       },
       "'s': an input does not resolve"},
      {"a new node that reads a name that was reserved but never added",
       [](GraphEdit* e) {
         e->UniqueName("s");
         e->UniqueName("never");
         e->AddNode(Identity("s", {"never"}));
       },
       "'s': an input does not resolve"},
      {"rewiring no node", [](GraphEdit* e) { e->RewireInput(NodeId(4), 0, "a"); }, "no such node"},
      {"rewiring node -1", [](GraphEdit* e) { e->RewireInput(kNoNode, 0, "a"); }, "no such node"},
      {"rewiring an input behind the last", [](GraphEdit* e) { e->RewireInput(NodeId(1), 1, "a"); },
       "'b': no such data input"},
      {"rewiring input -1", [](GraphEdit* e) { e->RewireInput(NodeId(1), -1, "a"); },
       "'b': no such data input"},
      {"rewiring a control input", [](GraphEdit* e) { e->RewireInput(NodeId(2), 2, "a"); },
       "'c': no such data input"},
      {"rewiring to a missing node", [](GraphEdit* e) { e->RewireInput(NodeId(1), 0, "nobody"); },
       "'b': a rewired input does not resolve"},
      {"rewiring to a reserved name",
       [](GraphEdit* e) {
         e->UniqueName("never");
         e->RewireInput(NodeId(1), 0, "never");
       },
       "'b': a rewired input does not resolve"},
      {"rewiring to a control input", [](GraphEdit* e) { e->RewireInput(NodeId(1), 0, "^d"); },
       "'b': a rewired input does not resolve"},
      {"rewiring one input twice",
       [](GraphEdit* e) {
         e->RewireInput(NodeId(2), 1, "b");
         e->RewireInput(NodeId(2), 0, "a");
         e->RewireInput(NodeId(2), 1, "a");
       },
       "'c': an input is rewired twice"},
      {"holding back no node", [](GraphEdit* e) { e->AddControlInput(NodeId(3), "nobody"); },
       "'d': a control input does not resolve"},
      {"waiting for a tensor", [](GraphEdit* e) { e->AddControlInput(NodeId(3), "a:0"); },
       "'d': a control input does not resolve"},
  };
}

TEST(GraphEditBadTest, EachIsRefusedAndNothingIsApplied) {
  const TestGraph graph(kGraph);
  for (const BadEdit& bad : BadEdits()) {
    SCOPED_TRACE(bad.what);
    GraphEdit edit(*graph);
    edit.AddControlInput(graph["b"], "d");  // A valid edit beside it.
    bad.make(&edit);
    EXPECT_THAT(edit.Apply(StopToken()), IsInternal(bad.message));
  }
}

TEST(GraphEditBadTest, ValidateSaysTheSame) {
  const TestGraph graph(kGraph);
  for (const BadEdit& bad : BadEdits()) {
    // Found when the edits are sorted.
    if (absl::StrContains(bad.message, "twice")) continue;
    SCOPED_TRACE(bad.what);
    GraphEdit edit(*graph);
    EXPECT_THAT(edit.Validate(StopToken()), IsOk());
    bad.make(&edit);
    EXPECT_THAT(edit.Validate(StopToken()), IsInternal(bad.message));
  }
}

TEST_F(GraphEditTest, ANewNodeMayReadALaterNewNode) {
  EXPECT_EQ(edit_.UniqueName("s"), "s");
  EXPECT_EQ(edit_.UniqueName("t"), "t");
  edit_.AddNode(Identity("s", {"t"}));
  edit_.AddNode(Identity("t", {"a"}));
  EXPECT_THAT(edit_.Validate(StopToken()), IsOk());
}

// ---- Edits on top of edits ----

class GraphEditTwiceTest : public ::testing::Test {
 protected:
  // Applies another edit to `bytes_`.
  void Edit(const std::function<void(const TestGraph&, GraphEdit*)>& make) {
    const TestGraph graph = TestGraph::FromBytes(bytes_);
    GraphEdit edit(*graph);
    make(graph, &edit);
    auto after = edit.Apply(StopToken());
    ASSERT_THAT(after, IsOk());
    bytes_ = *std::move(after);
  }
  std::string Printed(absl::string_view name) const {
    const TestGraph graph = TestGraph::FromBytes(bytes_);
    return PrintNode(*graph, graph[name]);
  }
  void ExpectStripsToTheOriginal() const {
    const TestGraph graph = TestGraph::FromBytes(bytes_);
    const auto stripped = Strip(*graph, StopToken());
    ASSERT_THAT(stripped, IsOk());
    EXPECT_EQ(*stripped, original_);
  }

  const std::string original_ = GraphBytes(kGraph);
  std::string bytes_ = original_;
};

TEST_F(GraphEditTwiceTest, TheOldestSpellingIsKept) {
  Edit([](const TestGraph& g, GraphEdit* e) { e->RewireInput(g["c"], 0, "a"); });
  Edit([](const TestGraph& g, GraphEdit* e) {
    e->RewireInput(g["c"], 0, "b:0");
    e->RewireInput(g["c"], 1, "b");
  });
  EXPECT_EQ(Printed("c"),
            "c = AddN(b:0, b, ^a) @/gpu:0 {N=2, T=float32, "
            "_spillway_undo=[\"0=b\",\"1=a\"]}");
  ExpectStripsToTheOriginal();
}

TEST_F(GraphEditTwiceTest, ControlsAddUp) {
  Edit([](const TestGraph& g, GraphEdit* e) { e->AddControlInput(g["d"], "a"); });
  Edit([](const TestGraph& g, GraphEdit* e) {
    e->AddControlInput(g["d"], "a");  // Already present.
    e->AddControlInput(g["d"], "b");
  });
  EXPECT_EQ(Printed("d"), "d = NoOp(^a, ^b) {_spillway_undo=[\"^a\",\"^b\"]}");
  ExpectStripsToTheOriginal();
}

TEST_F(GraphEditTwiceTest, AnAddedNodeThatIsEditedIsStillAdded) {
  Edit([](const TestGraph&, GraphEdit* e) {
    EXPECT_EQ(e->UniqueName("s"), "s");
    e->AddNode(Identity("s", {"a"}));
  });
  Edit([](const TestGraph& g, GraphEdit* e) {
    e->RewireInput(g["s"], 0, "b");
    e->AddControlInput(g["s"], "d");
  });
  EXPECT_EQ(Printed("s"), "s = Identity(b, ^d) {T=float32, _spillway_undo=[\"added\"]}");
  ExpectStripsToTheOriginal();
}

TEST_F(GraphEditTwiceTest, ManyRoundsOfEverything) {
  for (int round = 0; round < 5; ++round) {
    Edit([round](const TestGraph& g, GraphEdit* e) {
      const std::string name = e->UniqueName("s");
      EXPECT_EQ(name, round == 0 ? "s" : absl::StrCat("s_", round));
      e->AddNode(Identity(name, {"a"}));
      e->RewireInput(g["c"], round % 2, name);
      e->AddControlInput(g["d"], name);
    });
    ExpectStripsToTheOriginal();
  }
}

// ---- Growth ----

TEST(GraphEditGrowthTest, NewNodesOfMegabytesAreRefusedBeforeTheyTakeMuchMemory) {
  const TestGraph graph("a = NoOp()");
  GraphEdit edit(*graph);
  const std::string device(1 << 20, 'd');
  // 64 MiB are always allowed.
  for (int i = 0; i < 63; ++i) {
    NodeSpec spec = Identity(edit.UniqueName("n"), {"a"});
    spec.device = device;
    edit.AddNode(spec);
  }
  EXPECT_FALSE(edit.too_large());
  EXPECT_THAT(edit.Apply(StopToken()), IsOk());
  for (int i = 0; i < 100; ++i) {
    NodeSpec spec = Identity(edit.UniqueName("n"), {"a"});
    spec.device = device;
    edit.AddNode(spec);
  }
  EXPECT_TRUE(edit.too_large());
  EXPECT_THAT(edit.Apply(StopToken()),
              testing::FailsWith(absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
                                 "n_tensors"));
}

}  // namespace
}  // namespace spillway::core
