#include "rewrite_core/strategy/order/order_edges.h"

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

#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"
#define DECAYED_SUM "sum = AddN(g, decay) {N=2, T=float32, _output_shapes=[(256,256)]}\n"

constexpr int64_t kMinBytes = 1024;  // In bytes: an output of one matrix justifies an edge.

// A chain from x; `decay` needs only the variable, and is ready when the step begins.
constexpr char kChain[] =
    "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "w = VariableV2() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "r = Identity(w) " KIB_256
    "two = Const() {dtype=float32, _output_shapes=[()]}\n"
    "a = MatMul(x, r) " KIB_256 "b = MatMul(a, r) " KIB_256 "g = MatMul(b, a) " KIB_256
    "decay = Mul(r, two) " KIB_256;

std::vector<std::string> Edges(const std::string& rest, const std::vector<std::string>& targets) {
  v1::Step options;
  for (const std::string& target : targets) options.add_targets(target);
  const TestGpuStep step(absl::StrCat(kChain, rest), options);
  std::vector<std::string> edges;
  for (const ControlEdge& edge :
       testing::ValueOrDie(FindOrderEdges(step.facts, step.order, kMinBytes, {}), "")) {
    EXPECT_EQ(edge.kind, v1::EDGE_KIND_ORDER);
    edges.push_back(absl::StrCat(step.graph->name(edge.from), " => ", step.graph->name(edge.to)));
  }
  return edges;
}

TEST(OrderEdgesTest, TheGradientOfAWeightDecayWaitsForTheOther) {
  EXPECT_THAT(Edges(DECAYED_SUM, {"sum"}), ElementsAre("g => decay"));
}

TEST(OrderEdgesTest, ThroughWhatHandsItOn) {
  EXPECT_THAT(Edges("same = Identity(decay) " KIB_256
                    "sum = AddN(g, same) {N=2, T=float32, _output_shapes=[(256,256)]}\n",
                    {"sum"}),
              ElementsAre("g => decay"));
}

TEST(OrderEdgesTest, TwoThatAreEarlyBothWaitForTheThird) {
  EXPECT_THAT(Edges("decay2 = Mul(r, r) " KIB_256
                    "sum = AddN(decay2, g, decay) {N=3, T=float32, _output_shapes=[(256,256)]}\n",
                    {"sum"}),
              ElementsAre("g => decay", "g => decay2"));
}

// Another node reads it earlier, or waits for it.
TEST(OrderEdgesTest, NotWhereItHasAnotherReader) {
  EXPECT_THAT(Edges(DECAYED_SUM "early = MatMul(decay, r) " KIB_256, {"sum", "early"}), IsEmpty());
  EXPECT_THAT(Edges(DECAYED_SUM "after = NoOp(^decay)\n", {"sum", "after"}), IsEmpty());
}

TEST(OrderEdgesTest, NotWhatIsFetched) {
  EXPECT_THAT(Edges(DECAYED_SUM, {"sum", "decay"}), IsEmpty());
}

// Its input would have to be kept instead, and is just as large.
TEST(OrderEdgesTest, NotWhereItsInputsWouldBeKept) {
  const std::string rest =
      "y = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "h = MatMul(y, y) " KIB_256 "late = MatMul(h, r) " KIB_256
      "sum = AddN(g, late) {N=2, T=float32, _output_shapes=[(256,256)]}\n";
  EXPECT_THAT(Edges(rest, {"sum"}), IsEmpty());
}

// A fed node is not edited.
TEST(OrderEdgesTest, NotWhatIsFed) {
  v1::Step options;
  options.add_targets("sum");
  v1::Feed* feed = options.add_feeds();
  feed->set_name("decay");
  feed->add_dims(256);
  feed->add_dims(256);
  const TestGpuStep step(absl::StrCat(kChain, DECAYED_SUM), options);
  EXPECT_THAT(testing::ValueOrDie(FindOrderEdges(step.facts, step.order, kMinBytes, {}), ""),
              IsEmpty());
}

// With the edge, a tensor is no longer held from the start.
TEST(OrderEdgesTest, ThePeakFalls) {
  v1::Step options;
  options.add_targets("sum");
  const TestGpuStep step(absl::StrCat(kChain, DECAYED_SUM), options);
  SwapPlan plan;
  plan.controls = testing::ValueOrDie(FindOrderEdges(step.facts, step.order, kMinBytes, {}), "");
  const int64_t before = step.unswapped.peak_bytes(GpuIndex(0));
  const int64_t after = step.Simulate(plan).peak_bytes(GpuIndex(0));
  EXPECT_EQ(before - after, 256 << 10);
}

}  // namespace
}  // namespace spillway::core
