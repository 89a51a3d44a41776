#include "rewrite_core/strategy/budget/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "rewrite_core/simulate/simulator.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::IsInvalid;

v1::BudgetStrategy Asked(v1::PlanningObjective objective) {
  v1::BudgetStrategy options;
  options.set_objective(objective);
  return options;
}

TEST(ObjectiveTest, Defaults) {
  const Objective fastest{v1::BudgetStrategy()};
  EXPECT_EQ(fastest.kind(), v1::PLANNING_OBJECTIVE_FASTEST_THAT_FITS);
  EXPECT_FALSE(fastest.saves_memory());
  EXPECT_EQ(fastest.MaxStepTime(1000), kUnlimited);
  const Objective smallest(Asked(v1::PLANNING_OBJECTIVE_SMALLEST_PEAK));
  EXPECT_TRUE(smallest.saves_memory());
  EXPECT_EQ(smallest.MaxStepTime(10'000), 11'000);
  EXPECT_EQ(smallest.MaxSlowdownText(), "1.1 times full speed (max_slowdown, by default)");
  const Objective free(Asked(v1::PLANNING_OBJECTIVE_FREE_SWAPS_ONLY));
  EXPECT_EQ(free.MaxStepTime(10'000), 10'050);
  EXPECT_EQ(free.MaxSlowdownText(), "1.005 times full speed (the objective FREE_SWAPS_ONLY)");
}

TEST(ObjectiveTest, ASlowdownIsTakenAsItIs) {
  v1::BudgetStrategy options = Asked(v1::PLANNING_OBJECTIVE_SMALLEST_PEAK);
  options.set_max_slowdown(1);
  EXPECT_TRUE(CheckObjective(options).ok());
  EXPECT_EQ(Objective(options).MaxStepTime(777), 777);
  options.set_max_slowdown(1e300);
  EXPECT_TRUE(CheckObjective(options).ok());
  EXPECT_EQ(Objective(options).MaxStepTime(777), kUnlimited);
}

TEST(ObjectiveTest, WhatIsOutOfRange) {
  for (const double slowdown :
       {0.0, -1.0, 0.999, std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    v1::BudgetStrategy options;
    options.set_max_slowdown(slowdown);
    EXPECT_THAT(CheckObjective(options), IsInvalid(v1::ERROR_REASON_BAD_OPTION, "max_slowdown"));
  }
  EXPECT_THAT(CheckObjective(Asked(static_cast<v1::PlanningObjective>(9))),
              IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION, "objective is 9"));
  v1::BudgetStrategy options = Asked(v1::PLANNING_OBJECTIVE_FREE_SWAPS_ONLY);
  EXPECT_TRUE(CheckObjective(options).ok());
  options.set_max_slowdown(1.005);
  EXPECT_THAT(CheckObjective(options),
              IsInvalid(v1::ERROR_REASON_CONFLICTING_OPTIONS, "FREE_SWAPS_ONLY"));
}

TEST(ObjectiveTest, TheLeastBudgetIsBisected) {
  std::vector<int64_t> tried;
  const auto from_41 = [&](int64_t budget) -> absl::StatusOr<bool> {
    tried.push_back(budget);
    return budget >= 41;
  };
  EXPECT_EQ(*LeastBudget(0, 100, 10, from_41), 43);
  EXPECT_THAT(tried, ElementsAre(50, 25, 37, 43));
  tried.clear();
  EXPECT_EQ(*LeastBudget(90, 100, 10, from_41), 100);
  EXPECT_EQ(*LeastBudget(100, 0, 10, from_41), 0);  // No budget is known to be sufficient.
  EXPECT_TRUE(tried.empty());
  EXPECT_EQ(LeastBudget(0, 100, 10,
                        [](int64_t) -> absl::StatusOr<bool> { return absl::CancelledError(); })
                .status(),
            absl::CancelledError());
}

}  // namespace
}  // namespace spillway::core
