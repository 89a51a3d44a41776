#include "rewrite_core/plan/needs.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestFacts;

class NeedsTest : public ::testing::Test {
 protected:
  // Returns whether `v` may wait for `u`.
  static bool MayWait(const std::string& text, const std::string& v, const std::string& u) {
    const TestFacts f(text);
    const Needs needs = testing::ValueOrDie(Needs::Find(f.facts, StopToken()), text);
    return needs.MayWait(f.graph[v], f.graph[u]);
  }

  // `sumN` adds the feeds up to `xN`.
  static std::string SumsOf(int feeds) {
    std::string graph = "sum0 = Placeholder() {dtype=float32}\n";
    for (int i = 1; i <= feeds; ++i) {
      absl::StrAppend(&graph, "x", i, " = Placeholder() {dtype=float32}\n");
      absl::StrAppend(&graph, "sum", i, " = AddV2(sum", i - 1, ", x", i, ") {T=float32}\n");
    }
    return graph;
  }
};

TEST_F(NeedsTest, AFeedThatTheWaitingNodeDoesWithout) {
  constexpr char kGraph[] =
      "a = Placeholder() {dtype=float32}\n"
      "b = Placeholder() {dtype=float32}\n"
      "c = Const() {dtype=float32}\n"
      "of_a = Relu(a) {T=float32}\n"
      "of_c = Relu(c) {T=float32}\n"
      "of_both = AddV2(a, b) {T=float32}\n";
  EXPECT_TRUE(MayWait(kGraph, "of_both", "of_a"));
  EXPECT_FALSE(MayWait(kGraph, "of_a", "of_both"));
  EXPECT_TRUE(MayWait(kGraph, "of_a", "of_c"));
}

// A model's function has a placeholder for each captured constant.
TEST_F(NeedsTest, ManyFeedsAreToldApart) {
  const std::string graph = SumsOf(300);
  EXPECT_TRUE(MayWait(graph, "sum300", "sum299"));
  EXPECT_FALSE(MayWait(graph, "sum299", "sum300"));
  EXPECT_FALSE(MayWait(graph, "sum62", "x63"));
}

// Feeds beyond the number of bits are never waited for.
TEST_F(NeedsTest, VeryManyFeedsAreNot) {
  const std::string graph = SumsOf(2000);
  EXPECT_TRUE(MayWait(graph, "sum2000", "sum500"));
  EXPECT_FALSE(MayWait(graph, "sum2000", "sum1999"));
}

// A function's caller passes in all captured variables.
TEST_F(NeedsTest, CapturedVariablesAreVariables) {
  constexpr char kGraph[] =
      "v = Placeholder() {dtype=resource}\n"
      "w = Placeholder() {dtype=resource}\n"
      "of_v = ReadVariableOp(v) {dtype=float32}\n"
      "of_w = ReadVariableOp(w) {dtype=float32}\n"
      "x = Placeholder() {dtype=float32}\n"
      "of_x = Relu(x) {T=float32}\n";
  EXPECT_TRUE(MayWait(kGraph, "of_v", "of_w"));
  EXPECT_FALSE(MayWait(kGraph, "of_x", "of_w"));
}

// A node behind a write may be waited for by another node behind it.
TEST_F(NeedsTest, AWriteThatTheWaitingNodeDoesWithout) {
  constexpr char kGraph[] =
      "v = VarHandleOp() {dtype=float32}\n"
      "c = Const() {dtype=float32}\n"
      "write = AssignSubVariableOp(v, c) {dtype=float32}\n"
      "last = AssignSubVariableOp(v, c, ^write) {dtype=float32}\n"
      "read = ReadVariableOp(v) {dtype=float32}\n"
      "behind = ReadVariableOp(v, ^write) {dtype=float32}\n"
      "too = Relu(behind) {T=float32}\n"
      "beside = Relu(read) {T=float32}\n";
  EXPECT_TRUE(MayWait(kGraph, "too", "behind"));
  EXPECT_TRUE(MayWait(kGraph, "behind", "beside"));
  EXPECT_FALSE(MayWait(kGraph, "beside", "behind"));
  EXPECT_FALSE(MayWait(kGraph, "beside", "write"));
  EXPECT_FALSE(MayWait(kGraph, "too", "last"));
}

}  // namespace
}  // namespace spillway::core
