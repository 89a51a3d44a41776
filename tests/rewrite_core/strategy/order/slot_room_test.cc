// SlotRoom against a plain array.
#include "rewrite_core/strategy/order/slot_room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/testing/random.h"

namespace spillway::core {
namespace {

TEST(SlotRoomTest, OfNoSlots) {
  const SlotRoom room({});
  EXPECT_EQ(room.Least(0, 0), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(room.FirstBelow(0, 0, 1), kNoSlot);
  EXPECT_EQ(room.LastBelow(0, 0, 1), kNoSlot);
}

TEST(SlotRoomTest, AsAnArrayDoesIt) {
  testing::Random random(1);
  for (int run = 0; run < 300; ++run) {
    const int slots = random.Between(1, 70);
    std::vector<int64_t> plain;
    for (int i = 0; i < slots; ++i) plain.push_back(random.Between(-20, 100));
    SlotRoom room(plain);
    for (int i = 0; i < 60; ++i) {
      const int32_t first = random.Between(0, slots), last = random.Between(0, slots);
      if (random.OneIn(2)) {
        const int64_t bytes = random.Between(-50, 50);
        room.Add(first, last, bytes);
        for (Slot slot(first); slot < last; ++slot) plain[slot] += bytes;
        continue;
      }
      const int64_t bytes = random.Between(-100, 150);
      int64_t least = std::numeric_limits<int64_t>::max();
      Slot first_below = kNoSlot, last_below = kNoSlot;
      for (Slot slot(first); slot < last; ++slot) {
        least = std::min(least, plain[slot]);
        if (plain[slot] >= bytes) continue;
        if (first_below == kNoSlot) first_below = slot;
        last_below = slot;
      }
      ASSERT_EQ(room.Least(first, last), least);
      ASSERT_EQ(room.FirstBelow(first, last, bytes), first_below);
      ASSERT_EQ(room.LastBelow(first, last, bytes), last_below);
    }
  }
}

}  // namespace
}  // namespace spillway::core
