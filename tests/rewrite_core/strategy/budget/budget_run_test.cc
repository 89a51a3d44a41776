#include "rewrite_core/strategy/budget/budget_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "rewrite_core/simulate/step_simulator.h"
#include "tests/rewrite_core/strategy/budget/fake_plan_simulator.h"

namespace spillway::core {
namespace {

using testing::IsOk;

constexpr int64_t kTimeNs = 1000;
constexpr int kUnfit = 3;

// Two branches, which TensorFlow may run in any order: with unlimited memory a, c, b, d. The step
// fits its budget; in kUnfit variations only with edges, of which it then takes `chained_ns`.
struct TwoBranches : testing::TestRequest {
  explicit TwoBranches(int64_t chained_ns)
      : TestRequest(
            "x = Placeholder() {dtype=float32, shape=(256,256)}\n"
            "a = MatMul(x, x) {T=float32}\n"
            "c = MatMul(x, x) {T=float32}\n"
            "b = MatMul(a, a) {T=float32}\n"
            "d = MatMul(c, c) {T=float32}\n"
            "e = MatMul(b, d) {T=float32}\n",
            "budget {} step { hardware { gpu_memory_bytes: 67108864 allocator_reserve: 0.5 } }"),
        real(testing::ValueOrDie(StepSimulator::Create(facts, stop), "simulator")) {
    simulator.answer = [this, chained_ns](const SwapPlan& plan, const StepTerms& terms) {
      if (terms.record_operations) return real->Simulate(plan, terms, stop);
      const bool is_varied = !terms.variation.is_none();
      if (is_varied && plan.controls.empty() && static_cast<int>(terms.variation.seed) < kUnfit) {
        return absl::StatusOr<StepResult>(testing::RunsOutAt(graph["d"]));
      }
      return absl::StatusOr<StepResult>(
          testing::Fits(plan.controls.empty() ? kTimeNs : chained_ns));
    };
    run.StartFrom({}, kTimeNs);  // Else it is far from its budget, and not varied.
    EXPECT_THAT(run.Simulate(), IsOk());
    EXPECT_TRUE(run.fits_unplanned());
    EXPECT_EQ(run.unfit_variations(), kUnfit);
    EXPECT_THAT(run.KeepOrder(), IsOk());
  }

  std::unique_ptr<StepSimulator> real;
  BudgetRun run{input, &steps};
};

TEST(BudgetRunTest, AStepThatMayRunOutKeepsItsOrder) {
  const TwoBranches step(kTimeNs + kTimeNs / kRobustCostPart);
  EXPECT_EQ(step.run.unfit_variations(), 0);
  EXPECT_FALSE(step.run.request().base.controls.empty());
}

TEST(BudgetRunTest, NotIfThatTakesMuchLonger) {
  const TwoBranches step(kTimeNs + kTimeNs / kRobustCostPart + 1);
  EXPECT_EQ(step.run.unfit_variations(), kUnfit);
  EXPECT_TRUE(step.run.fits_unplanned());
  EXPECT_TRUE(step.run.request().base.controls.empty());
}

}  // namespace
}  // namespace spillway::core
