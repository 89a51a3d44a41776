#include "rewrite_core/base/polled_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/testing/random.h"

namespace spillway::core {
namespace {

// A value to sort, and its original position.
using Item = std::pair<int, int>;

bool ByFirst(const Item& a, const Item& b) { return a.first < b.first; }

std::vector<Item> RandomItems(int size, int values) {
  testing::Random random(size);
  std::vector<Item> items;
  for (int i = 0; i < size; ++i) items.emplace_back(random.Below(values), i);
  return items;
}

TEST(PolledSortTest, SortsAsStableSort) {
  const StopToken stop;
  StopPoller poll(stop);
  for (int size : {0, 1, 2, 31, 32, 33, 63, 64, 65, 96, 97, 1000, 1023, 4096, 5000}) {
    for (int values : {1, 3, 1000000}) {
      std::vector<Item> items = RandomItems(size, values), expected = items;
      std::stable_sort(expected.begin(), expected.end(), ByFirst);
      ASSERT_TRUE(PolledSort(items.begin(), items.end(), ByFirst, &poll));
      EXPECT_EQ(items, expected) << size << " items of " << values << " values";
    }
  }
}

TEST(PolledSortTest, MovesWhatCannotBeCopied) {
  const StopToken stop;
  StopPoller poll(stop);
  std::vector<std::unique_ptr<int>> items;
  for (int i = 0; i < 100; ++i) items.push_back(std::make_unique<int>(99 - i));
  const auto less = [](const auto& a, const auto& b) { return *a < *b; };
  ASSERT_TRUE(PolledSort(items.begin(), items.end(), less, &poll));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*items[i], i);
}

TEST(PolledSortTest, StopsWhereverItIs) {
  const std::vector<Item> items = RandomItems(50'000, 1000);
  const StopToken whole;
  StopPoller whole_poll(whole);
  std::vector<Item> sorted = items;
  ASSERT_TRUE(PolledSort(sorted.begin(), sorted.end(), ByFirst, &whole_poll));
  ASSERT_GT(whole.steps(), 5 * 50'000);
  for (int64_t limit = 0; limit < whole.steps(); limit += whole.steps() / 20) {
    const StopToken stop = StopToken::AfterStepsForTest(limit);
    StopPoller poll(stop);
    std::vector<Item> stopped = items;
    EXPECT_FALSE(PolledSort(stopped.begin(), stopped.end(), ByFirst, &poll));
    EXPECT_LE(stop.steps(), limit + StopPoller::kStride);
    EXPECT_EQ(stop.steps_after_stop(), 0);
  }
}

}  // namespace
}  // namespace spillway::core
