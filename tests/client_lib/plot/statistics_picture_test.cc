// The picture of a journal, as XML: what it shows is what it was given.
#include "client_lib/plot/statistics_picture.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "tests/testing/xml_elements.h"

namespace spillway::plot {
namespace {

using ::spillway::testing::ParseXml;
using ::spillway::testing::XmlElement;
using ::testing::HasSubstr;
using ::testing::Not;

Statistics TwoColumns() {
  Statistics of;
  of.start_s = 1'795'507'200;
  of.width_s = 600;
  of.columns.resize(3);
  of.columns[0].rewritten = 3;
  of.columns[0].swap_bytes = 3 << 20;
  of.columns[0].slowdown = 1.25;
  of.columns[2].rewritten = 1;
  of.columns[2].does_not_fit = 2;
  of.columns[2].failed = 5;
  of.bars_of = "job";
  of.bars = {{"17_3", 2 << 20}, {"18", 1 << 20}};
  return of;
}

std::vector<XmlElement> Elements(const std::string& picture) {
  std::string problem;
  std::vector<XmlElement> elements = ParseXml(picture, &problem);
  EXPECT_EQ(problem, "");
  return elements;
}

// The values of the columns, by the class of their rectangles, then by column.
std::map<std::string, std::map<std::string, double>> Values(const std::string& picture) {
  std::map<std::string, std::map<std::string, double>> values;
  for (const XmlElement& element : Elements(picture)) {
    const auto column = element.attributes.find("data-column");
    if (column == element.attributes.end()) continue;
    double value = -1;
    EXPECT_TRUE(absl::SimpleAtod(element.attributes.at("data-value"), &value));
    values[element.attributes.at("class")][column->second] = value;
  }
  return values;
}

TEST(StatisticsPictureTest, DrawsWhatItWasGiven) {
  const auto picture = DrawStatistics(TwoColumns(), {});
  ASSERT_TRUE(picture.ok()) << picture.status();
  auto values = Values(*picture);
  using Columns = std::map<std::string, double>;
  EXPECT_EQ(values["compute"], (Columns{{"0", 3}, {"2", 1}}));
  EXPECT_EQ(values["copy-out"], (Columns{{"2", 2}}));
  EXPECT_EQ(values["wait"], (Columns{{"2", 5}}));
  EXPECT_EQ(values["swap"], (Columns{{"0", 25}}));
  EXPECT_EQ(values["after-mark"], (Columns{{"0", 3 << 20}}));
  EXPECT_THAT(*picture, HasSubstr("2026-11-24 08:00:00 to 2026-11-24 08:30:00 UTC, a column for "
                                  "each 10 min"));
  double first = 0, second = 0;
  for (const XmlElement& element : Elements(*picture)) {
    const auto bytes = element.attributes.find("data-bytes");
    if (bytes == element.attributes.end()) continue;
    double& width = bytes->second == "2097152" ? first : second;
    EXPECT_TRUE(absl::SimpleAtod(element.attributes.at("width"), &width));
  }
  EXPECT_NEAR(first, 2 * second, 0.2);
  EXPECT_GT(second, 0);
}

TEST(StatisticsPictureTest, NamesAreText) {
  Statistics of = TwoColumns();
  of.bars[0].name = "<script>alert(1)</script>\"'&\x1b[2J\xff";
  for (const Format format : {Format::kSvg, Format::kHtml}) {
    PictureOptions options;
    options.format = format;
    const auto picture = DrawStatistics(of, options);
    ASSERT_TRUE(picture.ok());
    EXPECT_THAT(*picture, HasSubstr("&lt;script&gt;alert(1)"));
    EXPECT_THAT(*picture, Not(HasSubstr("<script>alert")));
    EXPECT_THAT(*picture, Not(HasSubstr("\x1b")));
  }
  EXPECT_FALSE(Elements(*DrawStatistics(of, {})).empty());
}

TEST(StatisticsPictureTest, ValuesAtTheirLimits) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t width_s : {int64_t{1}, int64_t{604'800}, int64_t{96'768'000'000}}) {
    Statistics of;
    of.start_s = width_s > 1'000'000'000 ? 0 : 253'402'300'799 / width_s * width_s;
    of.width_s = width_s;
    of.columns.resize(2);
    of.columns[0] = {kMost, kMost, kMost, kMost, kMost, kMost, 1e300};
    of.columns[1] = {kMost, 0, 0, 0, 0, 0, 0.0};
    of.bars = {{"", kMost}, {"none", 0}};
    const auto picture = DrawStatistics(of, {});
    ASSERT_TRUE(picture.ok());
    EXPECT_FALSE(Elements(*picture).empty());
    EXPECT_THAT(*picture, Not(HasSubstr("nan")));
    EXPECT_THAT(*picture, Not(HasSubstr("=\"inf")));
  }
  EXPECT_EQ(core::GetErrorReason(DrawStatistics(Statistics(), {}).status()),
            v1::ERROR_REASON_BAD_OPTION);
}

}  // namespace
}  // namespace spillway::plot
