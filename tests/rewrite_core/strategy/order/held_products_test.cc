#include "rewrite_core/strategy/order/held_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGpuStep;

constexpr char kSide[] = "side = MatMul(a, in)";  // The gradient of a weight, which x needs not.

// `y` of the forward part, and the gradient `x`, after `side`; `rest` computes with them.
std::vector<std::string> Held(const std::string& rest, v1::Grappler grappler = v1::GRAPPLER_AUTO,
                              const std::string& type = "float32", const char* side = kSide) {
  const std::string attrs = absl::StrCat(" {T=", type, "}\n");
  v1::Step step;
  for (const char* target : {"side", "outer", "end"}) step.add_targets(target);
  step.set_grappler(grappler);
  const TestGpuStep gpu(
      absl::StrCat("in = Placeholder() {dtype=", type, ", shape=(256,256)}\n",
                   "c = Const() {dtype=", type, ", _output_shapes=[()]}\n", "y = MatMul(in, in)",
                   attrs, "a = ReluGrad(y, in)", attrs, "before = MatMul(a, in)", attrs, side,
                   attrs, "x = Sub(before, a)", attrs, rest, "end = Relu(outer)", attrs),
      step);
  std::vector<std::string> edges;
  const std::vector<ControlEdge> held = testing::ValueOrDie(
      HoldProducts(gpu.facts, gpu.needs, gpu.ranks, gpu.unswapped, GpuIndex(0), {}), "edges");
  for (const ControlEdge& edge : held) {
    EXPECT_EQ(edge.kind, v1::EDGE_KIND_SERIALIZATION);
    edges.push_back(absl::StrCat(gpu.graph->name(edge.from), " => ", gpu.graph->name(edge.to)));
  }
  return edges;
}

TEST(HeldProductsTest, WaitForAnotherGradient) {
  EXPECT_THAT(Held("inner = Mul(x, y) {T=float32}\nouter = Mul(inner, c) {T=float32}\n"),
              ElementsAre("side => inner"));
  EXPECT_THAT(Held("inner = Div(x, y) {T=float32}\nouter = Mul(c, inner) {T=float32}\n"),
              ElementsAre("side => inner"));
  EXPECT_THAT(Held("inner = AddV2(x, y) {T=float32}\nouter = Sub(inner, c) {T=float32}\n"),
              ElementsAre("side => inner"));
}

// After Grappler, nodes outside the step do not read it.
TEST(HeldProductsTest, AlsoBesideAReaderThatIsTakenOut) {
  EXPECT_THAT(Held("inner = Mul(x, y) {T=float32}\nother = Relu(inner) {T=float32}\n"
                   "outer = Mul(inner, c, ^other) {T=float32}\n"),
              ElementsAre("side => inner"));
}

// Grappler would take the edge out, as x waits for it.
TEST(HeldProductsTest, NotForWhatTheyWaitForAnyway) {
  EXPECT_THAT(Held("inner = Mul(x, y) {T=float32}\nouter = Mul(inner, c) {T=float32}\n",
                   v1::GRAPPLER_AUTO, "float32", "side = MatMul(y, in)"),
              IsEmpty());
  EXPECT_THAT(Held("inner = Mul(x, y, ^side) {T=float32}\nouter = Mul(inner, c) {T=float32}\n"),
              IsEmpty());
}

// Each is left by ConstantPushDown, or waits for x anyway.
TEST(HeldProductsTest, NotWhatStaysAsItIs) {
  for (const char* rest : {
           "inner = Mul(y, x) {T=float32}\nouter = Mul(inner, c) {T=float32}\n",
           "inner = Mul(x, c) {T=float32}\nouter = Mul(inner, c) {T=float32}\n",
           "inner = Mul(x, y) {T=float32}\nouter = Mul(inner, in) {T=float32}\n",
           "inner = Mul(x, y) {T=float32}\nouter = AddV2(inner, c) {T=float32}\n",
           "inner = Mul(x, y) {T=float32}\nother = Mul(inner, c) {T=float32}\n"
           "outer = Sub(other, inner) {T=float32}\n",
           "inner = Mul(x, side) {T=float32}\nouter = Mul(inner, c) {T=float32}\n",
       }) {
    EXPECT_THAT(Held(rest), IsEmpty()) << rest;
  }
  EXPECT_THAT(Held("inner = Mul(x, y) {T=float16}\nouter = Mul(inner, c) {T=float16}\n",
                   v1::GRAPPLER_AUTO, "float16"),
              IsEmpty());
  EXPECT_THAT(Held("inner = Mul(x, y) {T=float32}\nouter = Mul(inner, c) {T=float32}\n",
                   v1::GRAPPLER_AS_IS),
              IsEmpty());
}

}  // namespace
}  // namespace spillway::core
