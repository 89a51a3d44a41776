// Graphs made to be expensive or to confuse: each is small in bytes, so the answer must take little
// time and memory, or stop when its deadline does.
#include <sys/resource.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/naive_executor.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/sanitizers.h"

namespace spillway::testing {
namespace {

// Several times each one's time under the sanitizers (up to 17 s on a machine with three times the
// work that it has cores for); a quadratic loop over the sizes below takes minutes.
constexpr absl::Duration kPatience = absl::Seconds(90);
constexpr int64_t kMiB = 1 << 20;

// The most memory that this process ever held, in bytes.
int64_t PeakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

v1::RewriteOptions Options() {
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("gradients");
  options.mutable_scope()->add_starting_op_names("x");
  return options;
}

absl::StatusOr<v1::RewriteResponse> TimedRewrite(const std::string& input,
                                                 const v1::RewriteOptions& options) {
  const absl::Time begin = absl::Now();
  auto response =
      core::Rewrite(input, options, core::DefaultLimits(), core::StopToken(begin + kPatience / 2));
  EXPECT_LT(absl::Now() - begin, kPatience);
  return response;
}

// ---- Ports ----

class HugePorts : public ::testing::TestWithParam<const char*> {};

// A port is a number that costs ten bytes to write: it must not determine an array's size.
TEST_P(HugePorts, CostNeitherTimeNorMemory) {
  std::string text =
      absl::StrCat("x = Placeholder() @/gpu:0 {dtype=float32}\np = ", GetParam(), "\n");
  for (const char* port : {"0", "1000000000", "2147483646", "2147483647"}) {
    const std::string graph =
        absl::StrCat(text, "gradients/b = Neg(p:", port, ") @/gpu:0 {T=float32}\n",
                     "gradients/c = Neg(gradients/b) @/gpu:0 {T=float32}\n");
    const int64_t before = PeakMemory();
    const auto response = TimedRewrite(GraphBytes(graph), Options());
    EXPECT_TRUE(response.ok() || absl::IsInvalidArgument(response.status())) << response.status();
    EXPECT_LT(PeakMemory() - before, 200 * kMiB) << port;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, HugePorts,
    ::testing::Values("MyOwnOp(x) @/gpu:0 {T=float32}",
                      "MyOwnOp(x) @/gpu:0 {T=float32, _output_shapes=[(1)]}",
                      "Split(x, x) @/gpu:0 {T=float32, num_split=2147483647}",
                      "Split(x, x) @/gpu:0 {T=float32}",
                      "Split(x, x) @/gpu:0 {T=float32, _output_shapes=[(1),(2)]}",
                      "IdentityN(x) @/gpu:0 {_output_shapes=[(1),(2)]}"));

// ---- Wide nodes ----

// Wide enough for quadratic time to show.
constexpr int kWide = testing::kAddressSanitizer ? 10'000 : 100'000;

// One backward node that reads the outputs of very many forward nodes.
std::string WideReader() {
  // The reader is not among the first backward ops, so no search looks through all its inputs.
  std::string text =
      "x = Placeholder() @/gpu:0 {dtype=float32}\ny = Relu(x) @/gpu:0 {T=float32}\n"
      "gradients/p = Neg(y) @/gpu:0 {T=float32}\n"
      "gradients/q = Neg(gradients/p) @/gpu:0 {T=float32}\n";
  std::string inputs = "gradients/q";
  for (int i = 0; i < kWide; ++i) {
    absl::StrAppend(&text, "f", i, " = Relu(x) @/gpu:0 {T=float32}\n");
    absl::StrAppend(&inputs, ", f", i);
  }
  absl::StrAppend(&text, "gradients/sum = AddN(", inputs, ") @/gpu:0 {T=float32, N=", kWide + 1,
                  "}\ngradients/end = Neg(gradients/sum) @/gpu:0 {T=float32}\n");
  return GraphBytes(text);
}

// One forward node whose outputs are read by very many backward nodes.
std::string WideProducer() {
  std::string text =
      absl::StrCat("x = Placeholder() @/gpu:0 {dtype=float32}\nr = Relu(x) @/gpu:0 ",
                   "{T=float32}\naxis = Const() {dtype=int32}\n",
                   "split = Split(axis, r) @/gpu:0 {T=float32, num_split=", kWide, "}\n");
  for (int i = 0; i < kWide; ++i) {
    absl::StrAppend(&text, "gradients/b", i, " = Neg(split:", i, ") @/gpu:0 {T=float32}\n",
                    "gradients/c", i, " = Neg(gradients/b", i, ") @/gpu:0 {T=float32}\n");
  }
  return GraphBytes(text);
}

// One tensor that very many backward nodes read.
std::string WideTensor() {
  std::string text =
      "x = Placeholder() @/gpu:0 {dtype=float32}\nr = Relu(x) @/gpu:0 {T=float32}\n"
      "s = Relu(r) @/gpu:0 {T=float32}\n";
  for (int i = 0; i < kWide; ++i) {
    absl::StrAppend(&text, "gradients/b", i, " = ReluGrad(s, r) @/gpu:0 {T=float32}\n",
                    "gradients/c", i, " = Neg(gradients/b", i, ") @/gpu:0 {T=float32}\n");
  }
  return GraphBytes(text);
}

class WideGraphs : public ::testing::TestWithParam<std::string (*)()> {};

TEST_P(WideGraphs, AreRewrittenInTime) {
  const std::string input = GetParam()();
  for (const bool fuse : {false, true}) {
    v1::RewriteOptions options = Options();
    options.mutable_scope()->set_fuse_swapins(fuse);
    const auto response = TimedRewrite(input, options);
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->report().outcome(), v1::OUTCOME_REWRITTEN);
    // The whole backward part.
    v1::RewriteOptions strip;
    strip.mutable_strip();
    const auto stripped = TimedRewrite(response->graph_def(), strip);
    ASSERT_THAT(stripped, IsOk());
    EXPECT_EQ(stripped->graph_def(), input);
  }
}

TEST_P(WideGraphs, HaveTheirPatchInTime) {
  v1::RewriteOptions options = Options();
  options.add_outputs(v1::OUTPUT_PATCH);
  const auto response = TimedRewrite(GetParam()(), options);
  ASSERT_THAT(response, IsOk());
  EXPECT_GE(response->patch().rewired_inputs_size(), kWide);
}

INSTANTIATE_TEST_SUITE_P(All, WideGraphs,
                         ::testing::Values(&WideReader, &WideProducer, &WideTensor));

// ---- Partly missing records ----

TEST(PartlyLostRecords, AreBlamedOnTheInput) {
  const auto rewritten = TimedRewrite(
      GraphBytes("x = Placeholder() @/gpu:0 {dtype=float32}\na = Relu(x) @/gpu:0 {T=float32}\n"
                 "b = Relu(a) @/gpu:0 {T=float32}\n"
                 "gradients/b = Neg(b) @/gpu:0 {T=float32}\n"
                 "gradients/a = ReluGrad(gradients/b, a) @/gpu:0 {T=float32}\n"
                 "gradients/x = Neg(gradients/a) @/gpu:0 {T=float32}\n"),
      Options());
  ASSERT_THAT(rewritten, IsOk());
  ASSERT_GE(rewritten->report().swaps_size(), 1);
  const GraphDef whole = ReadProto(rewritten->graph_def());
  for (int i = 0; i < whole.node_size(); ++i) {
    if (whole.node(i).attr().count("_spillway_undo") == 0) continue;
    SCOPED_TRACE(whole.node(i).name());
    GraphDef part = whole;
    part.mutable_node(i)->mutable_attr()->erase("_spillway_undo");
    v1::RewriteOptions replan = Options(), strip;
    replan.set_already_rewritten(v1::ALREADY_REWRITTEN_REPLAN);
    strip.mutable_strip();
    for (const v1::RewriteOptions& options : {Options(), replan, strip}) {
      const auto response = TimedRewrite(WriteProto(part), options);
      // A strip may also find nothing wrong, if the node's inputs all stay.
      if (response.ok()) continue;
      EXPECT_THAT(response, FailsWith(absl::StatusCode::kFailedPrecondition,
                                      v1::ERROR_REASON_BAD_UNDO_RECORD, "original graph"));
    }
  }
}

// ---- Many options ----

TEST(ManyOptions, AreCheckedInTime) {
  v1::RewriteOptions options = Options();
  for (int i = 0; i < kWide; ++i) {
    options.mutable_scope()->add_excl_types(absl::StrCat("A", i));
    options.mutable_scope()->add_incl_types(absl::StrCat("B", i));
  }
  EXPECT_THAT(TimedRewrite(GraphBytes("x = Placeholder() {dtype=float32}\ngradients/a = Neg(x) "
                                      "{T=float32}"),
                           options),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING));
}

TEST(ManyOptions, ManyDevicesOfManyNodesAreMatchedInTime) {
  v1::RewriteOptions options = Options();
  std::string text = "x = Placeholder() @/gpu:0 {dtype=float32}\n";
  for (int i = 0; i < 10'000; ++i) {
    absl::StrAppend(&text, "gradients/a", i, " = Neg(x) @/job:w/task:", i, "/gpu:0 {T=float32}\n");
    options.add_devices(absl::StrCat("/job:v/task:", i, "/gpu:1"));
  }
  EXPECT_THAT(TimedRewrite(GraphBytes(text), options),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING));
}

// ---- Deep nests of conditionals ----

// `depth` conditionals, each in the taken branch of the one around it, and a last one: the backward
// op on its one side is a trigger that must not hold back the one on its other side.
std::string DeepNest(int depth) {
  std::string text =
      "x = Placeholder() @/gpu:0 {dtype=float32}\n"
      "a = Relu(x) @/gpu:0 {T=float32}\n";
  std::string inner = "a";
  for (int i = 0; i <= depth; ++i) {
    absl::StrAppend(&text, "p", i, " = Placeholder() {dtype=bool}\n");
    absl::StrAppend(&text, "s", i, " = Switch(", inner, ", p", i, ") @/gpu:0 {T=float32}\n");
    inner = absl::StrCat("s", i, ":1");
  }
  const std::string last = absl::StrCat("s", depth);
  // `t` and `b` stand on one level, and `t` has the lower id: it is tried first.
  absl::StrAppend(&text, "f0 = Relu(", last, ":0) @/gpu:0 {T=float32}\n", "f1 = Relu(", last,
                  ":1) @/gpu:0 {T=float32}\n", "gradients/t = Neg(f0) @/gpu:0 {T=float32}\n",
                  "gradients/u = Neg(gradients/t) @/gpu:0 {T=float32}\n",
                  "gradients/b = Neg(f1) @/gpu:0 {T=float32}\n",
                  "gradients/c = ReluGrad(gradients/b, a) @/gpu:0 {T=float32}\n",
                  "gradients/d = Neg(gradients/c) @/gpu:0 {T=float32}\n");
  return GraphBytes(text);
}

TEST(DeepNests, OneSideDoesNotWaitForTheOther) {
  for (int depth = 0; depth < 80; ++depth) {
    const std::string input = DeepNest(depth);
    for (const bool direct : {false, true}) {
      v1::RewriteOptions options = Options();
      if (direct) {
        options.mutable_scope()->set_ctrld_strategy(v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER);
      }
      const auto response = TimedRewrite(input, options);
      ASSERT_THAT(response, IsOk());
      ASSERT_EQ(response->report().outcome(), v1::OUTCOME_REWRITTEN);
      // All taken, and all but the last.
      for (const bool last : {false, true}) {
        Truths truths;
        for (int i = 0; i <= depth; ++i) truths[absl::StrCat("p", i)] = i < depth || last;
        ASSERT_EQ(CompareOutcomes(Execute(ReadProto(input), truths),
                                  Execute(ReadProto(response->graph_def()), truths)),
                  "")
            << "depth " << depth << " direct " << direct << "\n"
            << DescribeGraph(response->graph_def());
      }
    }
  }
}

// ---- Growth ----

// Each of many swap-ins repeats a trigger of a megabyte: a megabyte of graph must not become
// gigabytes. A device of that length is refused as it is read.
TEST(Growth, OfMegabyteNamesIsRefusedWithLittleMemory) {
  const std::string large(kMiB, 'w');
  for (const bool device : {true, false}) {
    const std::string on = device ? absl::StrCat(" @/job:", large, "/gpu:0") : "";
    const std::string trigger = device ? "t" : large;
    std::string text = absl::StrCat("x = Placeholder() {dtype=float32}\na = Relu(x)", on,
                                    " {T=float32}\nb = Tanh(a) {T=float32}\n",
                                    "gradients/p = Relu(b) {T=float32}\ngradients/", trigger,
                                    " = Relu(gradients/p) {T=float32}\n");
    std::string all;
    constexpr int kReaders = 3000;
    for (int i = 0; i < kReaders; ++i) {
      absl::StrAppend(&text, "gradients/c", i, " = TanhGrad(a, gradients/q) {T=float32}\n");
      absl::StrAppend(&all, i == 0 ? "" : ", ", "gradients/c", i);
    }
    absl::StrAppend(&text, "gradients/q = Relu(gradients/", trigger, ") {T=float32}\n",
                    "gradients/sum = AddN(", all, ") {T=float32, N=", kReaders, "}\n",
                    "gradients/end = Relu(gradients/sum) {T=float32}\n");
    v1::RewriteOptions options = Options();
    options.mutable_scope()->set_ctrld_strategy(v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER);
    const int64_t before = PeakMemory();
    const auto response = TimedRewrite(GraphBytes(text), options);
    if (device) {
      EXPECT_THAT(response, FailsWith(absl::StatusCode::kInvalidArgument,
                                      v1::ERROR_REASON_BAD_ATTRIBUTE, "a field device"));
    } else {
      EXPECT_THAT(response, FailsWith(absl::StatusCode::kOutOfRange,
                                      v1::ERROR_REASON_RESULT_TOO_LARGE, "shorten"));
    }
    EXPECT_LT(PeakMemory() - before, 1024 * kMiB);
  }
}

// One node of a megabyte's name reads very many tensors that are swapped: report and patch name it
// for each of them. A request for the graph alone succeeds.
TEST(Growth, OfReportAndPatchIsRefusedWithLittleMemory) {
  constexpr int kTensors = 3000;
  std::string text =
      "x = Placeholder() @/gpu:0 {dtype=float32}\ny = Relu(x) @/gpu:0 {T=float32}\n"
      "gradients/p = Neg(y) @/gpu:0 {T=float32}\n"
      "gradients/q = Neg(gradients/p) @/gpu:0 {T=float32}\n";
  std::string inputs = "gradients/q";
  for (int i = 0; i < kTensors; ++i) {
    absl::StrAppend(&text, "f", i, " = Relu(x) @/gpu:0 {T=float32}\n");
    absl::StrAppend(&inputs, ", f", i);
  }
  const std::string large = absl::StrCat("gradients/", std::string(kMiB, 'w'));
  const std::string graph = GraphBytes(
      absl::StrCat(text, large, " = AddN(", inputs, ") @/gpu:0 {T=float32, N=", kTensors + 1,
                   "}\ngradients/end = Neg(", large, ") @/gpu:0 {T=float32}\n"));
  const int64_t before = PeakMemory();
  for (const v1::Output output : {v1::OUTPUT_REPORT, v1::OUTPUT_PATCH}) {
    v1::RewriteOptions options = Options();
    options.add_outputs(output);
    EXPECT_THAT(TimedRewrite(graph, options),
                FailsWith(absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
                          "request only the graph"));
  }
  v1::RewriteOptions options = Options();
  options.add_outputs(v1::OUTPUT_GRAPH);
  const auto response = TimedRewrite(graph, options);
  ASSERT_THAT(response, IsOk());
  EXPECT_GE(response->report().devices(0).swapped_tensor_count(), kTensors);
  EXPECT_LT(PeakMemory() - before, 512 * kMiB);
}

}  // namespace
}  // namespace spillway::testing
