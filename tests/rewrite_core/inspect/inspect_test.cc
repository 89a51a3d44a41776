#include "rewrite_core/inspect/inspect.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/text_format.h"
#include "rewrite_core/base/shown_name.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::GraphBytes;
using testing::IsInvalid;
using testing::IsOk;
using ::testing::Pair;

absl::StatusOr<v1::GraphSummary> TryInspect(const std::string& bytes,
                                            const std::string& options_text = "") {
  v1::InspectOptions options;
  if (!google::protobuf::TextFormat::ParseFromString(options_text, &options)) std::abort();
  return Inspect(bytes, options, DefaultLimits(), StopToken());
}

v1::GraphSummary Summary(const std::string& text, const std::string& options = "") {
  return testing::ValueOrDie(TryInspect(GraphBytes(text), options), text);
}

std::vector<std::pair<std::string, int64_t>> Pairs(
    const google::protobuf::RepeatedPtrField<v1::NameCount>& counts) {
  std::vector<std::pair<std::string, int64_t>> pairs;
  for (const v1::NameCount& entry : counts) pairs.emplace_back(entry.name(), entry.count());
  return pairs;
}

TEST(InspectTest, CountsNodesEdgesOpsDevicesAndScopes) {
  const v1::GraphSummary summary = Summary(R"(
      x = Placeholder() {dtype=float32}
      net/a = Relu(x) @/gpu:0 {T=float32}
      net/b = Add(net/a, x, ^x) @/gpu:0 {T=float32}
      train = NoOp(^net/b, ^net/a))");
  EXPECT_EQ(summary.node_count(), 4);
  EXPECT_EQ(summary.data_edge_count(), 3);
  EXPECT_EQ(summary.control_edge_count(), 3);
  EXPECT_THAT(Pairs(summary.op_types()), ElementsAre(Pair("Placeholder", 1), Pair("Relu", 1),
                                                     Pair("Add", 1), Pair("NoOp", 1)));
  EXPECT_THAT(Pairs(summary.devices()), ElementsAre(Pair("", 2), Pair("/gpu:0", 2)));
  EXPECT_THAT(Pairs(summary.scopes()), ElementsAre(Pair("", 2), Pair("net", 2)));
  EXPECT_EQ(summary.level_count(), 4);
  EXPECT_EQ(summary.longest_path_begin(), "x");
  EXPECT_EQ(summary.longest_path_end(), "train");
  EXPECT_EQ(summary.rewritten_by(), v1::REWRITTEN_BY_NOBODY);
  EXPECT_FALSE(summary.has_producer_version());
}

TEST(InspectTest, MostFrequentFirst) {
  const v1::GraphSummary summary = Summary(R"(
      a = NoOp()
      s/b = Relu(p) {T=float32}
      s/c = Relu(p) {T=float32}
      p = Placeholder() {dtype=float32})");
  EXPECT_THAT(Pairs(summary.op_types()),
              ElementsAre(Pair("Relu", 2), Pair("NoOp", 1), Pair("Placeholder", 1)));
}

TEST(InspectTest, LoopFramesConditionalsAndTheirNodes) {
  const v1::GraphSummary summary = Summary(R"(
      x = Placeholder() {dtype=float32}
      p = Placeholder() {dtype=bool}
      enter = Enter(x) {T=float32, frame_name="loop"}
      merge = Merge(enter, next) {T=float32, N=2}
      test = LoopCond(p_in)
      p_in = Enter(p) {T=bool, frame_name="loop"}
      switch = Switch(merge, test) {T=float32}
      inner = Enter(switch:1) {T=float32, frame_name="inner"}
      back = Exit(inner) {T=float32}
      next = NextIteration(back) {T=float32}
      exit = Exit(switch) {T=float32}
      if = If(p, exit) {Tcond=bool, Tin=[float32], Tout=[float32]})");
  ASSERT_EQ(summary.frames_size(), 2);
  EXPECT_EQ(summary.frames(0).name(), "loop");
  EXPECT_EQ(summary.frames(0).parent(), "");
  // merge, test, switch, inner (an Enter runs outside the frame that it enters), next, exit.
  EXPECT_EQ(summary.frames(0).node_count(), 6);
  EXPECT_EQ(summary.frames(1).name(), "inner");
  EXPECT_EQ(summary.frames(1).parent(), "loop");
  EXPECT_EQ(summary.frames(1).node_count(), 1);  // back
  EXPECT_EQ(summary.unknown_frame_node_count(), 0);
  EXPECT_EQ(summary.switch_count(), 1);
  EXPECT_EQ(summary.merge_count(), 1);
  EXPECT_EQ(summary.if_count(), 1);
  EXPECT_EQ(summary.while_count(), 0);
}

TEST(InspectTest, VariablesAndUpdatesByType) {
  const v1::GraphSummary summary = Summary(R"(
      v = VariableV2() {dtype=float32, shape=(2)}
      g = Const() {dtype=float32}
      init = Assign(v, g) {T=float32}
      a = ApplyGradientDescent(v, g, g) {T=float32}
      b = ApplyGradientDescent(v, g, g) {T=float32}
      h = VarHandleOp() {dtype=float32, shape=(2)}
      c = ResourceApplyAdam(h) {T=float32}
      i = Const() {dtype=int32}
      s = ScatterAdd(v, i, g) {T=float32, Tindices=int32}
      n = ScatterNd(i, g, i) {T=float32, Tindices=int32}
      sum = ConditionalAccumulator() {dtype=float32, shape=(2)}
      d = AccumulatorApplyGradient(sum, i, g) {dtype=float32})");  // n and d update no variable.
  EXPECT_THAT(Pairs(summary.variables()),
              ElementsAre(Pair("VariableV2", 1), Pair("VarHandleOp", 1)));
  EXPECT_THAT(Pairs(summary.updates()),
              ElementsAre(Pair("ApplyGradientDescent", 2), Pair("Assign", 1),
                          Pair("ResourceApplyAdam", 1), Pair("ScatterAdd", 1)));
}

constexpr char kSizes[] = R"(
    x = Placeholder() {dtype=float32, shape=(?,4)}
    big = Relu(x) {T=float32, _output_shapes=[(100,4)]}
    small = Relu(big) {T=float32, _output_shapes=[(1,4)]}
    none = PyFunc(small) {Tin=[float32], Tout=[float32]}
    unread = Relu(none) {T=float32, _output_shapes=[(1000,4)]})";

TEST(InspectTest, TheLargestTensorsThatAreReadAndWhySizesAreUnknown) {
  const v1::GraphSummary summary = Summary(kSizes);
  ASSERT_EQ(summary.largest_tensors_size(), 2);
  EXPECT_EQ(summary.largest_tensors(0).tensor(), "big:0");
  EXPECT_EQ(summary.largest_tensors(0).dtype(), "float32");
  EXPECT_EQ(summary.largest_tensors(0).shape(), "[100,4]");
  EXPECT_EQ(summary.largest_tensors(0).size_bytes(), 100 * 4 * 4);
  EXPECT_EQ(summary.largest_tensors(1).tensor(), "small:0");
  EXPECT_EQ(summary.tensor_count(), 4);
  EXPECT_EQ(summary.known_size_count(), 2);
  EXPECT_EQ(summary.known_size_bytes(), (100 + 1) * 4 * 4);
  ASSERT_EQ(summary.unknown_sizes_size(), 2);
  EXPECT_EQ(summary.unknown_sizes(0).reason(), v1::SIZE_UNKNOWN_NO_SHAPE);
  EXPECT_EQ(summary.unknown_sizes(1).reason(), v1::SIZE_UNKNOWN_DIM);
  ASSERT_EQ(summary.placeholders_size(), 1);
  EXPECT_EQ(summary.placeholders(0).shape(), "[?,4]");
  EXPECT_FALSE(summary.placeholders(0).has_size_bytes());
  EXPECT_EQ(summary.placeholders(0).size_unknown(), v1::SIZE_UNKNOWN_DIM);
}

TEST(InspectTest, FeedsAndTheBatchSizeCount) {
  EXPECT_EQ(Summary(kSizes, "step { batch_size: 7 }").placeholders(0).size_bytes(), 7 * 4 * 4);
  const v1::GraphSummary fed = Summary(kSizes, "step { feeds { name: 'x' dims: [500, 4] } }");
  EXPECT_EQ(fed.largest_tensors(0).tensor(), "x:0");
  EXPECT_EQ(fed.largest_tensors(0).size_bytes(), 500 * 4 * 4);
  EXPECT_EQ(Summary(kSizes, "largest_tensor_count: 1").largest_tensors_size(), 1);
  EXPECT_EQ(Summary(kSizes, "largest_tensor_count: 0").largest_tensors_size(), 0);
}

TEST(InspectTest, BadOptionsAreNamed) {
  const std::string graph = GraphBytes(kSizes);
  EXPECT_THAT(TryInspect(graph, "largest_tensor_count: -1"),
              IsInvalid(v1::ERROR_REASON_BAD_OPTION, "largest_tensor_count is -1"));
  EXPECT_THAT(TryInspect(graph, "step { feeds { name: 'y' } }"),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING, "'y'"));
  // Of a step, only the shapes matter for a summary; other fields are refused.
  for (const char* more : {"targets: 'x'", "hardware { preset: 'p100_pcie' }", "profile: 'p'",
                           "convolution_workspace_bytes: 1", "convolution_workspace_limit_bytes: 0",
                           "loop_counts { name: 'f' count: 1 }", "grappler: GRAPPLER_AS_IS",
                           "kernel_memory: KERNEL_MEMORY_OFF"}) {
    EXPECT_THAT(TryInspect(graph, absl::StrCat("step { ", more, " }")),
                IsInvalid(v1::ERROR_REASON_BAD_OPTION, "matters only for a simulation"))
        << more;
  }
  EXPECT_THAT(TryInspect(graph, "step { batch_size: 0 }"),
              IsInvalid(v1::ERROR_REASON_BAD_OPTION, "batch_size"));
}

TEST(InspectTest, TellsWhoRewroteTheGraph) {
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("adam_optimizer");
  const std::string graph = testing::ReadTestGraph("mnist_deep/graph_shapes.pb");
  const auto rewritten = Rewrite(graph, options, DefaultLimits(), StopToken());
  ASSERT_THAT(rewritten, IsOk());
  int swap_ins = 0;
  for (const auto& swap : rewritten->report().swaps()) swap_ins += swap.swap_ins_size();
  const auto ours = testing::ValueOrDie(TryInspect(rewritten->graph_def()), "ours");
  EXPECT_EQ(ours.rewritten_by(), v1::REWRITTEN_BY_SPILLWAY);
  EXPECT_EQ(ours.swap_out_count(), rewritten->report().swaps_size());
  EXPECT_EQ(ours.swap_in_count(), swap_ins);
  const v1::GraphSummary foreign = Summary(R"(
      x = Placeholder() {dtype=float32}
      lms/swapout = Identity(x) @/cpu:0 {T=float32}
      lms/swapin = Identity(lms/swapout) @/cpu:0 {T=float32}
      lms/swapin_1 = Identity(lms/swapout) @/cpu:0 {T=float32}
      y = AddV2(lms/swapin, lms/swapin_1) {T=float32})");
  EXPECT_EQ(foreign.rewritten_by(), v1::REWRITTEN_BY_OTHER);
  EXPECT_EQ(foreign.swap_out_count(), 1);
  EXPECT_EQ(foreign.swap_in_count(), 2);
}

// versions { producer: 26 min_consumer: 12 }, library { function { signature { name: "f\n" }
// node_def {} node_def {} } }.
constexpr char kOtherFields[] = R"(
    x = Placeholder() {dtype=float32}
    y = PartitionedCall(x) {Tin=[float32], Tout=[float32]}
    ! 0x2204081a100c
    ! 0x120c0a0a0a040a02660a1a001a00)";

TEST(InspectTest, VersionsAndFunctions) {
  const v1::GraphSummary summary = Summary(kOtherFields);
  EXPECT_EQ(summary.producer_version(), 26);
  EXPECT_EQ(summary.min_consumer_version(), 12);
  ASSERT_EQ(summary.functions_size(), 1);
  EXPECT_EQ(summary.functions(0).name(), "f\\n");
  EXPECT_EQ(summary.functions(0).node_count(), 2);
  EXPECT_EQ(summary.call_count(), 1);
}

TEST(InspectTest, WrongGraphsAreErrorsAsForRewrite) {
  EXPECT_THAT(TryInspect("not a graph"), IsInvalid(v1::ERROR_REASON_MALFORMED_GRAPH, "GraphDef"));
  EXPECT_THAT(TryInspect(GraphBytes("a = Relu(b)\nb = Relu(a)")),
              IsInvalid(v1::ERROR_REASON_CYCLE, "'a'"));
  // A library with a function whose length exceeds the remaining bytes.
  EXPECT_THAT(TryInspect(GraphBytes("x = NoOp()\n! 0x12020a7f")),
              IsInvalid(v1::ERROR_REASON_MALFORMED_GRAPH, "function library"));
  v1::Limits limits = DefaultLimits();
  limits.set_max_node_count(1);
  EXPECT_THAT(Inspect(GraphBytes("a = NoOp()\nb = NoOp()"), {}, limits, StopToken()),
              FailsWith(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                        "max_node_count"));
}

// One frame with a name of a megabyte and a thousand frames inside it, each of which repeats the
// name: the summary must not hold a gigabyte.
TEST(InspectTest, LongNamesAreCut) {
  std::string text = absl::StrCat(
      "x = Placeholder() {dtype=float32}\nouter = Enter(x) {T=float32, "
      "frame_name=\"",
      std::string(1 << 20, 'n'), "\"}\n");
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&text, "e", i, " = Enter(outer) {T=float32, frame_name=\"", i, "\"}\n");
  }
  const v1::GraphSummary summary = Summary(text);
  ASSERT_EQ(summary.frames_size(), 1001);
  EXPECT_EQ(summary.frames(1).parent(), std::string(kMaxShownName, 'n') + "...");
  EXPECT_LT(summary.ByteSizeLong(), 2u << 20);
}

}  // namespace
}  // namespace spillway::core
