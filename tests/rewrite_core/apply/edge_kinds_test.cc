// Follows each kind of added control edge: written, reported, verified, found by a diff, and
// removed.
#include <string>
#include <vector>

#include "rewrite_core/apply/plan_writer.h"
#include "rewrite_core/apply/verifier.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/report/rewrite_report.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::TestFacts;
using testing::TestGraph;
using testing::ValueOrDie;

// `a` waits for long; `no` and `yes` are the two sides of a Switch.
constexpr char kNet[] = R"(
    x = Placeholder() {dtype=float32, shape=(4)}
    p = Placeholder() {dtype=bool, shape=()}
    a = Relu(x) {T=float32}
    b = Relu(a) {T=float32}
    c = Relu(b) {T=float32}
    d = Relu(c) {T=float32}
    early = Relu(x) {T=float32}
    last = AddN(d, a, early) {T=float32, N=3}
    switch = Switch(a, p) {T=float32}
    no = Relu(switch) {T=float32}
    yes = Relu(switch:1) {T=float32}
)";

class EdgeKindsTest : public ::testing::Test {
 protected:
  NodeId N(const char* name) const { return f_.graph[name]; }

  // a goes out; it comes back for `last` once b is done, and then c may be launched; early waits
  // for b's end, and d for early's.
  SwapPlan Plan() const {
    SwapPlan plan;
    PlannedSwap swap;
    swap.tensor = {N("a"), 0};
    swap.dtype = kDtFloat32;
    swap.swap_ins = {PlannedSwapIn{{{N("last"), 1}}, {N("b")}, {N("d")}}};
    swap.deadlines = {N("c")};
    plan.swaps = {swap};
    plan.controls = {{N("b"), N("early"), v1::EDGE_KIND_ORDER},
                     {N("early"), N("d"), v1::EDGE_KIND_SERIALIZATION}};
    return plan;
  }

  std::string Written(const SwapPlan& plan) {
    GraphEdit edit(*f_.graph);
    names_ = ValueOrDie(WritePlan(*f_.graph, plan, {}, &edit), "write");
    std::string bytes = ValueOrDie(edit.Apply({}), "apply");
    EXPECT_THAT(AddToPatch(*f_.graph, edit, {}, &patch_), testing::IsOk());
    return bytes;
  }
  absl::Status Verify(const std::string& bytes) const {
    return VerifyRewrite(*f_.graph, f_.facts.control_flow(), bytes, {}, {});
  }

  const TestFacts f_{kNet};
  std::vector<SwapNodeNames> names_;
  v1::GraphPatch patch_;
};

TEST_F(EdgeKindsTest, AllAreSoundAndTakenOutAgain) {
  const std::string bytes = Written(Plan());
  EXPECT_THAT(Verify(bytes), testing::IsOk());
  const TestGraph after = TestGraph::FromBytes(bytes);
  EXPECT_EQ(ValueOrDie(Strip(*after, {}), "strip"), f_.graph->bytes());
}

TEST_F(EdgeKindsTest, PatchAndReportTellThem) {
  Written(Plan());
  std::vector<std::string> added;
  for (const v1::AddedControl& edge : patch_.added_controls()) {
    added.push_back(
        absl::StrCat(edge.source(), " => ", edge.node(), " ", v1::EdgeKind_Name(edge.kind())));
  }
  EXPECT_THAT(
      added,
      ElementsAre("lms/swapout_a_0 => c EDGE_KIND_DEADLINE", "lms/swapin_a_0 => d EDGE_KIND_PACE",
                  "early => d EDGE_KIND_SERIALIZATION", "b => early EDGE_KIND_ORDER"));
  v1::RewriteReport report;
  ASSERT_TRUE(ReportFigures(*f_.graph, ClonePlan(), Plan(), {}, &report).ok());
  ASSERT_THAT(ReportSwaps(*f_.graph, Plan(), names_, {}, &report), testing::IsOk());
  EXPECT_THAT(report.swaps(0).deadline_nodes(), ElementsAre("c"));
  EXPECT_THAT(report.swaps(0).swap_ins(0).pace_nodes(), ElementsAre("d"));
  ASSERT_EQ(report.added_control_edges_size(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(report.added_control_edges(i).kind(), i + 1);  // In order of the enum, one each.
    EXPECT_EQ(report.added_control_edges(i).count(), 1);
  }
}

TEST_F(EdgeKindsTest, ADiffKnowsThoseOfSwapNodes) {
  const std::string bytes = Written(Plan());
  const auto diff = DiffGraphs(f_.graph->bytes(), bytes, DefaultLimits(), {});
  ASSERT_THAT(diff, testing::IsOk());
  std::vector<std::string> added;
  for (const v1::ControlChange& change : diff->controls_added()) {
    added.push_back(absl::StrCat(change.control(), " => ", change.node(), " ",
                                 v1::EdgeKind_Name(change.kind())));
  }
  // For an edge between two original nodes, the bytes do not show its kind.
  EXPECT_THAT(added, ::testing::UnorderedElementsAre("lms/swapout_a_0 => c EDGE_KIND_DEADLINE",
                                                     "lms/swapin_a_0 => d EDGE_KIND_PACE",
                                                     "early => d EDGE_KIND_UNSPECIFIED",
                                                     "b => early EDGE_KIND_UNSPECIFIED"));
}

// A pace edge makes its node wait for everything that the swap-in waits for.
TEST_F(EdgeKindsTest, AnUnsoundPaceEdgeIsRefused) {
  SwapPlan dead = Plan();
  dead.swaps[0].swap_ins[0].triggers = {N("no")};
  dead.swaps[0].swap_ins[0].consumers = {{N("last"), 1}};
  EXPECT_THAT(Verify(Written(dead)),
              testing::FailsWith(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED,
                                 "may be dead while it is not"));
  SwapPlan cycle = Plan();
  cycle.swaps[0].swap_ins[0].paces = {N("b")};
  EXPECT_THAT(
      Verify(Written(cycle)),
      testing::FailsWith(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED, "acyclic"));
}

}  // namespace
}  // namespace spillway::core
