#include "client_lib/plot/text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/random.h"
#include "tests/testing/xml_elements.h"

namespace spillway::plot {
namespace {

using ::spillway::testing::ParseXml;
using ::spillway::testing::Random;

TEST(PlotTextTest, NamesThatAreMarkup) {
  EXPECT_EQ(Escaped("a<b>&\"c\"'d'"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  EXPECT_EQ(Escaped("gradients/conv1_1/BiasAdd:0"), "gradients/conv1_1/BiasAdd:0");
  // UTF-8 stays; other bytes, controls, and marks that turn the direction do not.
  EXPECT_EQ(Clean("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(Clean("a\x01z\x7f"), "a?z?");
  EXPECT_EQ(Clean("\xff\xc3("),
            "?"
            "?(");
  EXPECT_EQ(Clean("\xc0\x80"), "??");       // An overlong zero.
  EXPECT_EQ(Clean("\xed\xa0\x80"), "???");  // Half a surrogate.
  EXPECT_EQ(Clean("\xef\xbf\xbf"), "???");  // No character of XML.
  EXPECT_EQ(Clean("\xe2\x80\xae"
                  "exe"),
            "???exe");                 // Right to left from here on.
  EXPECT_EQ(Clean("\xe2\x82"), "??");  // Cut.
  EXPECT_LE(Clean(std::string(1 << 20, 'x')).size(), 1u << 14);
}

// Any bytes: well-formed XML.
TEST(PlotTextTest, AnyBytes) {
  Random random(1);
  for (int round = 0; round < 2'000; ++round) {
    std::string text;
    for (int i = random.Below(40); i > 0; --i) {
      // More special characters than chance would give.
      constexpr char kSpecial[] = "<>&\"'\\\n\x00\x1f\x7f\xc3\xe2\x80\xae\xf0\xff";
      text += random.OneIn(2) ? kSpecial[random.Below(sizeof kSpecial - 1)]
                              : static_cast<char>(random.Below(256));
    }
    std::string problem;
    const auto elements =
        ParseXml(absl::StrCat("<a b=\"", Escaped(text), "\">", Escaped(text), "</a>"), &problem);
    ASSERT_EQ(problem, "") << round;
    ASSERT_EQ(elements.size(), 1u);
    ASSERT_EQ(elements[0].attributes.at("b"), Clean(text));
    ASSERT_EQ(elements[0].text, Clean(text));
  }
}

TEST(PlotTextTest, ShortenedInTheMiddle) {
  EXPECT_EQ(Shortened("short", 5), "short");
  EXPECT_EQ(Shortened("resnet/block1/conv/weights", 15), "resn\xe2\x80\xa6/weights");
  // No character is cut in two.
  for (size_t width = 3; width < 20; ++width) {
    const std::string cut = Shortened(std::string("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6") +
                                          "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac",
                                      width);
    EXPECT_LE(cut.size(), width);
    EXPECT_EQ(Clean(cut), cut) << width;
  }
  EXPECT_EQ(Shortened("anything", 0), "\xe2\x80\xa6");
}

TEST(PlotTextTest, Lines) {
  absl::string_view text = "one two three";
  EXPECT_EQ(FirstLine(&text, 8), "one two");
  EXPECT_EQ(FirstLine(&text, 8), "three");
  EXPECT_EQ(text, "");
  text = "a_word_that_is_too_long and more";
  EXPECT_LE(FirstLine(&text, 10).size(), 10u);
  EXPECT_EQ(text, "and more");
}

}  // namespace
}  // namespace spillway::plot
