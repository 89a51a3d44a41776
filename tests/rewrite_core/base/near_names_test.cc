#include "rewrite_core/base/near_names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The expected EditDistance, by definition, without a bound or a table.
size_t Slow(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string a1 = a.substr(1), b1 = b.substr(1);
  size_t least = std::min({Slow(a1, b) + 1, Slow(a, b1) + 1, Slow(a1, b1) + (a[0] != b[0])});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    least = std::min(least, Slow(a.substr(2), b.substr(2)) + 1);
  }
  return least;
}

TEST(EditDistanceTest, IsThatOfTheDefinition) {
  const std::vector<std::string> words = {"",    "a",    "ab",   "ba",    "abc", "bca",
                                          "acb", "aabb", "abab", "cabac", "bbac"};
  for (const std::string& a : words) {
    for (const std::string& b : words) {
      for (size_t limit : {0, 1, 2, 3, 9}) {
        EXPECT_EQ(EditDistance(a, b, limit), std::min(Slow(a, b), limit + 1)) << a << " " << b;
      }
    }
  }
  EXPECT_EQ(EditDistance("ReLU", "relu", 3), 0);
}

TEST(NearNamesTest, TheNearestFirst) {
  EXPECT_THAT(NearNames("rewrit", {"strip", "rewrite", "run"}), ElementsAre("rewrite"));
  EXPECT_THAT(NearNames("layer3", {"layer1", "layer2", "lay", "layer33"}),
              ElementsAre("layer1", "layer2", "layer33"));
  EXPECT_THAT(NearNames("h100", {"t4", "h100_pcie5", "h100_sxm5"}),
              ElementsAre("h100_pcie5", "h100_sxm5"));
  EXPECT_THAT(NearNames("frobnicate", {"rewrite", "strip"}), IsEmpty());
  EXPECT_THAT(NearNames("x", {"abc"}), IsEmpty());
  EXPECT_THAT(NearNames("", {"abc"}), IsEmpty());
  EXPECT_THAT(NearNames("abc", {"abc", "ABC"}), ElementsAre("ABC"));
  EXPECT_THAT(NearNames("T4", {"l4", "t4"}), ElementsAre("t4"));
  EXPECT_THAT(NearNames(std::string(129, 'a'), {"a"}), IsEmpty());
}

TEST(NearNamesTest, DidYouMeanIsHalfASentence) {
  EXPECT_EQ(DidYouMean("tow", {"two", "too", "to"}), "; did you mean 'two' or 'too' or 'to'?");
  EXPECT_EQ(DidYouMean("zzz", {"two"}), "");
}

}  // namespace
}  // namespace spillway::core
