// Reports of the strategy `budget` as texts.
#include "client_lib/text/budget_text.h"

#include <string>
#include <vector>

#include "client_lib/text/fit_text.h"
#include "client_lib/text/text_table.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace spillway::text {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string BudgetFacts(const std::string& text) {
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &report)) << text;
  return FormatFacts(DeviceFacts(report));
}

TEST(BudgetTextTest, HowThePlanWasFound) {
  EXPECT_EQ(BudgetFacts(R"pb(
              budget {
                planning_effort: PLANNING_EFFORT_MEDIUM
                devices {
                  plan_count: 128
                  fitting_plan_count: 28
                  other_budget_bytes: 1073741824
                  other_budget_bytes: 1610612736
                  ordered_peak_bytes: 2147483648
                }
              }
            )pb"),
            "  ordered  2.00 GiB at the peak with this op order alone\n"
            "  search   128 plans simulated, 28 fitting, planning effort medium\n"
            "  fits     also into 1.00 GiB, 1.50 GiB\n");
}

TEST(BudgetTextTest, HowSteadyAndHowGoodItIs) {
  const std::string text = BudgetFacts(R"pb(
    budget {
      devices {
        plan_count: 32
        step_time_bound_ns: 12300000
        variation_count: 6
        unfit_variation_count: 2
        fastest_step_time_ns: 12500000
      }
    }
  )pb");
  EXPECT_THAT(text, HasSubstr("  varied  fits in 4 of 6 variations of op order, "));
  EXPECT_THAT(text, HasSubstr("in all of them, takes 12.5 ms\n"));
  EXPECT_THAT(text, HasSubstr("at least 12.3 ms with swaps alone\n"));
}

TEST(BudgetTextTest, ThePlanMayBeThatOfLevel) {
  const std::string text = BudgetFacts(R"pb(
    budget { devices { level { swapout_threshold: 7 swapin_groupby: 2 sync_mode: 1 } } }
  )pb");
  EXPECT_THAT(text, HasSubstr("  setting  swapout_threshold 7, "));
  EXPECT_THAT(text, HasSubstr("the plan of the strategy level is faster"));
}

// A GPU that is planned though its unchanged graph fits is not reported not to fit.
TEST(BudgetTextTest, WhatWasAskedFor) {
  EXPECT_EQ(
      BudgetFacts(R"pb(
        fits { fit: FIT_FITS budget_bytes: 4294967296 unswapped_peak_bytes: 3221225472 }
        budget {
          objective: PLANNING_OBJECTIVE_SMALLEST_PEAK
          max_slowdown: 1.1
          devices { plan_count: 7 fitting_plan_count: 2 least_budget_bytes: 1073741824 }
        }
      )pb"),
      "  objective  smallest peak, at most 1.1 times the step at full speed; planned for 1.00 "
      "GiB\n"
      "  search     7 plans simulated, 2 fitting\n"
      "  budget     4.00 GiB\n"
      "  unswapped  3.00 GiB at the peak, 1.00 GiB less than the budget\n");
  EXPECT_THAT(BudgetFacts("budget { objective: PLANNING_OBJECTIVE_FASTEST_THAT_FITS "
                          "max_slowdown: 2 devices { plan_count: 1 } }"),
              HasSubstr("fastest that fits, at most 2 times the step at full speed\n"));
}

TEST(BudgetTextTest, WhatThereIsNotIsNotSaid) {
  const std::string text =
      BudgetFacts("budget { planning_effort: 77 devices { plan_count: 1 cut_short: true } }");
  EXPECT_THAT(text, HasSubstr("1 plan simulated, 0 fitting; cut short by max_search_steps\n"));
  EXPECT_THAT(text, Not(HasSubstr("effort")));
  EXPECT_THAT(text, Not(HasSubstr("objective")));
  EXPECT_THAT(text, Not(HasSubstr("also into")));
  EXPECT_THAT(text, Not(HasSubstr("order edges")));
  EXPECT_THAT(text, Not(HasSubstr("varied")));
  EXPECT_THAT(text, Not(HasSubstr("bound")));
}

}  // namespace
}  // namespace spillway::text
