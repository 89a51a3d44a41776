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

// `y` of the forward part, and `x`, which `before` leads to; `rest` computes with them.
std::vector<std::string> Held(const std::string& rest, v1::Grappler grappler = v1::GRAPPLER_AUTO,
                              const std::string& type = "float32") {
  const std::string attrs = absl::StrCat(" {T=", type, "}\n");
  v1::Step step;
  for (const char* target : {"outer", "end"}) step.add_targets(target);
  step.set_grappler(grappler);
  const TestGpuStep gpu(
      absl::StrCat("in = Placeholder() {dtype=", type, ", shape=(256,256)}\n",
                   "c = Const() {dtype=", type, ", _output_shapes=[()]}\n", "y = MatMul(in, in)",
                   attrs, "a = MatMul(y, in)", attrs, "before = MatMul(a, in)", attrs,
                   "x = Sub(before, a)", attrs, rest, "end = Relu(outer)", attrs),
      step);
  std::vector<std::string> edges;
  const std::vector<ControlEdge> held =
      testing::ValueOrDie(HoldProducts(gpu.facts, gpu.order, {}), "edges");
  for (const ControlEdge& edge : held) {
    EXPECT_EQ(edge.kind, v1::EDGE_KIND_SERIALIZATION);
    edges.push_back(absl::StrCat(gpu.graph->name(edge.from), " => ", gpu.graph->name(edge.to)));
  }
  return edges;
}

TEST(HeldProductsTest, WaitForWhatTheGradientIsMadeOf) {
  EXPECT_THAT(Held("inner = Mul(x, y) {T=float32}\nouter = Mul(inner, c) {T=float32}\n"),
              ElementsAre("before => inner"));
  EXPECT_THAT(Held("inner = Div(x, y) {T=float32}\nouter = Mul(c, inner) {T=float32}\n"),
              ElementsAre("before => inner"));
  EXPECT_THAT(Held("inner = AddV2(x, y) {T=float32}\nouter = Sub(inner, c) {T=float32}\n"),
              ElementsAre("before => inner"));
}

// Each is what ConstantPushDown leaves, or what waits for x anyway.
TEST(HeldProductsTest, NotWhatStaysAsItIs) {
  for (const char* rest : {
           "inner = Mul(y, x) {T=float32}\nouter = Mul(inner, c) {T=float32}\n",
           "inner = Mul(x, c) {T=float32}\nouter = Mul(inner, c) {T=float32}\n",
           "inner = Mul(x, y) {T=float32}\nouter = Mul(inner, in) {T=float32}\n",
           "inner = Mul(x, y) {T=float32}\nouter = AddV2(inner, c) {T=float32}\n",
           "inner = Mul(x, y) {T=float32}\nother = Relu(inner) {T=float32}\n"
           "outer = Mul(inner, c, ^other) {T=float32}\n",
           "inner = Mul(x, before) {T=float32}\nouter = Mul(inner, c) {T=float32}\n",
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
