// The bytes free at each slot of a step, while plans take and return memory over whole runs of
// slots: a segment tree, so that each query and update takes logarithmic time.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_SLOT_ROOM_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_SLOT_ROOM_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

// Runs of slots are [first, last), within [0, room.size()]; empty if first >= last. Their ends are
// numbers, since `last` may not be a slot. Free bytes may be negative, if a plan takes too much.
class SlotRoom {
 public:
  // `room`: bytes free, by slot.
  explicit SlotRoom(const std::vector<int64_t>& room);

  // Adds `bytes`, which may be negative, to each slot of the run.
  void Add(int32_t first, int32_t last, int64_t bytes);
  // Returns the minimum over the run; the largest int64 if the run is empty.
  int64_t Least(int32_t first, int32_t last) const;
  // Return the first and the last slot of the run with fewer than `bytes` free, or kNoSlot.
  Slot FirstBelow(int32_t first, int32_t last, int64_t bytes) const;
  Slot LastBelow(int32_t first, int32_t last, int64_t bytes) const;

 private:
  // A node of the tree covers the slots [begin, end); node 1 all, 2i and 2i+1 the halves of i's.
  void Add(int32_t node, int32_t begin, int32_t end, int32_t first, int32_t last, int64_t bytes);
  int64_t Least(int32_t node, int32_t begin, int32_t end, int32_t first, int32_t last) const;
  template <bool kFirst>
  Slot Below(int32_t node, int32_t begin, int32_t end, int32_t first, int32_t last,
             int64_t bytes) const;

  int32_t size_;                // A power of two.
  std::vector<int64_t> least_;  // By node: the minimum, without additions to its ancestors.
  std::vector<int64_t> added_;  // By node: the bytes added to all of its slots.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_SLOT_ROOM_H_
