// Bytes that are free at each slot of a step, while plans take and give back whole runs of slots: a
// segment tree, so that each question and change costs the logarithm of the slots.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_SLOT_ROOM_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_SLOT_ROOM_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/strategy/budget/step_order.h"

namespace spillway::core {

// Runs of slots are [first, last), within [0, room.size()]; empty where first >= last. Bytes may be
// negative: less than nothing is free where a plan takes too much.
class SlotRoom {
 public:
  // `room`: bytes free, by slot.
  explicit SlotRoom(const std::vector<int64_t>& room);

  // So many bytes more are free, or less.
  void Add(Slot first, Slot last, int64_t bytes);
  // The least that is free at any slot of the run; the largest int64 if the run is empty.
  int64_t Least(Slot first, Slot last) const;
  // The first and the last slot of the run at which less than `bytes` are free; kNoSlot.
  Slot FirstBelow(Slot first, Slot last, int64_t bytes) const;
  Slot LastBelow(Slot first, Slot last, int64_t bytes) const;

 private:
  // A node of the tree has [begin, end) of the slots; node 1 all, 2i and 2i+1 the halves of i's.
  void Add(int32_t node, Slot begin, Slot end, Slot first, Slot last, int64_t bytes);
  int64_t Least(int32_t node, Slot begin, Slot end, Slot first, Slot last) const;
  template <bool kFirst>
  Slot Below(int32_t node, Slot begin, Slot end, Slot first, Slot last, int64_t bytes) const;

  Slot size_;                   // A power of two.
  std::vector<int64_t> least_;  // By node: of its slots, without what its parents were added.
  std::vector<int64_t> added_;  // By node: to all of its slots.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_SLOT_ROOM_H_
