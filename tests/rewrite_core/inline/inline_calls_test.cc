// Inlining, compared with graphs worked out by hand from TensorFlow's rules (inline_calls.h).
// tests/tensorflow/inlining.py compares it with TensorFlow itself.
#include "rewrite_core/inline/inline_calls.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/function_graph.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/text_form.h"

namespace spillway::core {
namespace {

using ::spillway::testing::Function;
using ::spillway::testing::FunctionDef;
using ::spillway::testing::GraphBytes;
using ::spillway::testing::GraphDef;
using ::spillway::testing::GraphWithFunctions;
using ::spillway::testing::IsOk;
using ::spillway::testing::PrintGraph;
using ::spillway::testing::ReadProto;
using ::spillway::testing::TestGraph;
using ::spillway::testing::ValueOrDie;
using ::spillway::testing::WithFlag;
using ::spillway::testing::WithoutAttr;
using ::spillway::testing::WriteProto;
using ::testing::IsEmpty;
using ::testing::SizeIs;

InlinedCalls Inline(const std::string& bytes, const v1::Step& step = {},
                    const v1::Limits& limits = DefaultLimits()) {
  const TestGraph graph = TestGraph::FromBytes(bytes);
  return ValueOrDie(InlineCalls(*graph, step, limits, StopToken(), Borders::kIdentities), "inline");
}

// The nodes of a graph in the text form, without undo records and the library.
std::string Nodes(const std::string& bytes) {
  GraphDef graph = WithoutAttr(ReadProto(bytes), "_spillway_undo");
  graph.clear_library();
  return PrintGraph(*TestGraph::FromBytes(WriteProto(graph)));
}

// Returns the inlined graph, and checks that strip restores the original.
std::string Inlined(const std::string& bytes, const v1::Step& step = {}) {
  const InlinedCalls inlined = Inline(bytes, step);
  if (inlined.graph_def.empty()) return absl::StrCat("nothing\n", inlined.summary.DebugString());
  const TestGraph graph = TestGraph::FromBytes(inlined.graph_def);
  EXPECT_EQ(ValueOrDie(Strip(*graph, StopToken()), "strip"), bytes);
  EXPECT_THAT(Topology::Build(*graph, StopToken()), IsOk());
  EXPECT_EQ(inlined.summary.added_bytes(),
            static_cast<int64_t>(inlined.graph_def.size() - bytes.size()));
  return Nodes(inlined.graph_def);
}

std::string Text(const std::string& text) { return PrintGraph(*TestGraph(text)); }

// Returns the reason why the only call is kept.
v1::KeptCallReason ReasonOf(const std::string& bytes, const v1::Step& step = {},
                            const v1::Limits& limits = DefaultLimits()) {
  const InlinedCalls inlined = Inline(bytes, step, limits);
  EXPECT_THAT(inlined.graph_def, IsEmpty());
  EXPECT_THAT(inlined.summary.kept_calls(), SizeIs(1));
  EXPECT_EQ(inlined.summary.kept_call_count(), 1);
  return inlined.summary.kept_calls().empty() ? v1::KEPT_CALL_REASON_UNSPECIFIED
                                              : inlined.summary.kept_calls(0).reason();
}

FunctionDef Relu(const std::string& name = "f") {
  return Function(name, "x:float32", "y:float32", "r = Relu(x) {T=float32}", {"y=r:activations:0"});
}

constexpr char kOneCall[] = R"(
a = Placeholder() {dtype=float32}
c = PartitionedCall(a) {Tin=[float32], Tout=[float32], f="f"}
b = Neg(c) {T=float32}
)";

TEST(InlineCalls, APlainCall) {
  EXPECT_EQ(Inlined(GraphWithFunctions(kOneCall, {Relu()})), Text(R"(
a = Placeholder() {dtype=float32}
c = IdentityN(Func/c/output/_1, ^Func/c/output_control_node/_2) {T=[float32]}
b = Neg(Func/c/output/_1) {T=float32}
Func/c/input/_0 = Identity(a) {T=float32, _class=["loc:@a"]}
c/r = Relu(Func/c/input/_0) {T=float32}
Func/c/output/_1 = Identity(c/r) {T=float32, _class=["loc:@c/r"]}
Func/c/output_control_node/_2 = NoOp()
)"));
}

TEST(InlineCalls, AGraphWithoutCallsIsLeftAlone) {
  const std::string bytes = GraphBytes("a = Const() {dtype=float32}\nb = Neg(a) {T=float32}");
  const InlinedCalls inlined = Inline(bytes);
  EXPECT_THAT(inlined.graph_def, IsEmpty());
  EXPECT_EQ(inlined.summary.SerializeAsString(), "");
  EXPECT_FALSE(MayHaveCalls(*TestGraph::FromBytes(bytes)));
}

TEST(InlineCalls, AnUncalledFunctionChangesNothing) {
  const InlinedCalls inlined = Inline(GraphWithFunctions("a = Const() {dtype=float32}", {Relu()}));
  EXPECT_THAT(inlined.graph_def, IsEmpty());
  EXPECT_EQ(inlined.summary.kept_call_count(), 0);
}

// Control inputs and outputs: nodes without inputs and calls wait for the control node, others do
// not; control returns lead to the end.
TEST(InlineCalls, ControlEdges) {
  const FunctionDef f = Function("f", "x:float32 v:resource", "y:float32",
                                 "k = Const() {dtype=float32}\n"
                                 "m = Mul(x, k:output:0) {T=float32}\n"
                                 "up = AssignVariableOp(v, m:z:0) {dtype=float32}\n"
                                 "after = NoOp(^up)",
                                 {"y=m:z:0"}, {"up", "after"});
  EXPECT_EQ(Inlined(GraphWithFunctions(R"(
a = Placeholder() {dtype=float32}
v = VarHandleOp() @/gpu:1 {dtype=float32}
first = NoOp()
c = StatefulPartitionedCall(a, v, ^first) @/gpu:0 {Tin=[float32, resource], Tout=[float32], f="f"}
b = Neg(c) {T=float32}
done = NoOp(^b, ^c)
)",
                                       {f})),
            Text(R"(
a = Placeholder() {dtype=float32}
v = VarHandleOp() @/gpu:1 {dtype=float32}
first = NoOp()
c = IdentityN(Func/c/output/_3, ^Func/c/output_control_node/_4) @/gpu:0 {T=[float32]}
b = Neg(Func/c/output/_3) {T=float32}
done = NoOp(^b, ^Func/c/output_control_node/_4)
Func/c/input_control_node/_0 = NoOp(^first) @/gpu:0
Func/c/input/_1 = Identity(a, ^Func/c/input_control_node/_0) {T=float32, _class=["loc:@a"]}
Func/c/input/_2 = Identity(v, ^Func/c/input_control_node/_0) @/gpu:1 {T=resource, _class=["loc:@v"]}
c/k = Const(^Func/c/input_control_node/_0) @/gpu:0 {dtype=float32}
c/m = Mul(Func/c/input/_1, c/k) @/gpu:0 {T=float32}
c/up = AssignVariableOp(Func/c/input/_2, c/m) @/gpu:0 {dtype=float32}
c/after = NoOp(^c/up) @/gpu:0
Func/c/output/_3 = Identity(c/m) {T=float32, _class=["loc:@c/m"]}
Func/c/output_control_node/_4 = NoOp(^c/up, ^c/after) @/gpu:0
)"));
}

// A resource that arrives without a control edge: the body waits for all inputs except
// placeholders.
TEST(InlineCalls, StrictInputs) {
  const FunctionDef f = Function("f", "x:float32 y:float32 v:resource", "z:float32",
                                 "r = ReadVariableOp(v) {dtype=float32}", {"z=r:value:0"});
  EXPECT_EQ(Inlined(GraphWithFunctions(R"(
a = Placeholder() {dtype=float32}
n = Neg(a) {T=float32}
v = VarHandleOp() {dtype=float32}
c = PartitionedCall(a, n, v) {Tin=[float32, float32, resource], Tout=[float32], f="f"}
)",
                                       {f})),
            Text(R"(
a = Placeholder() {dtype=float32}
n = Neg(a) {T=float32}
v = VarHandleOp() {dtype=float32}
c = IdentityN(Func/c/output/_4, ^Func/c/output_control_node/_5) {T=[float32]}
Func/c/input_control_node/_0 = NoOp(^n, ^v)
Func/c/input/_1 = Identity(a, ^Func/c/input_control_node/_0) {T=float32, _class=["loc:@a"]}
Func/c/input/_2 = Identity(n, ^Func/c/input_control_node/_0) {T=float32, _class=["loc:@n"]}
Func/c/input/_3 = Identity(v, ^Func/c/input_control_node/_0) {T=resource, _class=["loc:@v"]}
c/r = ReadVariableOp(Func/c/input/_3) {dtype=float32}
Func/c/output/_4 = Identity(c/r) {T=float32, _class=["loc:@c/r"]}
Func/c/output_control_node/_5 = NoOp(^Func/c/input_control_node/_0)
)"));
}

// Nested calls with several outputs; a result that is an argument; names that are already used.
TEST(InlineCalls, NestedCalls) {
  const FunctionDef inner =
      Function("inner", "x:float32", "p:float32 q:float32",
               "u = Unpack(x) {T=float32, num=2, axis=0}", {"p=u:output:1", "q=x"});
  const FunctionDef outer =
      Function("outer", "x:float32", "y:float32",
               "n = PartitionedCall(x) {Tin=[float32], Tout=[float32, float32], f=\"inner\"}\n"
               "s = Add(n:output:0, n:output:1) {T=float32}",
               {"y=s:z:0"});
  EXPECT_EQ(Inlined(GraphWithFunctions(R"(
a = Placeholder() {dtype=float32}
c/s = Const() {dtype=float32}
c = PartitionedCall(a) {Tin=[float32], Tout=[float32], f="outer"}
)",
                                       {outer, inner})),
            Text(R"(
a = Placeholder() {dtype=float32}
c/s = Const() {dtype=float32}
c = IdentityN(Func/c/output/_1, ^Func/c/output_control_node/_2) {T=[float32]}
Func/c/input/_0 = Identity(a) {T=float32, _class=["loc:@a"]}
c/s_1 = Add(Func/c/n/output/_4, Func/c/n/output/_5) {T=float32}
Func/c/output/_1 = Identity(c/s_1) {T=float32, _class=["loc:@c/s_1"]}
Func/c/output_control_node/_2 = NoOp()
Func/c/n/input/_3 = Identity(Func/c/input/_0) {T=float32, _class=["loc:@Func/c/input/_0"]}
c/n/u = Unpack(Func/c/n/input/_3) {T=float32, axis=0, num=2}
Func/c/n/output/_4 = Identity(c/n/u:1) {T=float32, _class=["loc:@c/n/u"]}
Func/c/n/output/_5 = Identity(Func/c/n/input/_3) {T=float32, _class=["loc:@Func/c/n/input/_3"]}
)"));
}

// A call by name: it runs on the call's own device, and its end waits for its results.
TEST(InlineCalls, ACallByName) {
  const FunctionDef f = Function("MyOp", "x:$T", "y:$T z:$T",
                                 "r = Relu(x) @/cpu:0 {T=\"$T\"}\ns = Neg(r:activations:0) "
                                 "{T=\"$T\"}",
                                 {"y=r:activations:0", "z=s:y:0"});
  EXPECT_EQ(Inlined(GraphWithFunctions(R"(
a = Placeholder() {dtype=float64}
c = MyOp(a) @/gpu:0 {T=float64}
b = Neg(c:1) {T=float64}
done = NoOp(^c)
)",
                                       {f})),
            Text(R"(
a = Placeholder() {dtype=float64}
c = IdentityN(Func/c/output/_1, Func/c/output/_2, ^Func/c/output_control_node/_3) @/gpu:0 {T=[float64, float64]}
b = Neg(Func/c/output/_2) {T=float64}
done = NoOp(^Func/c/output_control_node/_3)
Func/c/input/_0 = Identity(a) @/gpu:0 {T=float64}
c/r = Relu(Func/c/input/_0) @/gpu:0 {T=float64}
c/s = Neg(c/r) @/gpu:0 {T=float64}
Func/c/output/_1 = Identity(c/r) @/gpu:0 {T=float64}
Func/c/output/_2 = Identity(c/s) @/gpu:0 {T=float64}
Func/c/output_control_node/_3 = NoOp(^Func/c/output/_1, ^Func/c/output/_2) @/gpu:0
)"));
}

// Bodies are instantiated once per set of attributes, not once per function.
TEST(InlineCalls, EachCallGetsItsOwnAttributes) {
  const FunctionDef f =
      Function("MyOp", "x:$T", "y:$T", "r = Relu(x) {T=\"$T\"}", {"y=r:activations:0"});
  const FunctionDef other = Function("Other", "x:$T", "y:$T", "n = Neg(x) {T=\"$T\"}", {"y=n:y:0"});
  const std::string inlined = Inlined(GraphWithFunctions(R"(
a = Placeholder() {dtype=float64}
h = Placeholder() {dtype=float16}
c = MyOp(a) {T=float64}
d = MyOp(h) {T=float16}
e = MyOp(c) {T=float64}
f = Other(d) {T=float16}
)",
                                                         {f, other}));
  for (const char* node :
       {"c/r = Relu(Func/c/input/_0) {T=float64}", "d/r = Relu(Func/d/input/_3) {T=float16}",
        "e/r = Relu(Func/e/input/_6) {T=float64}", "f/n = Neg(Func/f/input/_9) {T=float16}"}) {
    EXPECT_THAT(inlined, ::testing::HasSubstr(node));
  }
}

// Devices of the body: unspecified parts come from the call. Colocation and frames get new names.
TEST(InlineCalls, DevicesColocationAndFrames) {
  const FunctionDef f =
      Function("f", "x:float32", "y:float32",
               "r = Relu(x) @/device:GPU:1 {T=float32, _class=[\"loc:@x\"]}\n"
               "e = Enter(r:activations:0) {T=float32, frame_name=\"loop\", _class=[\"loc:@r\", "
               "\"loc:@elsewhere\"]}\n"
               "q = Exit(e:output:0) @/job:other {T=float32}",
               {"y=q:output:0"});
  EXPECT_EQ(Inlined(GraphWithFunctions(R"(
a = Placeholder() {dtype=float32}
elsewhere = NoOp()
c = PartitionedCall(a) @/job:w/task:1/device:CPU:0 {Tin=[float32], Tout=[float32], f="f"}
)",
                                       {f})),
            Text(R"(
a = Placeholder() {dtype=float32}
elsewhere = NoOp()
c = IdentityN(Func/c/output/_1, ^Func/c/output_control_node/_2) @/job:w/task:1/device:CPU:0 {T=[float32]}
Func/c/input/_0 = Identity(a) {T=float32, _class=["loc:@a"]}
c/r = Relu(Func/c/input/_0) @/job:w/task:1/device:GPU:1 {T=float32, _class=["loc:@Func/c/input/_0"]}
c/e = Enter(c/r) @/job:w/task:1/device:CPU:0 {T=float32, frame_name="c/loop", _class=["loc:@c/r", "loc:@elsewhere"]}
c/q = Exit(c/e) @/job:other/task:1/device:CPU:0 {T=float32}
Func/c/output/_1 = Identity(c/q) {T=float32, _class=["loc:@c/q"]}
Func/c/output_control_node/_2 = NoOp() @/job:w/task:1/device:CPU:0
)"));
}

// A call in a loop of the graph: constants of the body run in the loop's frame.
TEST(InlineCalls, ACallInALoopFrame) {
  const FunctionDef f = Function("f", "x:float32", "y:float32",
                                 "k = Const() {dtype=float32}\n"
                                 "s = Add(x, k:output:0) {T=float32}",
                                 {"y=s:z:0"});
  const std::string inlined = Inlined(GraphWithFunctions(R"(
a = Placeholder() {dtype=float32}
p = Placeholder() {dtype=bool}
e = Enter(a) {T=float32, frame_name="w"}
m = Merge(e, n) {T=float32, N=2}
pe = Enter(p) {T=bool, frame_name="w", is_constant=true}
l = LoopCond(pe)
s = Switch(m, l) {T=float32}
c = PartitionedCall(s:1) {Tin=[float32], Tout=[float32], f="f"}
n = NextIteration(c) {T=float32}
x = Exit(s) {T=float32}
)",
                                                         {f}));
  EXPECT_THAT(inlined, ::testing::HasSubstr("Func/c/input_control_node/_0 = NoOp(^m)\n"));
  EXPECT_THAT(inlined,
              ::testing::HasSubstr("c/k = Const(^Func/c/input_control_node/_0) {dtype=float32}\n"));
}

TEST(InlineCalls, WhatACallStatesOfItsOutputsItsResultsState) {
  const std::string inlined = Inlined(GraphWithFunctions(R"(
a = Placeholder() {dtype=float32}
c = PartitionedCall(a) {Tin=[float32], Tout=[float32], f="f", _output_shapes=[(2,3)]}
)",
                                                         {Relu()}));
  EXPECT_THAT(inlined, ::testing::HasSubstr(
                           "Func/c/output/_1 = Identity(c/r) {T=float32, _class=[\"loc:@c/r\"], "
                           "_output_shapes=[(2,3)]}"));
}

TEST(InlineCalls, SameBytesOnEveryRunAndInEachOrderOfAttributes) {
  const std::string bytes = GraphWithFunctions(kOneCall, {Relu()});
  EXPECT_EQ(Inline(bytes).graph_def, Inline(bytes).graph_def);
  const GraphDef graph = ReadProto(bytes);
  EXPECT_EQ(Nodes(Inline(spillway::testing::WriteProtoBackward(graph)).graph_def),
            Nodes(Inline(bytes).graph_def));
}

// Each with a counterpart that is inlined.

TEST(InlineCalls, AFedCallStays) {
  v1::Step step;
  step.add_feeds()->set_name("c:0");
  EXPECT_EQ(ReasonOf(GraphWithFunctions(kOneCall, {Relu()}), step), v1::KEPT_CALL_REASON_FED);
}

TEST(InlineCalls, AMissingFunction) {
  EXPECT_EQ(ReasonOf(GraphWithFunctions(kOneCall, {Relu("g")})), v1::KEPT_CALL_REASON_NO_FUNCTION);
}

TEST(InlineCalls, TwoFunctionsOfOneName) {
  EXPECT_EQ(ReasonOf(GraphWithFunctions(kOneCall, {Relu(), Relu()})),
            v1::KEPT_CALL_REASON_DUPLICATE_FUNCTION);
}

TEST(InlineCalls, FlagsOfFunctions) {
  const auto reason = [](const std::string& flag) {
    return ReasonOf(GraphWithFunctions(kOneCall, {WithFlag(Relu(), flag)}));
  };
  EXPECT_EQ(reason("_noinline"), v1::KEPT_CALL_REASON_NOINLINE);
  EXPECT_EQ(reason("_XlaMustCompile"), v1::KEPT_CALL_REASON_COMPILED);
  EXPECT_EQ(reason("_XlaCompile"), v1::KEPT_CALL_REASON_COMPILED);
  EXPECT_EQ(reason("api_implements"), v1::KEPT_CALL_REASON_IMPLEMENTATION_GROUP);
  FunctionDef off = WithFlag(Relu(), "_noinline");
  (*off.mutable_attr())["_noinline"].set_b(false);
  EXPECT_EQ(Inline(GraphWithFunctions(kOneCall, {off})).summary.inlined_call_count(), 1);
}

TEST(InlineCalls, ACallThatIsCompiled) {
  const auto graph = [](const std::string& attr) {
    return GraphWithFunctions(absl::StrCat("a = Placeholder() {dtype=float32}\n"
                                           "c = PartitionedCall(a) {Tin=[float32], "
                                           "Tout=[float32], f=\"f\", ",
                                           attr, "}"),
                              {Relu()});
  };
  EXPECT_EQ(ReasonOf(graph("_XlaMustCompile=true")), v1::KEPT_CALL_REASON_COMPILED);
  EXPECT_EQ(ReasonOf(graph("_xla_compile_id=\"1\"")), v1::KEPT_CALL_REASON_COMPILED);
  EXPECT_EQ(Inline(graph("_XlaMustCompile=false")).summary.inlined_call_count(), 1);
}

FunctionDef Calls(const std::string& name, const std::string& callee) {
  return Function(
      name, "x:float32", "y:float32",
      absl::StrCat("n = PartitionedCall(x) {Tin=[float32], Tout=[float32], f=\"", callee, "\"}"),
      {"y=n:output:0"});
}

TEST(InlineCalls, RecursionStays) {
  EXPECT_EQ(ReasonOf(GraphWithFunctions(kOneCall, {Calls("f", "f")})),
            v1::KEPT_CALL_REASON_RECURSION);
  EXPECT_EQ(
      ReasonOf(GraphWithFunctions(kOneCall, {Calls("f", "g"), Calls("g", "h"), Calls("h", "f")})),
      v1::KEPT_CALL_REASON_RECURSION);
  // A function that calls into a cycle is inlined, up to the cycle.
  const InlinedCalls inlined =
      Inline(GraphWithFunctions(kOneCall, {Calls("f", "g"), Calls("g", "h"), Calls("h", "g")}));
  EXPECT_EQ(inlined.summary.inlined_call_count(), 1);
  ASSERT_THAT(inlined.summary.kept_calls(), SizeIs(1));
  EXPECT_EQ(inlined.summary.kept_calls(0).node(), "c/n");
  EXPECT_EQ(inlined.summary.kept_calls(0).function(), "g");
  EXPECT_EQ(inlined.summary.kept_calls(0).reason(), v1::KEPT_CALL_REASON_RECURSION);
}

constexpr char kUpdate[] =
    "n = Neg(x) {T=float32}\n"
    "up = AssignVariableOp(v, x) {dtype=float32}\n";
FunctionDef Updates(const std::vector<std::string>& control_returns) {
  return Function("f", "x:float32 v:resource", "y:float32", kUpdate, {"y=n:y:0"}, control_returns);
}
std::string UpdateCall(const std::string& readers) {
  return absl::StrCat(R"(
a = Placeholder() {dtype=float32}
v = VarHandleOp() {dtype=float32}
c = StatefulPartitionedCall(a, v) {Tin=[float32, resource], Tout=[float32], f="f"}
)",
                      readers);
}

TEST(InlineCalls, EffectsMustNotBeLost) {
  const auto reason = [](const std::string& readers,
                         const std::vector<std::string>& control_returns) {
    return ReasonOf(GraphWithFunctions(UpdateCall(readers), {Updates(control_returns)}));
  };
  const auto count = [](const std::string& readers,
                        const std::vector<std::string>& control_returns) {
    return Inline(GraphWithFunctions(UpdateCall(readers), {Updates(control_returns)}))
        .summary.inlined_call_count();
  };
  // Nothing waits for the end, and the update does not lead to the end.
  EXPECT_EQ(reason("b = Neg(c) {T=float32}", {"up"}), v1::KEPT_CALL_REASON_SIDE_EFFECTS);
  EXPECT_EQ(reason("done = NoOp(^c)", {}), v1::KEPT_CALL_REASON_SIDE_EFFECTS);
  EXPECT_EQ(reason("done = NoOp(^c)", {"n"}), v1::KEPT_CALL_REASON_SIDE_EFFECTS);
  EXPECT_EQ(count("b = Neg(c) {T=float32}\ndone = NoOp(^c)", {"up"}), 1);
  // Nothing reads it: a step that runs it names it.
  EXPECT_EQ(count("", {"up"}), 1);
}

TEST(InlineCalls, DeadResultsStay) {
  const auto function = [](const std::string& result) {
    return Function("f", "x:float32 p:bool", "y:float32",
                    "s = Switch(x, p) {T=float32}\n"
                    "n = Neg(s:output_true:0) {T=float32}\n"
                    "m = Merge(s:output_false:0, n:y:0) {T=float32, N=2}\n"
                    "k = Neg(m:output:0) {T=float32}",
                    {"y=" + result});
  };
  const std::string graph = R"(
a = Placeholder() {dtype=float32}
p = Placeholder() {dtype=bool}
c = PartitionedCall(a, p) {Tin=[float32, bool], Tout=[float32], f="f"}
)";
  EXPECT_EQ(ReasonOf(GraphWithFunctions(graph, {function("n:y:0")})),
            v1::KEPT_CALL_REASON_DEAD_RESULTS);
  EXPECT_EQ(
      Inline(GraphWithFunctions(graph, {function("m:output:0")})).summary.inlined_call_count(), 1);
  EXPECT_EQ(Inline(GraphWithFunctions(graph, {function("k:y:0")})).summary.inlined_call_count(), 1);
}

TEST(InlineCalls, FunctionsThatDoNotFitTheCall) {
  const std::string relu = "r = Relu(x) {T=float32}";
  const std::vector<std::string> result = {"y=r:activations:0"};
  for (const FunctionDef& function :
       {Function("f", "x:float32 z:float32", "y:float32", relu, result),
        Function("f", "x:int32", "y:float32", relu, result),
        Function("f", "x:float32", "", relu, {}), Function("f", "x:float32", "y:float32", relu, {}),
        Function("f", "x:float32", "y:float32", relu, {"y=s:activations:0"}),
        Function("f", "x:float32", "y:float32", relu, result, {"gone"}),
        Function("f", "x:float32", "y:float32", "x = Relu(x) {T=float32}", {"y=x"}),
        Function("f", "x:float32", "y:float32",
                 "r = Add(x, s:z:0) {T=float32}\ns = Add(x, r:z:0) {T=float32}", {"y=r:z:0"}),
        Function("f", "x:$T", "y:$T", "r = Relu(x) {T=\"$T\"}", result)}) {
    EXPECT_EQ(ReasonOf(GraphWithFunctions(kOneCall, {function})), v1::KEPT_CALL_REASON_BAD_FUNCTION)
        << function.ShortDebugString();
  }
}

TEST(InlineCalls, OtherKindsOfCalls) {
  EXPECT_EQ(ReasonOf(GraphWithFunctions(
                "a = Placeholder() {dtype=float32}\n"
                "g = SymbolicGradient(a, a) {Tin=[float32, float32], Tout=[float32], f=\"f\"}",
                {Relu()})),
            v1::KEPT_CALL_REASON_OTHER_KIND);
}

// Functions that call each other twice: 2^n nodes, none of which may be built.
TEST(InlineCalls, TooLarge) {
  std::vector<FunctionDef> functions;
  constexpr int kDepth = 40;
  for (int i = 0; i < kDepth; ++i) {
    const std::string callee = absl::StrCat("f", i + 1);
    functions.push_back(Function(
        i == 0 ? "f" : absl::StrCat("f", i), "x:float32", "y:float32",
        absl::StrCat("n = PartitionedCall(x) {Tin=[float32], Tout=[float32], f=\"", callee,
                     "\"}\nm = PartitionedCall(n:output:0) {Tin=[float32], Tout=[float32], f=\"",
                     callee, "\"}"),
        {"y=m:output:0"}));
  }
  functions.push_back(Relu(absl::StrCat("f", kDepth)));
  EXPECT_EQ(ReasonOf(GraphWithFunctions(kOneCall, functions)), v1::KEPT_CALL_REASON_TOO_LARGE);
}

// A reader of these results would read itself, through Identities or a loop's resources.
TEST(InlineCalls, NoneInAGraphWithACycle) {
  const FunctionDef same =
      Function("same", "x:float32 v:resource", "y:float32 u:resource", "", {"y=x", "u=v"});
  const FunctionDef more = Function("more", "x:float32 v:resource", "y:bool",
                                    "k = Const() {dtype=bool}", {"y=k:output:0"});
  const std::string nodes[] = {
      "c = PartitionedCall(a, c:1) {Tin=[float32, resource], Tout=[float32, resource], f=\"same\"}",
      "c = While(a, c:1) {T=[float32, resource], cond=\"more\", body=\"same\", "
      "_lower_using_switch_merge=true}",
      "c = While(a, d:1) {T=[float32, resource], cond=\"more\", body=\"same\", "
      "_lower_using_switch_merge=true}\n"
      "d = PartitionedCall(a, c:1) {Tin=[float32, resource], Tout=[float32, resource], f=\"same\"}",
  };
  for (const std::string& cyclic : nodes) {
    const std::string bytes =
        GraphWithFunctions(absl::StrCat("a = Placeholder() {dtype=float32, shape=(10)}\n", cyclic,
                                        "\nb = Neg(c) {T=float32}"),
                           {same, more});
    EXPECT_EQ(Inlined(bytes), "nothing\n") << cyclic;
  }
}

TEST(InlineCalls, Limits) {
  const std::string bytes = GraphWithFunctions(kOneCall, {Relu()});
  const InlinedCalls inlined = Inline(bytes);
  const auto with = [](void (v1::Limits::*set)(int64_t), int64_t value) {
    v1::Limits limits = DefaultLimits();
    (limits.*set)(value);
    return limits;
  };
  // The graph has 3 nodes, 2 inputs.
  EXPECT_EQ(ReasonOf(bytes, {}, with(&v1::Limits::set_max_node_count, 6)),
            v1::KEPT_CALL_REASON_TOO_LARGE);
  EXPECT_EQ(ReasonOf(bytes, {}, with(&v1::Limits::set_max_input_count, 4)),
            v1::KEPT_CALL_REASON_TOO_LARGE);
  EXPECT_EQ(ReasonOf(bytes, {},
                     with(&v1::Limits::set_max_graph_bytes,
                          static_cast<int64_t>(inlined.graph_def.size()) - 1)),
            v1::KEPT_CALL_REASON_TOO_LARGE);
  // Even if it is short, it checks the token before it allocates memory.
  EXPECT_FALSE(InlineCalls(*TestGraph::FromBytes(bytes), {}, DefaultLimits(),
                           StopToken::AfterStepsForTest(0))
                   .ok());
}

TEST(InlineCalls, ManyKeptCallsAreToldInPart) {
  std::string text = "a = Placeholder() {dtype=float32}\n";
  for (int i = 0; i < 250; ++i) {
    absl::StrAppend(&text, "c", i,
                    " = PartitionedCall(a) {Tin=[float32], Tout=[float32], f=\"g\"}\n");
  }
  const InlinedCalls inlined = Inline(GraphWithFunctions(text, {Relu()}));
  EXPECT_EQ(inlined.summary.kept_call_count(), 250);
  EXPECT_THAT(inlined.summary.kept_calls(), SizeIs(100));
}

}  // namespace
}  // namespace spillway::core
