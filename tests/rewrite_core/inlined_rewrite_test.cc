// Rewrites of graphs with tensors in function bodies: inlined, swapped, and stripped.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/apply/inlining_verifier.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/inline/inline_calls.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/function_graph.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/recorded_v1.h"

namespace spillway::core {
namespace {

using ::spillway::testing::FailsWith;
using ::spillway::testing::Function;
using ::spillway::testing::FunctionDef;
using ::spillway::testing::GraphDef;
using ::spillway::testing::GraphWithFunctions;
using ::spillway::testing::IsInternal;
using ::spillway::testing::IsInvalid;
using ::spillway::testing::IsOk;
using ::spillway::testing::NodeDef;
using ::spillway::testing::ReadProto;
using ::spillway::testing::TestGraph;
using ::spillway::testing::ValueOrDie;
using ::spillway::testing::WriteProto;
using ::testing::HasSubstr;
using ::testing::Not;

// The last node, ten nodes later, reads the output of the first one.
FunctionDef Chain(const std::string& name, const std::string& device = "") {
  std::string body = absl::StrCat("n0 = Relu(x)", device, " {T=float32}\n");
  std::string last = "n0:activations:0";
  for (int i = 1; i <= 10; ++i) {
    absl::StrAppend(&body, "n", i, " = Neg(", last, ")", device, " {T=float32}\n");
    last = absl::StrCat("n", i, ":y:0");
  }
  absl::StrAppend(&body, "end = Mul(", last, ", n0:activations:0)", device, " {T=float32}");
  return Function(name, "x:float32", "y:float32", body, {"y=end:z:0"});
}

std::string ChainGraph() {
  return GraphWithFunctions(R"(
a = Placeholder() {dtype=float32, shape=(1000,1000)}
c = PartitionedCall(a) {Tin=[float32], Tout=[float32], f="chain"}
b = Neg(c) {T=float32}
)",
                            {Chain("chain")});
}

v1::RewriteOptions Level(v1::InlineCalls inline_calls = v1::INLINE_CALLS_UNSPECIFIED) {
  v1::RewriteOptions options;
  v1::LevelStrategy& level = *options.mutable_level();
  level.set_swapout_threshold(2);
  level.set_swapin_ahead(1);
  level.set_swapin_groupby(0);
  options.set_inline_calls(inline_calls);
  return options;
}

absl::StatusOr<v1::RewriteResponse> TryRewrite(const std::string& bytes,
                                               const v1::RewriteOptions& options,
                                               const v1::Limits& limits = DefaultLimits()) {
  return Rewrite(bytes, options, limits, StopToken());
}

v1::RewriteResponse Rewritten(const std::string& bytes, const v1::RewriteOptions& options) {
  return ValueOrDie(TryRewrite(bytes, options), "rewrite");
}

std::string Stripped(const std::string& bytes) {
  v1::RewriteOptions options;
  options.mutable_strip();
  return Rewritten(bytes, options).graph_def();
}

TEST(InlinedRewrite, SwapsInABodyAndBack) {
  const std::string bytes = ChainGraph();
  const v1::RewriteResponse response = Rewritten(bytes, Level());
  EXPECT_EQ(response.report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(response.report().inlining().inlined_call_count(), 1);
  EXPECT_EQ(response.report().node_count_before(), 3);
  ASSERT_EQ(response.report().swaps_size(), 1);
  EXPECT_EQ(response.report().swaps(0).tensor(), "c/n0:0");
  EXPECT_THAT(response.report().warnings(),
              Not(::testing::Contains(
                  ::testing::Property(&v1::Warning::code, v1::WARNING_CODE_FUNCTION_BODIES))));
  const TestGraph after = TestGraph::FromBytes(response.graph_def());
  EXPECT_EQ(after->op(after["c"]), "IdentityN");
  EXPECT_EQ(after->num_nodes(), response.report().node_count_after());
  EXPECT_EQ(Stripped(response.graph_def()), bytes);
  EXPECT_EQ(Rewritten(bytes, Level()).graph_def(), response.graph_def());
}

// As in training graphs: the gradient's If reads tensors from the branches of the first one.
std::string BranchGraph(
    const std::string& op = "If",
    const std::string& attrs = "Tcond=bool, then_branch=\"chain\", else_branch=\"short\"") {
  return GraphWithFunctions(
      absl::StrCat(R"(
a = Placeholder() {dtype=float32, shape=(1000,1000)}
p = Placeholder() {dtype=)",
                   op == "If" ? "bool" : "int32", R"(, shape=()}
c = )",
                   op, R"((p, a) {Tin=[float32], Tout=[float32], _lower_using_switch_merge=true, )",
                   attrs, R"(}
b = Neg(c) {T=float32}
)"),
      {Chain("chain"),
       Function("short", "x:float32", "y:float32", "r = Neg(x) {T=float32}", {"y=r:y:0"})});
}

TEST(InlinedRewrite, SwapsInABranchAndBack) {
  for (const std::string& bytes :
       {BranchGraph(), BranchGraph("Case", "branches=[\"chain\", \"short\", \"chain\"]")}) {
    const v1::RewriteOptions options = Level(v1::INLINE_CALLS_ALWAYS);
    const v1::RewriteResponse response = Rewritten(bytes, options);
    EXPECT_EQ(response.report().outcome(), v1::OUTCOME_REWRITTEN);
    EXPECT_EQ(response.report().inlining().kept_call_count(), 0);
    ASSERT_GE(response.report().swaps_size(), 1);
    EXPECT_THAT(response.report().swaps(), ::testing::Contains(::testing::Property(
                                               &v1::TensorSwap::tensor, HasSubstr("/n0:0"))));
    const TestGraph after = TestGraph::FromBytes(response.graph_def());
    EXPECT_EQ(after->op(after["c"]), "IdentityN");
    EXPECT_EQ(Stripped(response.graph_def()), bytes);
    EXPECT_EQ(Rewritten(response.graph_def(), options).graph_def(), response.graph_def());
  }
}

// Tensors outside the loop may be swapped, and its memory counts.
TEST(InlinedRewrite, ALoopIsLowered) {
  const std::string bytes = GraphWithFunctions(
      R"(
a = Placeholder() {dtype=float32, shape=(1000,1000)}
h = Relu(a) {T=float32}
w = While(h) {T=[float32], cond="more", body="chain", _lower_using_switch_merge=true, output_shapes=[]}
b = Neg(w) {T=float32}
c = Mul(b, h) {T=float32}
)",
      {Chain("chain"),
       Function("more", "x:float32", "y:bool", "k = Const() {dtype=bool}", {"y=k:output:0"})});
  const v1::RewriteResponse response = Rewritten(bytes, Level());
  EXPECT_EQ(response.report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(response.report().inlining().kept_call_count(), 0);
  ASSERT_EQ(response.report().swaps_size(), 1);
  EXPECT_EQ(response.report().swaps(0).tensor(), "h:0");
  const TestGraph after = TestGraph::FromBytes(response.graph_def());
  EXPECT_EQ(after->op(after["w"]), "IdentityN");
  EXPECT_EQ(Stripped(response.graph_def()), bytes);
}

// In scope's order ops behind a loop are on the levels of its body. TFLMS v1, which inlines
// nothing, swaps 21 tensors of known size there, 106 MiB; here, tensors that only a While reads
// late stay.
TEST(InlinedRewrite, ScopeKeepsALoopIfItThenSwapsMore) {
  const std::string bytes = testing::ReadTestGraph("lstm_while_v2/graph.pb");
  v1::RewriteOptions options;
  options.mutable_scope()->set_lb(1);
  for (const std::string& scope : testing::OptimizerScopes("lstm_while_v2")) {
    options.mutable_scope()->add_optimizer_scopes(scope);
  }
  options.mutable_step()->set_batch_size(128);
  constexpr int64_t kMib = 1 << 20;
  const auto warning = [](const v1::RewriteResponse& response, v1::WarningCode code) {
    for (const v1::Warning& w : response.report().warnings()) {
      if (w.code() == code) return w.message();
    }
    return std::string();
  };

  const v1::RewriteResponse kept = Rewritten(bytes, options);
  ASSERT_EQ(kept.report().devices_size(), 1);
  EXPECT_GE(kept.report().devices(0).swap_out_bytes(), 97 * kMib);
  EXPECT_LE(kept.report().devices(0).swap_out_bytes(), 107 * kMib);
  EXPECT_FALSE(kept.report().has_inlining());
  EXPECT_THAT(warning(kept, v1::WARNING_CODE_FUNCTION_BODIES),
              HasSubstr("with their calls inlined (inline_calls = ALWAYS), only"));
  EXPECT_EQ(warning(kept, v1::WARNING_CODE_LITTLE_SWAPPED), "");
  EXPECT_EQ(Stripped(kept.graph_def()), bytes);
  EXPECT_EQ(Rewritten(kept.graph_def(), options).report().outcome(), v1::OUTCOME_KEPT);
  options.set_inline_calls(v1::INLINE_CALLS_NEVER);
  EXPECT_EQ(Rewritten(bytes, options).graph_def(), kept.graph_def());

  options.set_inline_calls(v1::INLINE_CALLS_ALWAYS);
  const v1::RewriteResponse inlined = Rewritten(bytes, options);
  EXPECT_GT(inlined.report().inlining().inlined_call_count(), 0);
  ASSERT_EQ(inlined.report().devices_size(), 1);
  EXPECT_LT(inlined.report().devices(0).swap_out_bytes(), kMib);
  EXPECT_THAT(warning(inlined, v1::WARNING_CODE_LITTLE_SWAPPED),
              HasSubstr("are swapped: the ops of the backward part that read 1"));
}

// A function may name a node of the graph in which it was once made; TensorFlow's importer refuses
// a graph that names a missing node. Nodes colocated with the same name stay together.
TEST(InlinedRewrite, ColocationWithANodeThatIsNowhere) {
  const std::string bytes = GraphWithFunctions(
      R"(
a = Placeholder() {dtype=float32, shape=(1000,1000)}
f = PartitionedCall(a) {Tin=[float32], Tout=[float32], f="beside"}
g = PartitionedCall(f) {Tin=[float32], Tout=[float32], f="beside"}
b = Neg(g) {T=float32}
)",
      {Function("beside", "x:float32", "y:float32",
                "p = Relu(x) {T=float32, _class=[\"loc:@gone\"]}\n"
                "q = Relu(p:activations:0) {T=float32, _class=[\"loc:@p\", \"loc:@gone\"]}",
                {"y=q:activations:0"})});
  v1::RewriteOptions options = Level(v1::INLINE_CALLS_ALWAYS);
  const GraphDef after = ReadProto(Rewritten(bytes, options).graph_def());
  const auto with = [&after](absl::string_view name) {
    for (const NodeDef& node : after.node()) {
      if (node.name() != name) continue;
      const auto found = node.attr().find("_class");
      if (found == node.attr().end()) return std::string("nobody");
      return absl::StrJoin(found->second.list().s(), " ");
    }
    return std::string("not there");
  };
  EXPECT_EQ(with("f/p"), "nobody");
  EXPECT_EQ(with("f/q"), "loc:@f/p loc:@f/p");
  EXPECT_EQ(with("g/p"), "loc:@f/p");
  EXPECT_EQ(with("g/q"), "loc:@g/p loc:@f/p");
}

TEST(InlinedRewrite, NeverLeavesTheCall) {
  const v1::RewriteResponse response = Rewritten(ChainGraph(), Level(v1::INLINE_CALLS_NEVER));
  EXPECT_EQ(response.report().outcome(), v1::OUTCOME_NOTHING_TO_DO);
  EXPECT_FALSE(response.report().has_inlining());
  EXPECT_EQ(response.graph_def(), ChainGraph());
}

TEST(InlinedRewrite, WithoutASwapTheGraphIsAsItCame) {
  v1::RewriteOptions options = Level();
  options.mutable_level()->set_swapout_threshold(1000);
  EXPECT_EQ(Rewritten(ChainGraph(), options).graph_def(), ChainGraph());
  EXPECT_EQ(Rewritten(ChainGraph(), options).report().outcome(), v1::OUTCOME_NOTHING_TO_DO);
  options.set_inline_calls(v1::INLINE_CALLS_ALWAYS);
  const v1::RewriteResponse always = Rewritten(ChainGraph(), options);
  EXPECT_EQ(always.report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_NE(TestGraph::FromBytes(always.graph_def())->Find("c/end"), kNoNode);
  EXPECT_EQ(Stripped(always.graph_def()), ChainGraph());
}

TEST(InlinedRewrite, APatchIsForAGraphThatKeepsItsCalls) {
  v1::RewriteOptions options = Level();
  options.add_outputs(v1::OUTPUT_PATCH);
  EXPECT_EQ(Rewritten(ChainGraph(), options).patch().new_nodes_size(), 0);
  options.set_inline_calls(v1::INLINE_CALLS_ALWAYS);
  EXPECT_THAT(TryRewrite(ChainGraph(), options),
              IsInvalid(v1::ERROR_REASON_CONFLICTING_OPTIONS, "inline_calls"));
}

TEST(InlinedRewrite, AlreadyRewritten) {
  const v1::RewriteResponse first = Rewritten(ChainGraph(), Level());
  const v1::RewriteResponse kept = Rewritten(first.graph_def(), Level());
  EXPECT_EQ(kept.report().outcome(), v1::OUTCOME_KEPT);
  EXPECT_EQ(kept.graph_def(), first.graph_def());
  v1::RewriteOptions replan = Level();
  replan.set_already_rewritten(v1::ALREADY_REWRITTEN_REPLAN);
  EXPECT_EQ(Rewritten(first.graph_def(), replan).graph_def(), first.graph_def());
  replan.set_inline_calls(v1::INLINE_CALLS_NEVER);
  EXPECT_EQ(Rewritten(first.graph_def(), replan).graph_def(), ChainGraph());
}

// Rewriting the GPUs one after the other gives the same result as both together.
TEST(InlinedRewrite, OneDeviceAfterAnother) {
  const std::string bytes =
      GraphWithFunctions(R"(
a = Placeholder() {dtype=float32, shape=(1000,1000)}
c = PartitionedCall(a) {Tin=[float32], Tout=[float32], f="f0"}
d = PartitionedCall(a) {Tin=[float32], Tout=[float32], f="f1"}
b = AddN(c, d) @/gpu:0 {T=float32, N=2}
)",
                         {Chain("f0", " @/device:GPU:0"), Chain("f1", " @/device:GPU:1")});
  v1::RewriteOptions first = Level(), second = Level();
  first.add_devices("/device:GPU:0");
  second.add_devices("/device:GPU:1");
  const v1::RewriteResponse one = Rewritten(bytes, first);
  EXPECT_EQ(one.report().swaps_size(), 1);
  const v1::RewriteResponse two = Rewritten(one.graph_def(), second);
  EXPECT_EQ(two.report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(two.report().swaps_size(), 1);
  EXPECT_EQ(Stripped(two.graph_def()), bytes);
}

// For any device names: the verifier expects an inlined body with the devices of inlining.
TEST(InlinedRewrite, DevicesThatAreNone) {
  const std::vector<std::string> devices = {"/gpu:0",
                                            "/DEVICE:GPU:0",
                                            "/GPU:0/",
                                            "GPU:0",
                                            "x",
                                            "/",
                                            "//",
                                            "/job:a/job:b",
                                            "/device:GPU:*",
                                            "/device:*",
                                            "/job:*/gpu:00",
                                            "/device:GPU:99999999999",
                                            "/cpu:0"};
  for (const std::string& inner : devices) {
    for (const std::string& outer : devices) {
      SCOPED_TRACE(absl::StrCat(inner, " called on ", outer));
      const std::string at = absl::StrCat(" @", outer);
      const std::string bytes = GraphWithFunctions(
          absl::StrCat("a = Placeholder() @/gpu:0 {dtype=float32, shape=(1000,1000)}\n",
                       "i = Placeholder() @/gpu:0 {dtype=int32, shape=()}\n",
                       "c = PartitionedCall(a)", at, " {Tin=[float32], Tout=[float32], f=\"f\"}\n",
                       "d = Case(i, c)", at,
                       " {Tin=[float32], Tout=[float32], branches=[\"f\", \"f\"], "
                       "_lower_using_switch_merge=true}\n",
                       "b = AddN(d, a) @/gpu:0 {T=float32, N=2}\n"),
          {Chain("f", absl::StrCat(" @", inner))});
      v1::RewriteOptions options = Level();
      for (v1::InlineCalls inlining : {v1::INLINE_CALLS_AUTO, v1::INLINE_CALLS_ALWAYS}) {
        options.set_inline_calls(inlining);
        EXPECT_THAT(TryRewrite(bytes, options), IsOk());
      }
    }
  }
}

TEST(InlinedRewrite, APlanIsAppliedToTheInlinedGraph) {
  v1::RewriteOptions options = Level();
  options.add_outputs(v1::OUTPUT_GRAPH);
  options.add_outputs(v1::OUTPUT_PLAN);
  const v1::RewriteResponse made = Rewritten(ChainGraph(), options);
  EXPECT_TRUE(made.plan().calls_inlined());
  v1::RewriteOptions apply;
  apply.mutable_apply()->set_plan(made.plan().SerializeAsString());
  EXPECT_EQ(Rewritten(ChainGraph(), apply).graph_def(), made.graph_def());
  // From another process: the same graph in other bytes.
  const std::string backward = spillway::testing::WriteProtoBackward(ReadProto(ChainGraph()));
  EXPECT_EQ(Rewritten(backward, apply).report().swaps_size(), 1);
  apply.set_inline_calls(v1::INLINE_CALLS_AUTO);
  EXPECT_THAT(TryRewrite(ChainGraph(), apply),
              IsInvalid(v1::ERROR_REASON_CONFLICTING_OPTIONS, "inline_calls"));
}

TEST(InlinedRewrite, TooLargeToInline) {
  v1::Limits limits = DefaultLimits();
  limits.set_max_node_count(10);
  const auto always = TryRewrite(ChainGraph(), Level(v1::INLINE_CALLS_ALWAYS), limits);
  EXPECT_THAT(always, FailsWith(absl::StatusCode::kResourceExhausted,
                                v1::ERROR_REASON_LIMIT_EXCEEDED, "'c'"));
  const auto automatic = TryRewrite(ChainGraph(), Level(), limits);
  ASSERT_THAT(automatic, IsOk());
  EXPECT_EQ(automatic->graph_def(), ChainGraph());
  EXPECT_EQ(automatic->report().inlining().kept_calls(0).reason(), v1::KEPT_CALL_REASON_TOO_LARGE);
}

TEST(InlinedRewrite, ForecastsLookThroughCalls) {
  const std::string bytes = ChainGraph();
  const v1::SimulateReport report =
      ValueOrDie(SimulateGraph(bytes, {}, DefaultLimits(), StopToken()), "simulate");
  EXPECT_EQ(report.inlining().inlined_call_count(), 1);
  EXPECT_EQ(report.forecast().fit(), v1::FIT_FITS);
  // The first node's output and that of the next, whose buffer all others take over: 4 MB each.
  ASSERT_EQ(report.forecast().devices_size(), 1);
  EXPECT_EQ(report.forecast().devices(0).peak_bytes(), 2 * 4'000'000);
  // A kept call takes these two, and holds its argument and its result meanwhile.
  GraphDef graph = ReadProto(bytes);
  testing::FunctionDef& function = *graph.mutable_library()->mutable_function(0);
  (*function.mutable_attr())["_noinline"].set_b(true);
  const v1::SimulateReport kept =
      ValueOrDie(SimulateGraph(WriteProto(graph), {}, DefaultLimits(), StopToken()), "simulate");
  EXPECT_EQ(kept.inlining().kept_call_count(), 1);
  EXPECT_EQ(kept.forecast().fit(), v1::FIT_FITS);
  EXPECT_EQ(kept.forecast().devices(0).peak_bytes(), 4 * 4'000'000);
  // With a variable of its own, its memory is unknown.
  NodeDef& variable = *function.add_node_def();
  variable.set_name("v");
  variable.set_op("VarHandleOp");
  (*variable.mutable_attr())["dtype"].set_type(1);
  const v1::SimulateReport unknown =
      ValueOrDie(SimulateGraph(WriteProto(graph), {}, DefaultLimits(), StopToken()), "simulate");
  EXPECT_EQ(unknown.forecast().fit(), v1::FIT_UNKNOWN);
  EXPECT_EQ(unknown.inlining().kept_calls(0).reason(), v1::KEPT_CALL_REASON_NOINLINE);
  EXPECT_THAT(unknown.forecast().fit_unknown(0).message(), HasSubstr("_noinline"));
}

// ---- The verifier refuses graphs other than the inlined graph ----

// Two calls, one nested, with control edges, several results and an update.
std::string CheckedGraph() {
  const FunctionDef inner =
      Function("inner", "x:float32 v:resource", "p:float32 q:float32",
               "k = Const() {dtype=float32}\n"
               "s = Sub(x, k:output:0) @/device:GPU:1 {T=float32, _class=[\"loc:@k\"]}\n"
               "up = AssignVariableOp(v, s:z:0) {dtype=float32}",
               {"p=s:z:0", "q=x"}, {"up"});
  const FunctionDef outer =
      Function("outer", "x:float32 v:resource", "y:float32",
               "n = StatefulPartitionedCall(x, v) {Tin=[float32, resource], Tout=[float32, "
               "float32], f=\"inner\"}\n"
               "d = Div(n:output:0, n:output:1) {T=float32}\n"
               "e = Neg(d:z:0, ^n) {T=float32}",
               {"y=e:y:0"}, {"n", "e"});
  return GraphWithFunctions(R"(
a = Placeholder() {dtype=float32, shape=(10)}
v = VarHandleOp() {dtype=float32, shape=(10)}
w = NoOp()
c = StatefulPartitionedCall(a, v, ^w) {Tin=[float32, resource], Tout=[float32], f="outer"}
b = Neg(c) {T=float32}
done = NoOp(^b, ^c)
)",
                            {inner, outer});
}

absl::Status Verify(const std::string& before, const std::string& after) {
  const TestGraph original = TestGraph::FromBytes(before);
  const TestGraph inlined = TestGraph::FromBytes(after);
  return VerifyInlining(*original, *inlined, StopToken());
}

TEST(InliningVerifier, AcceptsBothKindsOfBorders) {
  const std::string bytes = CheckedGraph();
  const TestGraph graph = TestGraph::FromBytes(bytes);
  for (const Borders borders : {Borders::kDirect, Borders::kIdentities}) {
    const InlinedCalls inlined =
        ValueOrDie(InlineCalls(*graph, {}, DefaultLimits(), StopToken(), borders), "inline");
    EXPECT_EQ(inlined.summary.inlined_call_count(), 2);
    EXPECT_THAT(Verify(bytes, inlined.graph_def), IsOk());
  }
}

// An If in a branch of another one, with two results, a resource and a node that waits for it.
std::string CheckedBranches() {
  const FunctionDef inner_then = Function("inner_then", "x:float32 v:resource", "p:float32",
                                          "k = Neg(x) {T=float32}", {"p=k:y:0"});
  const FunctionDef inner_else =
      Function("inner_else", "x:float32 v:resource", "p:float32",
               "up = AssignVariableOp(v, x) {dtype=float32}\nk = Const(^up) {dtype=float32}",
               {"p=k:output:0"}, {"up"});
  const FunctionDef outer_then =
      Function("outer_then", "x:float32 v:resource p:bool", "y:float32 z:float32",
               "n = If(p, x, v) {Tcond=bool, Tin=[float32, resource], Tout=[float32], "
               "then_branch=\"inner_then\", else_branch=\"inner_else\", "
               "_lower_using_switch_merge=true}\nm = Exp(n:output:0) {T=float32}",
               {"y=m:y:0", "z=n:output:0"}, {"n"});
  const FunctionDef outer_else =
      Function("outer_else", "x:float32 v:resource p:bool", "y:float32 z:float32",
               "q = Sqrt(x) {T=float32}", {"y=q:y:0", "z=x"});
  return GraphWithFunctions(R"(
a = Placeholder() {dtype=float32, shape=(10)}
v = VarHandleOp() {dtype=float32, shape=(10)}
p = Placeholder() {dtype=bool, shape=()}
w = NoOp()
c = If(p, a, v, p, ^w) {Tcond=bool, Tin=[float32, resource, bool], Tout=[float32, float32], then_branch="outer_then", else_branch="outer_else", _lower_using_switch_merge=true}
b = Neg(c) {T=float32}
d = Neg(c:1) {T=float32}
done = NoOp(^b, ^c)
)",
                            {inner_then, inner_else, outer_then, outer_else});
}

// A While in the body of another one, with two variables, a resource and a node that waits for it.
std::string CheckedLoops() {
  const std::string takes = "x:float32 v:resource y:float32";
  const FunctionDef more = Function("more", takes, "go:bool",
                                    "k = Const() {dtype=float32}\n"
                                    "l = Less(x, k:output:0) {T=float32}",
                                    {"go=l:z:0"});
  const FunctionDef inner =
      Function("inner", takes, "x2:float32 v2:resource y2:float32",
               "up = AssignVariableOp(v, x) {dtype=float32}\nk = Const(^up) {dtype=float32}",
               {"x2=k:output:0", "v2=v", "y2=y"}, {"up"});
  const FunctionDef outer =
      Function("outer", takes, "x2:float32 v2:resource y2:float32",
               "n = While(x, v, y) {T=[float32, resource, float32], cond=\"more\", "
               "body=\"inner\", _lower_using_switch_merge=true, parallel_iterations=3}\n"
               "m = Exp(n:output:0) {T=float32}",
               {"x2=m:y:0", "v2=n:output:1", "y2=n:output:2"}, {"n"});
  return GraphWithFunctions(R"(
a = Placeholder() {dtype=float32, shape=(10)}
v = VarHandleOp() {dtype=float32, shape=(10)}
w = NoOp()
c = While(a, v, a, ^w) {T=[float32, resource, float32], cond="more", body="outer", _lower_using_switch_merge=true}
b = Neg(c) {T=float32}
d = Neg(c:2) {T=float32}
e = AssignVariableOp(c:1, b) {dtype=float32}
done = NoOp(^b, ^c)
)",
                            {more, inner, outer});
}

class InliningVerifierTest : public ::testing::TestWithParam<std::string (*)()> {};

INSTANTIATE_TEST_SUITE_P(Graphs, InliningVerifierTest,
                         ::testing::Values(&CheckedGraph, &CheckedBranches, &CheckedLoops));

// Every edit of one node of the inlined graph, for all nodes: each input, its op, device,
// attributes and record; and a missing or an additional node.
TEST_P(InliningVerifierTest, RefusesEveryEdit) {
  const std::string bytes = GetParam()();
  const TestGraph graph = TestGraph::FromBytes(bytes);
  const InlinedCalls inlined = ValueOrDie(
      InlineCalls(*graph, {}, DefaultLimits(), StopToken(), Borders::kIdentities), "inline");
  const GraphDef good = ReadProto(inlined.graph_def);
  int refused = 0;
  const auto refuses = [&](const GraphDef& bad, const std::string& what) {
    const std::string after = WriteProto(bad);
    if (!spillway::testing::ParseGraph(after).ok()) return;
    EXPECT_THAT(Verify(WriteProto(ReadProto(bytes)), after), IsInternal("verifier")) << what;
    ++refused;
  };
  EXPECT_THAT(Verify(bytes, WriteProto(good)), IsOk());
  for (int i = 0; i < good.node_size(); ++i) {
    const NodeDef& node = good.node(i);
    for (int input = 0; input < node.input_size(); ++input) {
      GraphDef bad = good;
      bad.mutable_node(i)->mutable_input()->DeleteSubrange(input, 1);
      refuses(bad, absl::StrCat(node.name(), " without input ", input));
      bad = good;
      bad.mutable_node(i)->set_input(input,
                                     absl::StartsWith(node.input(input), "^") ? "^done" : "b");
      const bool is_other = bad.node(i).input(input) != node.input(input);
      if (node.name() != "done" && is_other)
        refuses(bad, absl::StrCat(node.name(), " other ", input));
    }
    GraphDef bad = good;
    bad.mutable_node(i)->add_input("^a");
    refuses(bad, absl::StrCat(node.name(), " with another control input"));
    bad = good;
    bad.mutable_node(i)->set_op("Abs");
    refuses(bad, absl::StrCat(node.name(), " as another op"));
    if (node.attr().count("_spillway_undo") == 0) continue;
    bad = good;
    bad.mutable_node(i)->mutable_attr()->erase("_spillway_undo");
    refuses(bad, absl::StrCat(node.name(), " without its record"));
    bad = good;
    bad.mutable_node()->DeleteSubrange(i, 1);
    refuses(bad, absl::StrCat(node.name(), " gone"));
    if (absl::StartsWith(node.name(), "c/")) {
      bad = good;
      bad.mutable_node(i)->set_device("/device:GPU:7");
      refuses(bad, absl::StrCat(node.name(), " elsewhere"));
      bad = good;
      (*bad.mutable_node(i)->mutable_attr())["more"].set_i(1);
      refuses(bad, absl::StrCat(node.name(), " with another attribute"));
      bad = good;
      *bad.add_node() = node;
      bad.mutable_node(bad.node_size() - 1)->set_name("c/extra");
      refuses(bad, absl::StrCat(node.name(), " twice"));
    }
  }
  EXPECT_GT(refused, 60);
}

}  // namespace
}  // namespace spillway::core
