#include "rewrite_core/simulate/memory_pool.h"

#include <cstdint>
#include <limits>
#include <list>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/random.h"

namespace spillway::core {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
const auto kAnybody = [](OpId) { return true; };

TEST(WaitingListTest, WaitsForWhatItIsToldAnew) {
  WaitingList list;
  for (OpId op(0); op < 20; ++op) list.Add(op, 100);
  EXPECT_EQ(list.TakeFirst(100, kAnybody), 0);
  list.Rekey([](OpId op) { return op < 10 ? 200 : 50; });
  EXPECT_EQ(list.TakeFirst(100, kAnybody), 10);
  EXPECT_EQ(list.TakeFirst(200, kAnybody), 1);
  list.Clear();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.TakeFirst(kAll, kAnybody), kNoOp);
  list.Add(OpId(7), 300);
  EXPECT_EQ(list.TakeFirst(300, kAnybody), 7);
}

TEST(WaitingListTest, AgreesWithAPlainList) {
  testing::Random random(1);
  WaitingList list;
  std::list<std::pair<OpId, int64_t>> plain;
  size_t longest = 0;
  for (OpId step(0); step < 20'000; ++step) {
    // Long and short phases of growth and shrinkage.
    if (random.OneIn(step / 2'000 % 2 == 0 ? 3 : 1) && random.OneIn(2)) {
      const int64_t free_bytes = random.Below(100);
      // Some requests are not accepted, although there is enough memory for them.
      const int odd = random.Below(4);
      const auto accepts = [odd](OpId op) { return odd == 0 || op % 5 == odd; };
      auto at = plain.begin();
      while (at != plain.end() && (at->second > free_bytes || !accepts(at->first))) ++at;
      const OpId expected = at == plain.end() ? kNoOp : at->first;
      if (at != plain.end()) plain.erase(at);
      ASSERT_EQ(list.TakeFirst(free_bytes, accepts), expected) << step;
    } else {
      const int64_t bytes = random.Below(120);
      list.Add(step, bytes);
      plain.emplace_back(step, bytes);
    }
    longest = std::max(longest, plain.size());
    ASSERT_EQ(list.empty(), plain.empty());
  }
  EXPECT_GT(longest, 1'000u);
}

TEST(MemoryPoolTest, PeakIsTheFirstMomentOfTheMost) {
  MemoryPool pool(1'000);
  EXPECT_TRUE(pool.Take(OpId(1), 600));
  EXPECT_FALSE(pool.Fits(401));
  EXPECT_TRUE(pool.Fits(400));
  pool.GiveBack(500);
  EXPECT_FALSE(pool.Take(OpId(2), 500));
  EXPECT_EQ(pool.peak_op(), 1);
  EXPECT_TRUE(pool.Take(OpId(3), 1));
  EXPECT_EQ(pool.peak_op(), 3);
  EXPECT_EQ(pool.peak_bytes(), 601);
  EXPECT_EQ(pool.in_use_bytes(), 601);
}

}  // namespace
}  // namespace spillway::core
