#include "rewrite_core/analysis/flow/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/function_graph.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::Function;
using testing::GraphWithFunctions;
using testing::TestGraph;

Variables Find(const TestGraph& graph) {
  return testing::ValueOrDie(Variables::Find(*graph, {}), "variables");
}

TEST(VariablesTest, HandlesThatAreReadAsVariables) {
  const TestGraph graph(R"(
      v = VariableV2() {dtype=float32, shape=(3)}
      h = VarHandleOp() {dtype=float32, shape=(3)}
      captured = Placeholder() {dtype=resource}
      entered = Enter(captured) {T=resource, frame_name="f"}
      pair = IdentityN(other, entered) {T=[float32, resource]}
      read = ReadVariableOp(pair:1) {dtype=float32}
      other = Placeholder() {dtype=float32}
      iterator = Placeholder() {dtype=resource}
      next = IteratorGetNext(iterator) {output_types=[float32]}
  )");
  const Variables variables = Find(graph);
  for (const char* name : {"v", "h", "captured"}) {
    EXPECT_TRUE(variables.is_variable(graph[name])) << name;
  }
  for (const char* name : {"entered", "other", "iterator", "next"}) {
    EXPECT_FALSE(variables.is_variable(graph[name])) << name;
  }
}

// Both branches count, with the functions that they call. The predicate comes before the arguments.
TEST(VariablesTest, CallsThatWrite) {
  const std::string arguments = "a:resource b:resource c:resource";
  const TestGraph graph = TestGraph::FromBytes(GraphWithFunctions(
      R"(
      p = Placeholder() {dtype=bool}
      a = Placeholder() {dtype=resource}
      b = Placeholder() {dtype=resource}
      c = Placeholder() {dtype=resource}
      g = Placeholder() {dtype=float32}
      if = If(p, a, b, c) {then_branch="then", else_branch="else"}
      case = Case(p, b, a, c) {branches=["else", "else"]}
      by_name = deep(b, g)
      missing = nowhere(a)
      )",
      {Function("then", arguments, "", R"(
           call = PartitionedCall(c, x:y:0) {f="deep"}
           x = Const() {dtype=float32}
           r = ReadVariableOp(b) {dtype=float32}
           )",
                {}),
       Function("else", arguments, "", R"(
           one = Const() {dtype=float32}
           up = AssignAddVariableOp(a, one:output:0) {dtype=float32}
           )",
                {}),
       Function("deep", "v:resource g:float32", "", R"(
           d = ReluGrad(g, g) {T=float32}
           up = ResourceApplyGradientDescent(v, g, d:backprops:0) {T=float32}
           )",
                {})}));
  const Variables variables = Find(graph);
  const CallUse* call = variables.call(graph["if"]);
  ASSERT_NE(call, nullptr);
  EXPECT_THAT(call->written, ElementsAre(1, 3));
  EXPECT_EQ(call->write, Write::kOptimizer);
  EXPECT_TRUE(call->has_gradients);
  call = variables.call(graph["case"]);
  ASSERT_NE(call, nullptr);
  EXPECT_THAT(call->written, ElementsAre(1));
  EXPECT_EQ(call->write, Write::kPlain);
  EXPECT_FALSE(call->has_gradients);
  call = variables.call(graph["by_name"]);
  ASSERT_NE(call, nullptr);
  EXPECT_THAT(call->written, ElementsAre(0));
  EXPECT_EQ(variables.call(graph["missing"]), nullptr);
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(variables.is_variable(graph[name])) << name;
  EXPECT_FALSE(variables.is_variable(graph["g"]));
}

// The search ends for functions that call themselves and each other.
TEST(VariablesTest, Recursion) {
  const TestGraph graph = TestGraph::FromBytes(GraphWithFunctions(
      R"(
      h = Placeholder() {dtype=resource}
      c = PartitionedCall(h) {f="f"}
      )",
      {Function("f", "v:resource", "", R"(
           self = PartitionedCall(v) {f="f"}
           other = PartitionedCall(v) {f="g"}
           )",
                {}),
       Function("g", "v:resource", "", R"(
           back = PartitionedCall(v) {f="f"}
           one = Const() {dtype=float32}
           up = AssignVariableOp(v, one:output:0) {dtype=float32}
           )",
                {})}));
  const Variables variables = Find(graph);
  const CallUse* call = variables.call(graph["c"]);
  ASSERT_NE(call, nullptr);
  EXPECT_THAT(call->written, ElementsAre(0));
}

// The clock is checked from time to time.
TEST(VariablesTest, Stops) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) absl::StrAppend(&text, "n", i, " = NoOp()\n");
  const TestGraph graph(text);
  const StopToken stop(absl::InfinitePast());
  EXPECT_FALSE(Variables::Find(*graph, stop).ok());
}

}  // namespace
}  // namespace spillway::core
