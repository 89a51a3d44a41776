#include "rewrite_core/strategy/order/pace_gate.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGpuStep;
using ::testing::UnorderedElementsAre;

#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"

// Two chains that need nothing of each other: they are launched a1, b1, a2, b2, a3, b3, ...
std::string PacedChains(const std::string& of_b) {
  std::string text, a = "x", b = of_b;
  for (const char* input : {"x", "y"}) {
    absl::StrAppend(&text, input, " = Placeholder() {dtype=float32, shape=(256,256)}\n");
  }
  for (int i = 1; i <= 5; ++i) {
    absl::StrAppend(&text, "a", i, " = MatMul(", a, ", x) " KIB_256);
    absl::StrAppend(&text, "b", i, " = MatMul(", b, ", ", of_b, ") " KIB_256);
    a = absl::StrCat("a", i);
    b = absl::StrCat("b", i);
  }
  return text + "sum = Add(a5, b5) " KIB_256;
}

// The gate at `slot` of a swap-in of a1 that waits for a2.
std::vector<std::string> Gate(const TestGpuStep& step, const std::string& slot,
                              const std::vector<InputPosition>& consumers = {}) {
  const Soundness soundness(step.facts, step.ranks);
  const NodeId trigger = step.graph["a2"];
  std::vector<std::string> names;
  for (NodeId node : PaceGate(step.order, step.needs, soundness)
                         .Find(step.graph["a1"], {trigger}, step.SlotOf(slot), consumers)) {
    names.emplace_back(step.graph->name(node));
  }
  return names;
}

// The first of each chain; later nodes wait for these.
TEST(PaceGateTest, TheWholeFrontierWaits) {
  const TestGpuStep step(PacedChains("x"));
  ASSERT_EQ(step.SlotOf("b3"), step.SlotOf("a3") + 1);
  EXPECT_THAT(Gate(step, "a3"), ElementsAre("a3", "b3"));
  EXPECT_THAT(Gate(step, "b3"), ElementsAre("b3", "a4"));
  EXPECT_THAT(Gate(step, "sum"), ElementsAre("sum"));
  // Its consumers wait anyway, and no edge goes back: a1 and b1 come before the trigger.
  EXPECT_THAT(Gate(step, "a3", {{step.graph["b3"], 0}}), ElementsAre("a3"));
  EXPECT_THAT(Gate(step, "a1"), IsEmpty());
}

// A step that runs only chain b would need the feed of chain a.
TEST(PaceGateTest, NotWhatNeedsNoneOfItsFeeds) {
  EXPECT_THAT(Gate(TestGpuStep(PacedChains("y")), "a3"), ElementsAre("a3"));
}

// As gradients have them: a constant factor that waits for the other factor.
TEST(PaceGateTest, WhatReadsAConstantInPlaceOfIt) {
  const TestGpuStep step(PacedChains("x") +
                         "k = Const(^a2) {dtype=float32, _output_shapes=[()]}\n"
                         "scaled = Mul(a2, k) " KIB_256);
  ASSERT_GT(step.SlotOf("k"), step.SlotOf("a3"));
  EXPECT_THAT(Gate(step, "a3"), UnorderedElementsAre("a3", "b3", "scaled"));
}

TEST(PaceGateTest, OfManyNodesThatWaitForNothingTheFirst64) {
  std::string text = PacedChains("x");
  for (int i = 0; i < 100; ++i) absl::StrAppend(&text, "c", i, " = MatMul(a2, a2) " KIB_256);
  EXPECT_EQ(Gate(TestGpuStep(text), "c0").size(), 64u);
}

}  // namespace
}  // namespace spillway::core
