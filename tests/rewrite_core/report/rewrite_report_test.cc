// The report and the patch: figures counted by hand, and patches applied by a naive implementation.
#include "rewrite_core/report/rewrite_report.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/graph_edit.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"

namespace spillway::core {
namespace {

using ::spillway::testing::ApplyPatch;
using ::spillway::testing::Difference;
using ::spillway::testing::FailsWith;
using ::spillway::testing::IsOk;
using ::spillway::testing::MakeRandomGraph;
using ::spillway::testing::Random;
using ::spillway::testing::RandomGraphOptions;
using ::spillway::testing::ReadProto;
using ::spillway::testing::TestGraph;
using ::spillway::testing::ValueOrDie;
using ::spillway::testing::WithoutAttr;
using ::spillway::testing::WriteProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Edits of every kind that a swap needs: a node that reads a tensor, is read in its place, and
// waits or is waited for.
void EditAtRandom(const TestGraph& graph, Random* random, GraphEdit* edit) {
  const auto any = [&] { return NodeId(random->Below(graph->num_nodes())); };
  std::set<std::pair<NodeId, int>> rewired;  // Each input at most once.
  for (int i = 0; i < 10; ++i) {
    const std::string source(graph->name(any()));
    NodeSpec copy;
    copy.name = edit->UniqueName(absl::StrCat("lms/copy_", random->Below(5)));
    copy.op = "Identity";
    copy.device = random->OneIn(2) ? "/cpu:0" : "";
    copy.inputs = {source};
    if (random->OneIn(2)) copy.inputs.push_back(absl::StrCat("^", graph->name(any())));
    copy.attrs = {{"T", TypeAttr(kDtFloat32)}};
    if (random->OneIn(2)) copy.attrs.emplace_back("_grappler_do_not_remove", BoolAttr(true));
    const std::string name = copy.name;
    edit->AddNode(std::move(copy));
    const NodeId consumer = any();
    const std::vector<absl::string_view> inputs = graph->input_spellings(consumer);
    for (int index = 0; index < static_cast<int>(inputs.size()); ++index) {
      if (inputs[index][0] == '^') break;
      if (random->OneIn(3) && rewired.emplace(consumer, index).second) {
        edit->RewireInput(consumer, index, name);
      }
    }
    edit->AddControlInput(any(), random->OneIn(2) ? name : source, v1::EDGE_KIND_DEADLINE);
  }
}

// GraphEdit's bytes and the patch, applied to protobuf's messages by the rules of patch.proto, give
// the same graph.
TEST(PatchTest, SaysWhatTheEditWrites) {
  int rewired = 0, controls = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const TestGraph graph =
        TestGraph::FromBytes(WriteProto(MakeRandomGraph(seed, RandomGraphOptions())));
    GraphEdit edit(*graph);
    EditAtRandom(graph, &random, &edit);
    // Apply sorts the edits; a rewrite makes the patch after it.
    const std::string bytes = ValueOrDie(edit.Apply(StopToken()), "apply");
    v1::GraphPatch patch;
    ASSERT_THAT(AddToPatch(*graph, edit, StopToken(), &patch), IsOk());
    ASSERT_EQ(patch.new_nodes_size(), 10) << seed;
    ASSERT_EQ(Difference(WithoutAttr(ReadProto(bytes), kUndoAttr),
                         ApplyPatch(ReadProto(graph.bytes()), patch)),
              "")
        << "seed " << seed;
    for (const v1::AddedControl& control : patch.added_controls()) {
      ASSERT_EQ(control.kind(), v1::EDGE_KIND_DEADLINE);
    }
    rewired += patch.rewired_inputs_size();
    controls += patch.added_controls_size();
  }
  EXPECT_GT(rewired, 200);
  EXPECT_GT(controls, 200);
}

NodeSpec Node(absl::string_view name, std::vector<std::string> inputs) {
  NodeSpec node;
  node.name = std::string(name);
  node.op = "Identity";
  node.inputs = std::move(inputs);
  return node;
}

// As one patch of the first graph: edits change additions and rewired inputs of earlier ones, and
// new nodes come after those that they read.
TEST(PatchTest, OfEditsOfAnEditedGraph) {
  const TestGraph graph("a = Placeholder()\nb = Relu(a)\nc = Neg(b)");
  v1::GraphPatch patch;
  GraphEdit first(*graph);
  first.AddNode(Node(first.UniqueName("again"), {"a", "^b"}));
  first.RewireInput(graph["c"], 0, "again");
  const TestGraph between =
      TestGraph::FromBytes(ValueOrDie(first.Apply(StopToken()), "the first edits"));
  ASSERT_THAT(AddToPatch(*graph, first, StopToken(), &patch), IsOk());
  GraphEdit second(*between);
  second.AddNode(Node(second.UniqueName("out"), {"a"}));
  second.AddNode(Node(second.UniqueName("in"), {"out", "^b"}));
  second.AddNode(Node(second.UniqueName("later"), {"again"}));
  second.RewireInput(between["again"], 0, "in");
  second.RewireInput(between["c"], 0, "later");
  second.AddControlInput(between["again"], "out");
  second.AddControlInput(between["c"], "b", v1::EDGE_KIND_ORDER);
  ASSERT_THAT(second.Apply(StopToken()), IsOk());
  ASSERT_THAT(AddToPatch(*between, second, StopToken(), &patch), IsOk());
  std::vector<std::string> nodes;
  for (const v1::NewNode& node : patch.new_nodes()) {
    nodes.push_back(absl::StrCat(node.name(), "(", absl::StrJoin(node.inputs(), ", "), ")"));
  }
  EXPECT_THAT(nodes, ElementsAre("out(a)", "in(out, ^b)", "again(in, ^b, ^out)", "later(again)"));
  ASSERT_EQ(patch.rewired_inputs_size(), 1);
  EXPECT_EQ(patch.rewired_inputs(0).node(), "c");
  EXPECT_EQ(patch.rewired_inputs(0).old_input(), "b");
  EXPECT_EQ(patch.rewired_inputs(0).new_input(), "later");
  ASSERT_EQ(patch.added_controls_size(), 1);
  EXPECT_EQ(patch.added_controls(0).node(), "c");
}

// Names are repeated each time that an edit names the node: 20 repetitions of a name of a megabyte
// exceed the 16 MiB that are always allowed, and four times the graph.
TEST(PatchTest, NamesTakeNoMoreThanAFewTimesTheGraph) {
  const std::string name(1 << 20, 'n');
  for (const auto& [count, fits] : {std::pair(15, true), {20, false}}) {
    const TestGraph graph(absl::StrCat(name, " = NoOp()"));
    GraphEdit edit(*graph);
    for (int i = 0; i < count; ++i) {
      const std::string source = edit.UniqueName("source");
      NodeSpec node;
      node.name = source;
      node.op = "NoOp";
      edit.AddNode(std::move(node));
      edit.AddControlInput(graph[name], source);
    }
    v1::GraphPatch patch;
    const absl::Status status = AddToPatch(*graph, edit, StopToken(), &patch);
    if (fits) {
      EXPECT_THAT(status, IsOk());
    } else {
      EXPECT_THAT(status, FailsWith(absl::StatusCode::kOutOfRange,
                                    v1::ERROR_REASON_RESULT_TOO_LARGE, "the patch would have"));
    }
  }
}

constexpr char kTwoGpus[] = R"(
  a = Placeholder() @/gpu:0 {dtype=float32}
  b = Placeholder() @/gpu:1 {dtype=float32}
  c = Placeholder() @/gpu:0 {dtype=float32}
  use = AddN(a, b, c, a) @/gpu:0 {N=4, T=float32}
  t = NoOp()
)";

// Three swaps: of a, for its two inputs of `use` separately; of b; of c, whose size is unknown and
// whose swap-in has no trigger.
SwapPlan ThreeSwaps(const TestGraph& graph) {
  const NodeId use = graph["use"], t = graph["t"];
  PlannedSwap a, b, c;
  a.tensor = graph.Output("a");
  a.size_bytes = 100;
  a.swap_ins = {{{{use, 0}}, {t}}, {{{use, 3}}, {t}, {t}}};
  a.deadlines = {use};
  b.tensor = graph.Output("b");
  b.size_bytes = 7;
  b.swap_ins = {{{{use, 1}}, {t}}};
  c.tensor = graph.Output("c");
  c.swap_ins = {{{{use, 2}}, {}}};
  SwapPlan plan;
  plan.swaps = {a, b, c};
  return plan;
}

TEST(ReportFiguresTest, CountsByDeviceAndByKindOfEdge) {
  const TestGraph graph(kTwoGpus);
  v1::RewriteReport report;
  ASSERT_TRUE(ReportFigures(*graph, ClonePlan(), ThreeSwaps(graph), {}, &report).ok());
  ASSERT_EQ(report.devices_size(), 2);
  EXPECT_EQ(report.devices(0).device(), "/gpu:0");
  EXPECT_EQ(report.devices(0).swapped_tensor_count(), 2);
  EXPECT_EQ(report.devices(0).swap_out_count(), 2);
  EXPECT_EQ(report.devices(0).swap_in_count(), 3);
  EXPECT_EQ(report.devices(0).swap_out_bytes(), 100);
  EXPECT_EQ(report.devices(0).swap_in_bytes(), 200);
  EXPECT_EQ(report.devices(0).unknown_size_count(), 1);
  EXPECT_EQ(report.devices(1).device(), "/gpu:1");
  EXPECT_EQ(report.devices(1).swap_in_bytes(), 7);
  EXPECT_EQ(report.devices(1).unknown_size_count(), 0);
  std::map<v1::EdgeKind, int64_t> edges;
  for (const v1::EdgeCount& edge : report.added_control_edges()) edges[edge.kind()] = edge.count();
  EXPECT_THAT(edges,
              ElementsAre(std::pair(v1::EDGE_KIND_TRIGGER, 3), std::pair(v1::EDGE_KIND_DEADLINE, 1),
                          std::pair(v1::EDGE_KIND_PACE, 1)));
  ASSERT_EQ(report.warnings_size(), 2);
  EXPECT_EQ(report.warnings(0).code(), v1::WARNING_CODE_UNKNOWN_SIZES);
  EXPECT_THAT(report.warnings(0).message(), HasSubstr("1 of 3 swapped tensors"));
  EXPECT_EQ(report.warnings(1).code(), v1::WARNING_CODE_NO_TRIGGER);
  EXPECT_THAT(report.warnings(1).message(), HasSubstr("no trigger was found for 1 swap-in"));
  // TensorFlow's default is enough.
  EXPECT_EQ(report.advice().host_memory_variable(), "");
  EXPECT_NE(report.advice().config_proto_text(), "");
}

TEST(ReportFiguresTest, AdvisesOnHostMemoryWhereTheDefaultIsTooSmall) {
  const TestGraph graph(kTwoGpus);
  SwapPlan plan = ThreeSwaps(graph);
  plan.swaps[0].size_bytes = int64_t{40} << 30;
  v1::RewriteReport report;
  ASSERT_TRUE(ReportFigures(*graph, ClonePlan(), plan, {}, &report).ok());
  // Twice 40 GiB, and a bit.
  EXPECT_EQ(report.advice().host_memory_variable(), "TF_GPU_HOST_MEM_LIMIT_IN_MB=81921");
  EXPECT_EQ(report.advice().host_memory_variable_before_1_14(),
            "TF_CUDA_HOST_MEM_LIMIT_IN_MB=81921");
}

TEST(ReportFiguresTest, PinsHostMemoryAsOneRegionIfItsSizeIsKnown) {
  const TestGraph graph(kTwoGpus);
  const auto pinned = [&](int64_t last) {
    SwapPlan plan = ThreeSwaps(graph);
    for (PlannedSwap& swap : plan.swaps) swap.size_bytes = 1 << 30;
    plan.swaps.back().size_bytes = last;
    v1::RewriteReport report;
    EXPECT_TRUE(ReportFigures(*graph, ClonePlan(), plan, {}, &report).ok());
    return report.advice().pinned_memory_config_proto_text();
  };
  // Twice 2.5 GiB and a bit, and 1 GiB for the rest.
  EXPECT_EQ(pinned(1 << 29),
            "gpu_options { experimental { gpu_host_mem_limit_in_mb: 6145 "
            "gpu_host_mem_disallow_growth: true } }");
  EXPECT_EQ(pinned(kUnknownSize), "");
}

// A read of a variable on a CPU stays there, for any named device; so nothing is copied out, and
// TensorFlow has pinned the variable.
TEST(ReportFiguresTest, VariablesOnCpusArePinnedToo) {
  const TestGraph graph(
      "v = Placeholder() @/cpu:0 {dtype=resource}\n"
      "read = ReadVariableOp(v) {dtype=float32}\n"
      "use = Abs(read) @/gpu:0 {T=float32}\n");
  SwapPlan plan;
  PlannedSwap swap;
  swap.tensor = graph.Output("read");
  swap.size_bytes = int64_t{1} << 30;
  swap.swap_ins = {{{{graph["use"], 0}}, {graph["v"]}}};
  plan.swaps = {swap};
  const auto reported = [&](absl::optional<int64_t> variable_bytes) {
    v1::RewriteReport report;
    v1::Forecast& forecast = *report.mutable_forecast_before();
    if (variable_bytes) forecast.set_host_variable_bytes(*variable_bytes);
    EXPECT_THAT(ReportFigures(*graph, ClonePlan(), plan, {}, &report), IsOk());
    EXPECT_EQ(report.devices(0).swap_out_bytes(), 0);
    EXPECT_EQ(report.devices(0).swap_in_bytes(), int64_t{1} << 30);
    return report;
  };
  EXPECT_EQ(reported(int64_t{1} << 30).advice().host_memory_variable(), "");
  const v1::RewriteReport large = reported(int64_t{40} << 30);
  EXPECT_EQ(large.advice().host_memory_variable(), "TF_GPU_HOST_MEM_LIMIT_IN_MB=81921");
  EXPECT_THAT(large.advice().explanation(), HasSubstr("and of variables on CPUs"));
  EXPECT_EQ(reported(absl::nullopt).advice().pinned_memory_config_proto_text(), "");
}

TEST(ReportFiguresTest, NothingForAnEmptyPlan) {
  const TestGraph graph(kTwoGpus);
  v1::RewriteReport report;
  ASSERT_TRUE(ReportFigures(*graph, ClonePlan(), SwapPlan(), {}, &report).ok());
  EXPECT_EQ(report.ByteSizeLong(), 0);
}

TEST(ReportSwapsTest, NamesWhatThePlanNumbers) {
  const TestGraph graph(kTwoGpus);
  v1::RewriteReport report;
  ASSERT_THAT(ReportSwaps(*graph, ThreeSwaps(graph),
                          {{"out_a", {"in_a", "in_a_1"}}, {"out_b", {"in_b"}}, {"out_c", {"in_c"}}},
                          StopToken(), &report),
              IsOk());
  ASSERT_EQ(report.swaps_size(), 3);
  const v1::TensorSwap& a = report.swaps(0);
  EXPECT_EQ(a.tensor(), "a:0");
  EXPECT_EQ(a.swap_out(), "out_a");
  EXPECT_EQ(a.device(), "/gpu:0");
  EXPECT_EQ(a.size_bytes(), 100);
  EXPECT_THAT(a.deadline_nodes(), ElementsAre("use"));
  ASSERT_EQ(a.swap_ins_size(), 2);
  EXPECT_EQ(a.swap_ins(1).name(), "in_a_1");
  ASSERT_EQ(a.swap_ins(1).consumers_size(), 1);
  EXPECT_EQ(a.swap_ins(1).consumers(0).node(), "use");
  EXPECT_EQ(a.swap_ins(1).consumers(0).input_index(), 3);
  EXPECT_THAT(a.swap_ins(1).triggers(), ElementsAre("t"));
  EXPECT_THAT(a.swap_ins(1).pace_nodes(), ElementsAre("t"));
  EXPECT_FALSE(report.swaps(2).has_size_bytes());
  EXPECT_THAT(report.swaps(2).swap_ins(0).triggers(), IsEmpty());
}

TEST(PlanSummaryTest, SaysWhichEdgesThereAre) {
  const TestGraph graph(kTwoGpus);
  SwapPlan plan = ThreeSwaps(graph);
  EXPECT_EQ(PlanSummary(OffloadPlan(), ClonePlan(), plan, 7),
            "3 tensors will be swapped to host memory and back; 7 nodes were added");
  plan.controls = {{graph["a"], graph["use"], v1::EDGE_KIND_ORDER},
                   {graph["b"], graph["use"], v1::EDGE_KIND_SERIALIZATION},
                   {graph["c"], graph["use"], v1::EDGE_KIND_SERIALIZATION}};
  EXPECT_THAT(PlanSummary(OffloadPlan(), ClonePlan(), plan, 7),
              HasSubstr("; 2 control edges keep ops in order; 1 control edge delays an op that "
                        "would run too early"));
}

}  // namespace
}  // namespace spillway::core
