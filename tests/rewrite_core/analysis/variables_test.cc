#include "rewrite_core/analysis/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/function_text.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::FunctionAttr;
using testing::FunctionText;
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

// Both branches count, and what they call. The predicate comes before the arguments.
TEST(VariablesTest, CallsThatWrite) {
  const std::vector<FunctionText> functions = {
      {"then",
       {{"a", kDtResource}, {"b", kDtResource}, {"c", kDtResource}},
       absl::StrCat("call = PartitionedCall(c, x:y:0) {f=", FunctionAttr("deep"),
                    "}\nx = Const() {dtype=float32}\nr = ReadVariableOp(b) {dtype=float32}"),
       {}},
      {"else",
       {{"a", kDtResource}, {"b", kDtResource}, {"c", kDtResource}},
       "one = Const() {dtype=float32}\nup = AssignAddVariableOp(a, one:output:0) {dtype=float32}",
       {}},
      {"deep",
       {{"v", kDtResource}, {"g", kDtFloat32}},
       "d = ReluGrad(g, g) {T=float32}\n"
       "up = ResourceApplyGradientDescent(v, g, d:backprops:0) {T=float32}",
       {}}};
  const TestGraph graph = testing::WithFunctions(
      absl::StrCat(
          "p = Placeholder() {dtype=bool}\n"
          "a = Placeholder() {dtype=resource}\n"
          "b = Placeholder() {dtype=resource}\n"
          "c = Placeholder() {dtype=resource}\n"
          "g = Placeholder() {dtype=float32}\n"
          "if = If(p, a, b, c) {then_branch=",
          FunctionAttr("then"), ", else_branch=", FunctionAttr("else"),
          "}\ncase = Case(p, b, a, c) {branches=", testing::FunctionListAttr({"else", "else"}),
          "}\nby_name = deep(b, g)\nmissing = nowhere(a)\n"),
      functions);
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

// Functions that call themselves and each other end.
TEST(VariablesTest, Recursion) {
  const TestGraph graph = testing::WithFunctions(
      absl::StrCat("h = Placeholder() {dtype=resource}\nc = PartitionedCall(h) {f=",
                   FunctionAttr("f"), "}\n"),
      {{"f",
        {{"v", kDtResource}},
        absl::StrCat("self = PartitionedCall(v) {f=", FunctionAttr("f"),
                     "}\nother = PartitionedCall(v) {f=", FunctionAttr("g"), "}"),
        {}},
       {"g",
        {{"v", kDtResource}},
        absl::StrCat("back = PartitionedCall(v) {f=", FunctionAttr("f"),
                     "}\none = Const() {dtype=float32}\n"
                     "up = AssignVariableOp(v, one:output:0) {dtype=float32}"),
        {}}});
  const Variables variables = Find(graph);
  const CallUse* call = variables.call(graph["c"]);
  ASSERT_NE(call, nullptr);
  EXPECT_THAT(call->written, ElementsAre(0));
}

// The clock is looked at now and then.
TEST(VariablesTest, Stops) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) absl::StrAppend(&text, "n", i, " = NoOp()\n");
  const TestGraph graph(text);
  const StopToken stop(absl::InfinitePast());
  EXPECT_FALSE(Variables::Find(*graph, stop).ok());
}

}  // namespace
}  // namespace spillway::core
