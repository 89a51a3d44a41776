#include "rewrite_core/strategy/strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spillway/v1/options.pb.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;

TEST(StrategiesTest, ThoseThatChooseSwapsAreOfferedTheDefaultFirst) {
  EXPECT_THAT(Strategies(),
              ElementsAre(v1::STRATEGY_BUDGET, v1::STRATEGY_LEVEL, v1::STRATEGY_SCOPE));
  EXPECT_EQ(StrategyOf(v1::RewriteOptions()), Strategies().front());
}

TEST(StrategiesTest, AllButStripPlan) {
  const auto* fields = v1::RewriteOptions::descriptor()->FindOneofByName("strategy");
  for (int i = 0; i < fields->field_count(); ++i) {
    v1::RewriteOptions options;
    options.GetReflection()->MutableMessage(&options, fields->field(i));
    const v1::Strategy strategy = StrategyOf(options);
    EXPECT_EQ(static_cast<int>(strategy), fields->field(i)->number());
    EXPECT_EQ(FindStrategy(options) == nullptr, strategy == v1::STRATEGY_STRIP);
  }
}

}  // namespace
}  // namespace spillway::core
