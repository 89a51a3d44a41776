#include "rewrite_core/inspect/graph_diff.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/function_graph.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::GraphBytes;
using ::testing::IsEmpty;
using testing::IsInvalid;
using testing::IsOk;
using testing::TestGraph;

v1::GraphDiff Diff(const TestGraph& a, const TestGraph& b) {
  return testing::ValueOrDie(DiffGraphs(*a, *b, StopToken()), "diff");
}

v1::GraphDiff Diff(const std::string& a, const std::string& b) {
  return Diff(TestGraph(a), TestGraph(b));
}

std::vector<std::string> Names(const google::protobuf::RepeatedPtrField<v1::DiffNode>& nodes) {
  std::vector<std::string> names;
  for (const v1::DiffNode& node : nodes) names.push_back(node.name());
  return names;
}

constexpr char kNet[] = R"(
    x = Placeholder() {dtype=float32}
    relu = Relu(x) {T=float32, _output_shapes=[(8,4)]}
    top = Relu(relu) {T=float32}
    grad/top = ReluGrad(top, top) {T=float32}
    grad/relu = ReluGrad(grad/top, relu) {T=float32})";

// As TFLMS names and places its nodes, without Spillway's attributes.
constexpr char kSwapped[] = R"(
    x = Placeholder() {dtype=float32}
    relu = Relu(x) {T=float32, _output_shapes=[(8,4)]}
    top = Relu(relu) {T=float32}
    grad/top = ReluGrad(top, top) {T=float32}
    grad/relu = ReluGrad(grad/top, lms/swapin) {T=float32}
    lms/swapout = Identity(relu) @/cpu:0 {T=float32}
    lms/swapin = Identity(lms/swapout, ^grad/top) @/cpu:0 {T=float32})";

TEST(GraphDiffTest, TheSameBytesAreIdentical) {
  const v1::GraphDiff diff = Diff(kNet, kNet);
  EXPECT_TRUE(diff.identical());
  EXPECT_TRUE(diff.same_graph());
  EXPECT_EQ(diff.node_count_a(), 5);
}

TEST(GraphDiffTest, FindsASwapThatAnotherProgramMade) {
  const v1::GraphDiff diff = Diff(kNet, kSwapped);
  EXPECT_FALSE(diff.same_graph());
  ASSERT_EQ(diff.swaps_size(), 1);
  const v1::FoundSwap& swap = diff.swaps(0);
  EXPECT_EQ(swap.tensor(), "relu:0");
  EXPECT_EQ(swap.size_bytes(), 8 * 4 * 4);
  EXPECT_EQ(swap.swap_out(), "lms/swapout");
  EXPECT_EQ(swap.device(), "/cpu:0");
  ASSERT_EQ(swap.swap_ins_size(), 1);
  EXPECT_EQ(swap.swap_ins(0).name(), "lms/swapin");
  EXPECT_THAT(swap.swap_ins(0).triggers(), ElementsAre("grad/top"));
  ASSERT_EQ(swap.swap_ins(0).consumers_size(), 1);
  EXPECT_EQ(swap.swap_ins(0).consumers(0).node(), "grad/relu");
  EXPECT_EQ(swap.swap_ins(0).consumers(0).input_index(), 1);
  EXPECT_THAT(Names(diff.added()), ElementsAre("lms/swapout", "lms/swapin"));
  EXPECT_TRUE(diff.added(0).in_swap());
  EXPECT_TRUE(diff.added(1).in_swap());
  ASSERT_EQ(diff.rewired_size(), 1);
  EXPECT_EQ(diff.rewired(0).tensor_a(), "relu:0");
  EXPECT_EQ(diff.rewired(0).tensor_b(), "lms/swapin:0");
  EXPECT_TRUE(diff.rewired(0).in_swap());
  EXPECT_THAT(diff.changed(), IsEmpty());
}

TEST(GraphDiffTest, ControlEdgesFromSwapNodesSayWhatTheyAreFor) {
  const v1::GraphDiff diff =
      Diff(absl::StrCat(kNet, "\nw = NoOp()\nv = NoOp()\nu = NoOp()"),
           absl::StrCat(kSwapped, "\nw = NoOp(^lms/swapout)\nv = NoOp(^lms/swapin)\nu = NoOp(^w)"));
  std::vector<v1::EdgeKind> kinds;
  for (const v1::ControlChange& change : diff.controls_added()) kinds.push_back(change.kind());
  EXPECT_THAT(kinds,
              ElementsAre(v1::EDGE_KIND_DEADLINE, v1::EDGE_KIND_PACE, v1::EDGE_KIND_UNSPECIFIED));
}

TEST(GraphDiffTest, TheSizeComesFromEitherFile) {
  const std::string shapes = ", _output_shapes=[(8,4)]";
  const std::string bare_net = absl::StrReplaceAll(kNet, {{shapes, ""}});
  const std::string bare_swapped = absl::StrReplaceAll(kSwapped, {{shapes, ""}});
  EXPECT_EQ(Diff(kNet, bare_swapped).swaps(0).size_bytes(), 8 * 4 * 4);
  EXPECT_EQ(Diff(bare_net, kSwapped).swaps(0).size_bytes(), 8 * 4 * 4);
  EXPECT_FALSE(Diff(bare_net, bare_swapped).swaps(0).has_size_bytes());
}

TEST(GraphDiffTest, EachOutputOfANodeHasItsOwnSize) {
  const std::string split =
      "d = Const() {dtype=int32}\nx = Const() {dtype=float32}\n"
      "s = SplitV(x, d, d) {T=float32, num_split=3, _output_shapes=[(1), (?), (3)]}\n";
  const v1::GraphDiff diff =
      Diff(split + "p = ConcatV2(s, s:1, s:2, s:2, d) {T=float32, N=4}", split + R"(
      p = ConcatV2(in0, in1, in2, in3, d) {T=float32, N=4}
      out2 = Identity(s:2) {T=float32}
      out3 = Identity(s:2) {T=float32}
      out1 = Identity(s:1) {T=float32}
      out0 = Identity(s) {T=float32}
      in0 = Identity(out0) {T=float32}
      in1 = Identity(out1) {T=float32}
      in2 = Identity(out2) {T=float32}
      in3 = Identity(out3) {T=float32})");
  ASSERT_EQ(diff.swaps_size(), 4);
  EXPECT_EQ(diff.swaps(0).tensor(), "s:2");
  EXPECT_EQ(diff.swaps(0).size_bytes(), 12);
  EXPECT_EQ(diff.swaps(1).size_bytes(), 12);
  EXPECT_FALSE(diff.swaps(2).has_size_bytes());
  EXPECT_EQ(diff.swaps(3).size_bytes(), 4);
}

TEST(GraphDiffTest, FindsTheSwapsOfGrappler) {
  const v1::GraphDiff diff = Diff(kNet, R"(
      x = Placeholder() {dtype=float32}
      relu = Relu(x) {T=float32, _output_shapes=[(8,4)]}
      top = Relu(relu) {T=float32}
      grad/top = ReluGrad(top, top) {T=float32}
      grad/relu = ReluGrad(grad/top, swap_in) {T=float32}
      swap_out = _CopyFromGpuToHost(relu) {T=float32}
      swap_in = _CopyFromHostToGpu(swap_out) {T=float32})");
  ASSERT_EQ(diff.swaps_size(), 1);
  EXPECT_EQ(diff.swaps(0).device(), "");
  EXPECT_THAT(diff.swaps(0).swap_ins(0).triggers(), IsEmpty());
}

// A consumer that read something else before: its new input is not a tensor that was swapped in.
TEST(GraphDiffTest, CopiesThatChangeWhatIsReadAreNoSwap) {
  const v1::GraphDiff diff = Diff(kNet, R"(
      x = Placeholder() {dtype=float32}
      relu = Relu(x) {T=float32, _output_shapes=[(8,4)]}
      top = Relu(relu) {T=float32}
      grad/top = ReluGrad(top, lms/swapin) {T=float32}
      grad/relu = ReluGrad(grad/top, relu) {T=float32}
      lms/swapout = Identity(relu) {T=float32}
      lms/swapin = Identity(lms/swapout) {T=float32})");
  EXPECT_THAT(diff.swaps(), IsEmpty());
  EXPECT_FALSE(diff.added(0).in_swap());
  ASSERT_EQ(diff.rewired_size(), 1);
  EXPECT_FALSE(diff.rewired(0).in_swap());
}

// One line for each swap-in, of a report or of a diff.
template <typename Swaps>
std::vector<std::string> LinesOf(const Swaps& swaps) {
  std::vector<std::string> lines;
  for (const auto& swap : swaps) {
    for (const auto& in : swap.swap_ins()) {
      lines.push_back(absl::StrCat(swap.tensor(), " ", swap.size_bytes(), " ", swap.swap_out(), " ",
                                   in.name(), " ", in.triggers().empty() ? "" : in.triggers(0)));
      std::set<std::string> consumers;
      for (const auto& c : in.consumers()) {
        consumers.insert(absl::StrCat(" ", c.node(), " ", c.input_index()));
      }
      absl::StrAppend(&lines.back(), absl::StrJoin(consumers, ""));
    }
  }
  return lines;
}

// The files agree with the report of a rewrite.
TEST(GraphDiffTest, AgreesWithTheReportOnEverySwap) {
  v1::RewriteOptions scope, budget;
  scope.mutable_scope()->add_optimizer_scopes("gradients");
  scope.mutable_scope()->add_optimizer_scopes("Momentum");
  budget.mutable_budget()->set_recompute(v1::RECOMPUTE_ALL);
  budget.mutable_step()->set_batch_size(100);
  budget.mutable_step()->mutable_hardware()->set_preset("p100_pcie");
  budget.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(int64_t{8} << 30);
  v1::RewriteOptions fused = scope;
  fused.mutable_scope()->set_fuse_swapins(true);
  const std::string graph = testing::ReadTestGraph("resnet50_tf1/graph_shapes.pb");
  for (const v1::RewriteOptions& options : {scope, fused, budget}) {
    const auto rewritten = Rewrite(graph, options, DefaultLimits(), StopToken());
    ASSERT_THAT(rewritten, IsOk());
    const v1::GraphDiff diff =
        Diff(TestGraph::FromBytes(graph), TestGraph::FromBytes(rewritten->graph_def()));
    const v1::RewriteReport& report = rewritten->report();
    EXPECT_GT(report.swaps_size(), 3);
    EXPECT_THAT(LinesOf(diff.swaps()),
                ::testing::UnorderedElementsAreArray(LinesOf(report.swaps())));
    int64_t again = 0;
    for (const auto& node : diff.added()) {
      EXPECT_NE(node.in_swap(), !node.runs_again().empty()) << node.name();
      again += !node.runs_again().empty();
    }
    EXPECT_EQ(again, report.recomputation().node_count());
    EXPECT_EQ(again > 0, options.has_budget());
    for (const auto& input : diff.rewired()) {
      EXPECT_NE(input.in_swap(), input.made_again()) << input.node();
    }
    EXPECT_THAT(diff.changed(), IsEmpty());
    EXPECT_GT(diff.bookkeeping_count(), 0);
  }
}

// top is recomputed from a clone of relu, and grad/top reads it; any program may write this.
TEST(GraphDiffTest, NodesThatRunAgain) {
  const std::string all = R"(
      x = Placeholder() {dtype=float32}
      relu = Relu(x) {T=float32, _output_shapes=[(8,4)]}
      top = Relu(relu) {T=float32}
      second = Relu(first, ^top) {T=float32}
      first = Relu(x, ^top) {T=float32, _output_shapes=[(8,4)]}
      grad/top = ReluGrad(top, second) {T=float32}
      grad/relu = ReluGrad(grad/top, relu) {T=float32})";
  const v1::GraphDiff diff = Diff(kNet, all);
  ASSERT_EQ(diff.added_size(), 2);
  EXPECT_EQ(diff.added(0).runs_again(), "top");
  EXPECT_EQ(diff.added(1).runs_again(), "relu");
  ASSERT_EQ(diff.rewired_size(), 1);
  EXPECT_TRUE(diff.rewired(0).made_again());

  // With another attribute, device or input it is another node.
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"^top) {T=float32, _output_shapes=[(8,4)]}", "^top) {T=float32}"},
           {"first = Relu(x, ^top)", "first = Relu(x, ^top) @/gpu:0"},
           {"first = Relu(x, ^top)", "first = Relu(top)"}}) {
    const v1::GraphDiff other = Diff(kNet, absl::StrReplaceAll(all, {{from, to}}));
    EXPECT_EQ(other.added(1).runs_again(), "") << to;
    ASSERT_EQ(other.rewired_size(), 1);
    EXPECT_FALSE(other.rewired(0).made_again()) << to;
  }
}

// Of twins, the one that is read or named; and a node that forwards an output.
TEST(GraphDiffTest, WhichOfTwoAlikeRunsAgain) {
  const std::string net = R"(
      x = Placeholder() {dtype=float32}
      a = Sigmoid(x) @/gpu:0 {T=float32}
      b/c = Sigmoid(x) @/gpu:0 {T=float32}
      i = Identity(b/c) {T=float32}
      top = Mul(a, i) {T=float32}
      )";
  const v1::GraphDiff diff = Diff(absl::StrCat(net, "y = Mul(top, i) {T=float32}"),
                                  absl::StrCat(net, R"(y = Mul(top, lms/recompute_i) {T=float32}
      lms/recompute_b_c = Sigmoid(x, ^top) @/gpu:0 {T=float32}
      lms/recompute_i = Identity(lms/recompute_b_c) {T=float32})"));
  ASSERT_EQ(diff.added_size(), 2);
  EXPECT_EQ(diff.added(0).runs_again(), "b/c");
  EXPECT_EQ(diff.added(1).runs_again(), "i");
  ASSERT_EQ(diff.rewired_size(), 1);
  EXPECT_TRUE(diff.rewired(0).made_again());
}

// A swap-in that a clone reads; and a copy of the tensor on its own device.
TEST(GraphDiffTest, ASwapForANodeThatRunsAgain) {
  const v1::GraphDiff diff = Diff(kNet, R"(
      x = Placeholder() {dtype=float32}
      relu = Relu(x) {T=float32, _output_shapes=[(8,4)]}
      top = Relu(relu) {T=float32}
      again = Relu(lms/swapin) {T=float32}
      grad/top = ReluGrad(top, again) {T=float32}
      grad/relu = ReluGrad(grad/top, relu) {T=float32}
      lms/swapout = Identity(relu) @/cpu:0 {T=float32}
      lms/swapin = Identity(lms/swapout, ^top) @/cpu:0 {T=float32})");
  ASSERT_EQ(diff.swaps_size(), 1);
  EXPECT_EQ(diff.swaps(0).swap_ins(0).consumers(0).node(), "again");
  EXPECT_EQ(diff.added(0).runs_again(), "top");
  EXPECT_TRUE(diff.rewired(0).made_again());
}

TEST(GraphDiffTest, NodesAddedRemovedAndChanged) {
  const v1::GraphDiff diff = Diff(R"(
      a = Relu(b) @/gpu:0 {T=float32, old=1, both=1, same=1}
      b = Placeholder() {dtype=float32}
      gone = NoOp(^b))",
                                  R"(
      b = Placeholder() {dtype=float32}
      a = Elu(b) @/cpu:0 {T=float32, new=1, both=2, same=1}
      fresh = NoOp())");
  EXPECT_THAT(Names(diff.added()), ElementsAre("fresh"));
  EXPECT_THAT(Names(diff.removed()), ElementsAre("gone"));
  ASSERT_EQ(diff.changed_size(), 1);
  const v1::NodeChange& change = diff.changed(0);
  EXPECT_EQ(change.name(), "a");
  EXPECT_EQ(change.op_a() + " " + change.op_b(), "Relu Elu");
  EXPECT_EQ(change.device_a() + " " + change.device_b(), "/gpu:0 /cpu:0");
  EXPECT_THAT(change.attributes_added(), ElementsAre("new"));
  EXPECT_THAT(change.attributes_removed(), ElementsAre("old"));
  EXPECT_THAT(change.attributes_changed(), ElementsAre("both"));
  EXPECT_TRUE(diff.reordered());
}

TEST(GraphDiffTest, InputsThatComeAndGo) {
  const v1::GraphDiff diff = Diff(R"(
      x = NoOp()
      y = NoOp()
      p = Const() {dtype=float32}
      n = Pack(p, p, ^x) {T=float32, N=2}
      m = Pack(p, ^x, ^y) {T=float32, N=1})",
                                  R"(
      x = NoOp()
      y = NoOp()
      p = Const() {dtype=float32}
      n = Pack(p, ^y) {T=float32, N=2}
      m = Pack(p, ^y, ^x) {T=float32, N=1})");
  ASSERT_EQ(diff.rewired_size(), 1);
  EXPECT_EQ(diff.rewired(0).node(), "n");
  EXPECT_EQ(diff.rewired(0).input_index(), 1);
  EXPECT_EQ(diff.rewired(0).tensor_a(), "p:0");
  EXPECT_FALSE(diff.rewired(0).has_tensor_b());
  ASSERT_EQ(diff.controls_added_size(), 1);
  EXPECT_EQ(diff.controls_added(0).node() + " " + diff.controls_added(0).control(), "n y");
  ASSERT_EQ(diff.controls_removed_size(), 1);
  EXPECT_EQ(diff.controls_removed(0).node() + " " + diff.controls_removed(0).control(), "n x");
  EXPECT_EQ(diff.reencoded_count(), 1);  // The control inputs of m, which have no order.
}

TEST(GraphDiffTest, SpellingIsNoDifference) {
  const v1::GraphDiff diff = Diff("a = Const() {dtype=float32}\nb = Relu(a:0) {T=float32}",
                                  "a = Const() {dtype=float32}\nb = Relu(a) {T=float32}");
  EXPECT_FALSE(diff.identical());
  EXPECT_TRUE(diff.same_graph());
  EXPECT_EQ(diff.reencoded_count(), 1);
}

TEST(GraphDiffTest, WhatElseTheFileHolds) {
  EXPECT_TRUE(Diff("a = NoOp()", "a = NoOp()\n! 0x2202081a").versions_changed());
  EXPECT_TRUE(Diff("a = NoOp()", "a = NoOp()\n! 0x12020a00").library_changed());
  EXPECT_TRUE(Diff("a = NoOp()", "a = NoOp()\n! 0x181a").other_fields_changed());
  EXPECT_FALSE(Diff("a = NoOp()", "a = NoOp()\n! 0x2202081a").same_graph());
}

// TensorFlow would run neither, but they can be compared.
TEST(GraphDiffTest, CyclesDoNotMatter) {
  const v1::GraphDiff diff = Diff("a = NoOp(^b)\nb = NoOp(^a)", "a = NoOp(^b)\nb = NoOp(^b)");
  EXPECT_EQ(diff.controls_added_size(), 1);
  EXPECT_EQ(diff.controls_removed_size(), 1);
}

TEST(GraphDiffTest, BytesGiveWhatGraphsGive) {
  const auto diff =
      DiffGraphs(GraphBytes(kNet), GraphBytes(kSwapped), DefaultLimits(), StopToken());
  ASSERT_THAT(diff, IsOk());
  EXPECT_EQ(diff->SerializeAsString(), Diff(kNet, kSwapped).SerializeAsString());
}

TEST(GraphDiffTest, AnErrorSaysWhichGraphItIsAbout) {
  const std::string good = GraphBytes(kNet);
  const auto a = DiffGraphs("not a graph", good, DefaultLimits(), StopToken());
  EXPECT_THAT(a, IsInvalid(v1::ERROR_REASON_MALFORMED_GRAPH, "graph A: "));
  EXPECT_EQ(GetErrorInfo(a.status()).metadata().at("graph"), "A");
  const auto b = DiffGraphs(good, GraphBytes("a = Relu(gone)"), DefaultLimits(), StopToken());
  EXPECT_THAT(b, IsInvalid(v1::ERROR_REASON_DANGLING_INPUT, "graph B: node 'a'"));
  EXPECT_EQ(GetErrorInfo(b.status()).metadata().at("graph"), "B");
  EXPECT_EQ(GetErrorInfo(b.status()).metadata().at("node"), "a");
  v1::Limits limits = DefaultLimits();
  limits.set_max_node_count(5);  // As many as kNet has.
  EXPECT_THAT(DiffGraphs(good, GraphBytes(kSwapped), limits, StopToken()),
              FailsWith(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                        "graph B: "));
  EXPECT_THAT(DiffGraphs(good, good, limits, StopToken()), IsOk());
}

// Two calls of a function whose body keeps a tensor for later.
std::string TwoCalls() {
  return testing::GraphWithFunctions(
      "a = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64)}\n"
      "c = PartitionedCall(a) @/gpu:0 {Tin=[float32], Tout=[float32], f=\"f\"}\n"
      "d = PartitionedCall(c) @/gpu:0 {Tin=[float32], Tout=[float32], f=\"f\"}\n"
      "e = Neg(d) @/gpu:0 {T=float32}",
      {testing::Function("f", "x:float32", "y:float32",
                         "r = Relu(x) {T=float32}\n"
                         "s = Relu(r:activations:0) {T=float32}\n"
                         "t = Relu(s:activations:0) {T=float32}\n"
                         "u = Relu(t:activations:0) {T=float32}\n"
                         "v = AddV2(u:activations:0, r:activations:0) {T=float32}",
                         {"y=v:z:0"})});
}

v1::RewriteOptions Inlining(const std::string& fed = "") {
  v1::RewriteOptions options;
  options.set_inline_calls(v1::INLINE_CALLS_ALWAYS);
  v1::LevelStrategy& level = *options.mutable_level();
  level.set_swapout_threshold(2);
  level.set_swapin_ahead(1);
  level.set_swapin_groupby(0);
  if (!fed.empty()) {
    v1::Feed& feed = *options.mutable_step()->add_feeds();
    feed.set_name(fed);
    for (int i = 0; i < 2; ++i) feed.add_dims(64);
  }
  return options;
}

std::string Rewritten(const std::string& graph, const v1::RewriteOptions& options) {
  return testing::ValueOrDie(Rewrite(graph, options, DefaultLimits(), StopToken()), "rewrite")
      .graph_def();
}

v1::GraphDiff DiffFiles(const std::string& a, const std::string& b) {
  return testing::ValueOrDie(DiffGraphs(a, b, DefaultLimits(), StopToken()), "diff");
}

TEST(GraphDiffTest, CallsThatWereInlinedAreToldAsSuch) {
  const std::string before = TwoCalls();
  const v1::GraphDiff diff = DiffFiles(before, Rewritten(before, Inlining()));
  EXPECT_FALSE(diff.same_graph());
  EXPECT_THAT(diff.inlined_calls(), ElementsAre("c", "d"));
  EXPECT_EQ(diff.node_count_a(), 4);
  ASSERT_EQ(diff.swaps_size(), 2);
  EXPECT_EQ(diff.swaps(0).tensor(), "c/r:0");
  EXPECT_EQ(diff.swaps(0).size_bytes(), 64 * 64 * 4);
  EXPECT_EQ(diff.swaps(1).tensor(), "d/r:0");
  EXPECT_EQ(diff.added_size(), 4);
  for (const v1::DiffNode& node : diff.added()) EXPECT_TRUE(node.in_swap()) << node.name();
  // Nodes that come from the inlining alone.
  EXPECT_EQ(diff.inlined_node_count(), diff.node_count_b() - diff.node_count_a() - 4);
  EXPECT_GT(diff.inlined_node_count(), 2 * 5);
  EXPECT_THAT(diff.removed(), IsEmpty());
  EXPECT_THAT(diff.changed(), IsEmpty());
  for (const v1::InputChange& input : diff.rewired()) EXPECT_TRUE(input.in_swap());
}

TEST(GraphDiffTest, CallsThatStayedAreNotInlined) {
  const std::string before = TwoCalls();
  const v1::GraphDiff diff = DiffFiles(before, Rewritten(before, Inlining("c")));
  EXPECT_THAT(diff.inlined_calls(), ElementsAre("d"));
  ASSERT_EQ(diff.swaps_size(), 1);
  EXPECT_EQ(diff.swaps(0).tensor(), "d/r:0");
  EXPECT_EQ(diff.added_size(), 2);
  EXPECT_THAT(diff.changed(), IsEmpty());
}

TEST(GraphDiffTest, InlinedWithoutASwapIsNotTheSameGraph) {
  const std::string before = TwoCalls();
  v1::RewriteOptions options = Inlining();
  options.set_min_tensor_bytes(1 << 30);
  const v1::GraphDiff diff = DiffFiles(before, Rewritten(before, options));
  EXPECT_FALSE(diff.same_graph());
  EXPECT_FALSE(diff.identical());
  EXPECT_THAT(diff.inlined_calls(), ElementsAre("c", "d"));
  EXPECT_THAT(diff.added(), IsEmpty());
  EXPECT_THAT(diff.rewired(), IsEmpty());
}

// Both have the calls inlined, so that is no difference between them.
TEST(GraphDiffTest, TwoInlinedGraphsAreComparedAsTheyAre) {
  const std::string before = TwoCalls();
  v1::RewriteOptions options = Inlining();
  options.set_min_tensor_bytes(1 << 30);
  const v1::GraphDiff diff = DiffFiles(Rewritten(before, options), Rewritten(before, Inlining()));
  EXPECT_THAT(diff.inlined_calls(), IsEmpty());
  EXPECT_EQ(diff.swaps_size(), 2);
  EXPECT_EQ(diff.added_size(), 4);
}

// Records that do not belong to this A, whose call of that name is of another function.
TEST(GraphDiffTest, RecordsOfAnotherGraphHideNothing) {
  const std::string other = testing::GraphWithFunctions(
      "a = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64)}\n"
      "c = PartitionedCall(a) @/gpu:0 {Tin=[float32], Tout=[float32], f=\"g\"}\n"
      "d = Neg(c) {T=float32}\n"
      "e = Neg(d) @/gpu:0 {T=float32}",
      {testing::Function("g", "x:float32", "y:float32", "w = Neg(x) {T=float32}", {"y=w:y:0"})});
  const v1::GraphDiff diff = DiffFiles(other, Rewritten(TwoCalls(), Inlining()));
  EXPECT_THAT(diff.inlined_calls(), ElementsAre("c"));
  EXPECT_THAT(Names(diff.removed()), ElementsAre("c/w"));
  EXPECT_THAT(Names(diff.added()), ::testing::Contains("d/r"));
  EXPECT_TRUE(diff.library_changed());
}

}  // namespace
}  // namespace spillway::core
