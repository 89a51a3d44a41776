#include "rewrite_core/strategy/common/cheapest_window.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/random.h"

namespace spillway::core {
namespace {

// The least cost of all ranges of adjacent pieces that suffice; -1: none.
double LeastOfAll(const std::vector<WindowPiece>& pieces, int64_t bytes) {
  double least = -1;
  for (size_t begin = 0; begin < pieces.size(); ++begin) {
    int64_t end_address = pieces[begin].address, held = 0;
    double cost = 0;
    for (size_t i = begin; i < pieces.size() && pieces[i].address == end_address; ++i) {
      end_address += pieces[i].bytes;
      held += pieces[i].bytes;
      cost += pieces[i].cost;
      if (held >= bytes && (least < 0 || cost < least)) least = cost;
    }
  }
  return least;
}

TEST(CheapestWindowTest, AgreesWithAllRanges) {
  int found = 0, none = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    testing::Random random(seed);
    std::vector<WindowPiece> pieces;
    int64_t address = 0;
    for (int i = random.Below(12); i > 0; --i) {
      if (random.OneIn(4)) address += 1 + random.Below(5);  // Something that stays.
      const int64_t bytes = 1 + random.Below(8);
      // Whole numbers, so that sums are exact in any order.
      pieces.push_back({address, bytes, random.OneIn(3) ? 0.0 : 1.0 + random.Below(9)});
      address += bytes;
    }
    const int64_t bytes = 1 + random.Below(20);
    const PieceWindow window = CheapestWindow(pieces, bytes);
    const double least = LeastOfAll(pieces, bytes);
    ASSERT_EQ(window.begin == window.end, least < 0) << seed;
    if (least < 0) {
      ++none;
      continue;
    }
    ++found;
    ASSERT_LE(window.end, pieces.size());
    int64_t held = 0;
    double cost = 0;
    for (size_t i = window.begin; i < window.end; ++i) {
      if (i > window.begin) {
        ASSERT_EQ(pieces[i].address, pieces[i - 1].address + pieces[i - 1].bytes) << seed;
      }
      held += pieces[i].bytes;
      cost += pieces[i].cost;
    }
    EXPECT_GE(held, bytes) << seed;
    EXPECT_EQ(cost, least) << seed;
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(none, 200);
}

}  // namespace
}  // namespace spillway::core
