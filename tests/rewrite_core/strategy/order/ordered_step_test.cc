#include "rewrite_core/strategy/order/ordered_step.h"

#include <gmock/gmock.h>

#include <vector>

#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/rewrite_core/strategy/budget/fake_plan_simulator.h"

namespace spillway::core {
namespace {

#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"

// `early` is ready when the step begins, and read after g. In use at g are r, a, b, g and early; if
// early waits for g, the first four, and then r, g, early and sum.
struct OrderedStepTest : ::testing::Test {
  OrderedStep Create(const std::vector<OrderEdgeTerms>& terms, int64_t most_ns = kUnlimited) {
    SwapPlan base;
    base.cpu_device = "/cpu:7";
    return testing::ValueOrDie(OrderedStep::Create(step.facts, base, step.unswapped, {GpuIndex(0)},
                                                   terms, most_ns, &simulator, step.stop),
                               "ordered");
  }

  const testing::TestGpuStep step{std::string(
      "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "w = VariableV2() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "r = Identity(w) " KIB_256 "a = MatMul(x, r) " KIB_256 "b = MatMul(a, r) " KIB_256
      "g = MatMul(b, a) " KIB_256 "early = Mul(r, r) " KIB_256 "sum = MatMul(g, early) " KIB_256)};
  testing::FakePlanSimulator simulator{[this](const SwapPlan& plan, const StepTerms& terms) {
    return step.simulator->Simulate(plan, terms, step.stop);
  }};
};

TEST_F(OrderedStepTest, AnEdgeThatLowersThePeakIsTaken) {
  const OrderedStep ordered = Create({kLargeOutputs});
  ASSERT_EQ(ordered.base.controls.size(), 1u);
  EXPECT_EQ(ordered.base.controls[0].from, step.graph["g"]);
  EXPECT_EQ(ordered.base.controls[0].to, step.graph["early"]);
  EXPECT_EQ(ordered.base.cpu_device, "/cpu:7");
  EXPECT_EQ(step.unswapped.peak_bytes(GpuIndex(0)), 5 * (256 << 10));
  EXPECT_EQ(ordered.step.peak_bytes(GpuIndex(0)), 4 * (256 << 10));
  EXPECT_LT(step.ranks[step.graph["early"]], step.ranks[step.graph["g"]]);
  EXPECT_GT(ordered.ranks[step.graph["early"]], ordered.ranks[step.graph["g"]]);
}

// A fifth of the peak is gained.
TEST_F(OrderedStepTest, NotIfItGainsTooLittleOrIsTooSlow) {
  const int64_t time_ns = Create({kLargeOutputs}).step.step_time_ns();
  EXPECT_EQ(Create({kLargeOutputs}, time_ns).base.controls.size(), 1u);
  EXPECT_TRUE(Create({kLargeOutputs}, time_ns - 1).base.empty());
  EXPECT_EQ(Create({{256, 0.19}}).base.controls.size(), 1u);
  const OrderedStep unordered = Create({{256, 0.21}});
  EXPECT_TRUE(unordered.base.empty());
  EXPECT_EQ(unordered.ranks, step.ranks);
}

TEST_F(OrderedStepTest, TermsWithoutMoreEdgesAreNotSimulated) {
  Create({{4, 0}});  // No output has a quarter of the peak.
  EXPECT_EQ(simulator.calls.size(), 0u);
  Create({kLargeOutputs, {16384, 0}});
  EXPECT_EQ(simulator.calls.size(), 1u);
}

}  // namespace
}  // namespace spillway::core
