#include "client_lib/plot/axis.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spillway::plot {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

std::vector<std::string> Labels(const Axis& axis) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis.ticks) labels.push_back(tick.label);
  return labels;
}

TEST(PlotAxisTest, TicksAreRound) {
  const Axis gib = BytesAxis(13.37 * 1024 * 1024 * 1024, 6, AxisEnd::kTick);
  EXPECT_EQ(gib.unit, "GiB");
  EXPECT_THAT(Labels(gib), ElementsAre("0", "5", "10", "15"));
  EXPECT_EQ(gib.end, 15. * 1024 * 1024 * 1024);
  const Axis ms = TimeAxis(904.5e6, 7, AxisEnd::kValue);
  EXPECT_EQ(ms.unit, "ms");
  EXPECT_THAT(Labels(ms), ElementsAre("0", "200", "400", "600", "800"));
  EXPECT_EQ(ms.end, 904.5e6);
  EXPECT_THAT(Labels(BytesAxis(1.1 * 1024 * 1024, 5, AxisEnd::kTick)),
              ElementsAre("0.0", "0.5", "1.0", "1.5"));
  EXPECT_THAT(Labels(NumberAxis(256, 8, AxisEnd::kTick)),
              ElementsAre("0", "50", "100", "150", "200", "250", "300"));
  EXPECT_THAT(Labels(TimeAxis(3e9, 5, AxisEnd::kValue)), ElementsAre("0", "1000", "2000", "3000"));
}

TEST(PlotAxisTest, PowersOfTwoOnALogarithmicAxis) {
  const Axis axis = PowersAxis(160, 1368, 8);
  EXPECT_THAT(Labels(axis), ElementsAre("256", "512", "1024"));
  EXPECT_EQ(ShareOf(axis, 160), 0);
  EXPECT_EQ(ShareOf(axis, 1368), 1);
  EXPECT_EQ(ShareOf(axis, 0), 0);
  EXPECT_EQ(ShareOf(axis, 2000), 1);
  // Equal steps for equal factors: ln(2) / ln(1368 / 160) is 0.323.
  EXPECT_NEAR(ShareOf(axis, 512) - ShareOf(axis, 256), 0.323, 0.0005);
  EXPECT_NEAR(ShareOf(axis, 1024) - ShareOf(axis, 512), 0.323, 0.0005);
  EXPECT_THAT(Labels(PowersAxis(1, 4096, 8)),
              ElementsAre("1", "4", "16", "64", "256", "1024", "4096"));
  // Too narrow for that: from 0, and to the largest.
  EXPECT_EQ(PowersAxis(224, 256, 8).start, 0);
  EXPECT_EQ(PowersAxis(64, 64, 8).end, 64);
  EXPECT_EQ(PowersAxis(0, 64, 8).start, 0);
}

// For any size: a step of 1, 2 or 5 times a power of ten, not too many, and no value beyond.
TEST(PlotAxisTest, AnySize) {
  for (double most = 1; most < 9e18; most *= 1.37) {
    for (const AxisEnd end : {AxisEnd::kValue, AxisEnd::kTick}) {
      for (const Axis& axis :
           {BytesAxis(most, 6, end), TimeAxis(most, 7, end), NumberAxis(most, 8, end)}) {
        ASSERT_GE(axis.ticks.size(), 2u) << most;
        ASSERT_LE(axis.ticks.size(), 24u) << most;
        ASSERT_GE(axis.end, most * (1 - 1e-12));
        ASSERT_LE(axis.ticks.back().at, axis.end * (1 + 1e-12));
        ASSERT_EQ(axis.ticks[0].at, 0);
        double step = 0;
        ASSERT_TRUE(absl::SimpleAtod(axis.ticks[1].label, &step)) << axis.ticks[1].label;
        const double digit = step / std::pow(10, std::floor(std::log10(step) + 1e-9));
        ASSERT_THAT(std::round(digit * 1000), AnyOf(1000, 2000, 5000)) << most;
        // Each tick is at its label's value.
        for (size_t i = 0; i < axis.ticks.size(); ++i) {
          double value = 0;
          ASSERT_TRUE(absl::SimpleAtod(axis.ticks[i].label, &value));
          ASSERT_NEAR(value, step * static_cast<double>(i), step * 1e-6);
          ASSERT_NEAR(axis.ticks[i].at, axis.ticks[1].at * static_cast<double>(i), most * 1e-9);
        }
      }
    }
  }
}

TEST(PlotAxisTest, NothingToShow) {
  for (const double most : {0., -5., std::nan(""), HUGE_VAL}) {
    const Axis axis = TimeAxis(most, 7, AxisEnd::kTick);
    EXPECT_GT(axis.end, 0);
    EXPECT_FALSE(axis.ticks.empty());
  }
}

}  // namespace
}  // namespace spillway::plot
