#include "rewrite_core/base/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spillway/v1/options.pb.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;

TEST(NamesTest, AreThoseOfTheEnumsInLowerCase) {
  EXPECT_EQ(StrategyName(v1::STRATEGY_LEVEL), "level");
  EXPECT_EQ(StageName(v1::STAGE_PARSE), "parse");
  EXPECT_EQ(StrategyName(static_cast<v1::Strategy>(99)), "");
  EXPECT_EQ(StageName(static_cast<v1::Stage>(99)), "");
  EXPECT_THAT(AllStages(),
              ElementsAre(v1::STAGE_PARSE, v1::STAGE_ANALYSIS, v1::STAGE_STRATEGY,
                          v1::STAGE_SIMULATE, v1::STAGE_APPLY, v1::STAGE_VERIFY, v1::STAGE_REPORT));
}

TEST(NamesTest, EveryStrategyIsAFieldOfTheOptions) {
  const auto* fields = v1::RewriteOptions::descriptor()->FindOneofByName("strategy");
  ASSERT_EQ(static_cast<size_t>(fields->field_count()), AllStrategies().size());
  for (int i = 0; i < fields->field_count(); ++i) {
    const auto strategy = static_cast<v1::Strategy>(fields->field(i)->number());
    EXPECT_EQ(StrategyName(strategy), fields->field(i)->name());
  }
}

}  // namespace
}  // namespace spillway::core
