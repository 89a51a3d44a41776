#include "rewrite_core/apply/plan_writer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/node_writer.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/text_form.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::PrintNode;
using testing::TestGraph;

PlannedSwap Swap(Tensor tensor, std::vector<PlannedSwapIn> swap_ins, DataType dtype = kDtFloat32) {
  PlannedSwap swap;
  swap.tensor = tensor;
  swap.dtype = dtype;
  swap.swap_ins = std::move(swap_ins);
  return swap;
}

// The edits that WritePlan collects, one per line.
struct Written {
  std::vector<SwapNodeNames> names;
  std::vector<std::string> nodes;     // name = op(inputs) @device T
  std::vector<std::string> rewires;   // node[index] = spelling
  std::vector<std::string> controls;  // source => node
};

Written Write(const TestGraph& graph, const SwapPlan& plan) {
  GraphEdit edit(*graph);
  Written written;
  written.names = testing::ValueOrDie(WritePlan(*graph, plan, {}, &edit), "write");
  for (WireReader nodes(edit.new_nodes()); nodes.Next();) {
    const NodeSpec node = ReadNode(nodes.bytes());
    std::map<std::string, std::string> attrs(node.attrs.begin(), node.attrs.end());
    EXPECT_EQ(attrs["_grappler_do_not_remove"], BoolAttr(true)) << node.name;
    EXPECT_EQ(attrs.count("_spillway_undo"), 1u) << node.name;
    EXPECT_EQ(attrs.size(), 3u) << node.name;
    written.nodes.push_back(absl::StrCat(node.name, " = ", node.op, "(",
                                         absl::StrJoin(node.inputs, ", "), ") @", node.device, " ",
                                         DataTypeName(AttrType(attrs["T"]))));
  }
  for (const GraphEdit::Rewire& r : edit.rewires()) {
    written.rewires.push_back(absl::StrCat(graph->name(r.node), "[", r.index, "] = ", r.spelling));
  }
  for (const GraphEdit::Control& c : edit.controls()) {
    written.controls.push_back(absl::StrCat(c.source, " => ", graph->name(c.node)));
  }
  // The collected edits must be applicable.
  EXPECT_THAT(edit.Apply(StopToken()), testing::IsOk());
  return written;
}

constexpr char kGraph[] = R"(
    scope/a = Split(x, x) @/job:w/task:1/device:GPU:2 {T=float32, num_split=2}
    x = Placeholder() {dtype=float32}
    b = Relu(scope/a) @/gpu:0 {T=float32}
    c = AddV2(b, scope/a:1) {T=float32}
    d = AddV2(c, b) {T=float32}
)";

TEST(PlanWriterTest, NamesAreThoseOfTheTensor) {
  const TestGraph g(kGraph);
  SwapPlan plan;
  plan.swaps = {Swap({g.Node("scope/a"), 1}, {PlannedSwapIn{{{g.Node("c"), 1}}, {g.Node("b")}}}),
                Swap({g.Node("b"), 0}, {PlannedSwapIn{{{g.Node("d"), 1}}, {}}})};
  const Written w = Write(g, plan);
  ASSERT_EQ(w.names.size(), 2u);
  EXPECT_EQ(w.names[0].swap_out, "lms/swapout_scope_a_1");
  EXPECT_THAT(w.names[0].swap_ins, ElementsAre("lms/swapin_scope_a_1"));
  EXPECT_THAT(w.nodes,
              ElementsAre(
                  // On the CPU beside the producer; a nonzero port is spelled out.
                  "lms/swapout_scope_a_1 = Identity(scope/a:1) @/job:w/task:1/device:CPU:0 float32",
                  "lms/swapin_scope_a_1 = Identity(lms/swapout_scope_a_1, ^b) "
                  "@/job:w/task:1/device:CPU:0 float32",
                  "lms/swapout_b_0 = Identity(b) @/device:CPU:0 float32",
                  "lms/swapin_b_0 = Identity(lms/swapout_b_0) @/device:CPU:0 float32"));
  EXPECT_THAT(w.rewires, ElementsAre("c[1] = lms/swapin_scope_a_1", "d[1] = lms/swapin_b_0"));
  EXPECT_THAT(w.controls, ElementsAre());
}

TEST(PlanWriterTest, EachGroupHasItsSwapIn) {
  const TestGraph g(kGraph);
  SwapPlan plan;
  plan.swaps = {Swap({g.Node("b"), 0},
                     {PlannedSwapIn{{{g.Node("c"), 0}}, {g.Node("x")}},
                      PlannedSwapIn{{{g.Node("d"), 1}}, {g.Node("c")}}},
                     static_cast<DataType>(19))};
  const Written w = Write(g, plan);
  EXPECT_THAT(w.names[0].swap_ins, ElementsAre("lms/swapin_b_0", "lms/swapin_b_0_1"));
  EXPECT_THAT(w.nodes,
              ElementsAre("lms/swapout_b_0 = Identity(b) @/device:CPU:0 float16",
                          "lms/swapin_b_0 = Identity(lms/swapout_b_0, ^x) @/device:CPU:0 float16",
                          "lms/swapin_b_0_1 = Identity(lms/swapout_b_0, ^c) @/device:CPU:0 "
                          "float16"));
  EXPECT_THAT(w.rewires, ElementsAre("c[0] = lms/swapin_b_0", "d[1] = lms/swapin_b_0_1"));
}

TEST(PlanWriterTest, AGroupOfSeveralSharesOne) {
  const TestGraph g(kGraph);
  SwapPlan plan;
  plan.swaps = {Swap({g.Node("b"), 0}, {PlannedSwapIn{{{g.Node("c"), 0}, {g.Node("d"), 1}}, {}}})};
  const Written w = Write(g, plan);
  EXPECT_EQ(w.nodes.size(), 2u);
  EXPECT_THAT(w.rewires, ElementsAre("c[0] = lms/swapin_b_0", "d[1] = lms/swapin_b_0"));
}

TEST(PlanWriterTest, NamesThatAreTakenAreNumbered) {
  const TestGraph g(R"(
      a/b = Placeholder() {dtype=float32}
      a_b = Placeholder() {dtype=float32}
      c = AddV2(a/b, a_b) {T=float32}
      lms/swapin_a_b_0 = Const() {dtype=float32}
      lms/swapin_a_b_0_1 = Const() {dtype=float32}
  )");
  // Both tensors have the stem a_b_0.
  SwapPlan plan;
  plan.swaps = {Swap({g.Node("a/b"), 0}, {PlannedSwapIn{{{g.Node("c"), 0}}, {}}}),
                Swap({g.Node("a_b"), 0}, {PlannedSwapIn{{{g.Node("c"), 1}}, {}}})};
  const Written w = Write(g, plan);
  EXPECT_EQ(w.names[0].swap_out, "lms/swapout_a_b_0");
  EXPECT_EQ(w.names[1].swap_out, "lms/swapout_a_b_0_1");
  EXPECT_THAT(w.names[0].swap_ins, ElementsAre("lms/swapin_a_b_0_2"));
  EXPECT_THAT(w.names[1].swap_ins, ElementsAre("lms/swapin_a_b_0_3"));
}

TEST(PlanWriterTest, CpuDeviceGoesBeforeTheProducersHost) {
  const TestGraph g(kGraph);
  SwapPlan plan;
  plan.cpu_device = "/job:host/cpu:1";
  plan.swaps = {Swap({g.Node("scope/a"), 0}, {PlannedSwapIn{{{g.Node("b"), 0}}, {}}})};
  EXPECT_THAT(Write(g, plan).nodes,
              ElementsAre("lms/swapout_scope_a_0 = Identity(scope/a) @/job:host/cpu:1 float32",
                          "lms/swapin_scope_a_0 = Identity(lms/swapout_scope_a_0) "
                          "@/job:host/cpu:1 float32"));
}

TEST(PlanWriterTest, ControlEdgesAreAddedOnce) {
  const TestGraph g("a = NoOp()\nb = NoOp(^a)\nc = NoOp()");
  SwapPlan plan;
  plan.controls = {{g.Node("a"), g.Node("c")}, {g.Node("a"), g.Node("b")}};
  const Written w = Write(g, plan);
  EXPECT_THAT(w.controls, ElementsAre("a => c"));  // b has it already.
  EXPECT_THAT(w.nodes, ElementsAre());
}

TEST(PlanWriterTest, AnEmptyPlanEditsNothing) {
  const TestGraph g(kGraph);
  GraphEdit edit(*g);
  EXPECT_TRUE(WritePlan(*g, SwapPlan(), {}, &edit)->empty());
  EXPECT_EQ(testing::ValueOrDie(edit.Apply(StopToken()), "apply"), g->bytes());
}

TEST(PlanWriterTest, EditsCarryTheirUndoRecord) {
  const TestGraph g(kGraph);
  SwapPlan plan;
  plan.swaps = {Swap({g.Node("scope/a"), 1}, {PlannedSwapIn{{{g.Node("c"), 1}}, {g.Node("b")}}})};
  GraphEdit edit(*g);
  ASSERT_THAT(WritePlan(*g, plan, {}, &edit), testing::IsOk());
  const TestGraph after =
      TestGraph::FromBytes(testing::ValueOrDie(edit.Apply(StopToken()), "apply"));
  EXPECT_EQ(PrintNode(*after, after.Node("c")),
            "c = AddV2(b, lms/swapin_scope_a_1) {T=float32, _spillway_undo=[\"1=scope/a:1\"]}");
  EXPECT_EQ(PrintNode(*after, after.Node("lms/swapout_scope_a_1")),
            "lms/swapout_scope_a_1 = Identity(scope/a:1) @/job:w/task:1/device:CPU:0 {T=float32, "
            "_grappler_do_not_remove=true, _spillway_undo=[\"added\"]}");
  EXPECT_FALSE(after->has_undo(after.Node("d")));
}

}  // namespace
}  // namespace spillway::core
