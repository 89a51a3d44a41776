#include "rewrite_core/strategy/order/slot_room.h"

#include <algorithm>
#include <limits>

namespace spillway::core {

// Slots beyond the end have room for everything; a quarter of the maximum int64, so that sums do
// not overflow.
constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 4;

SlotRoom::SlotRoom(const std::vector<int64_t>& room) : size_(1) {
  while (size_ < static_cast<int32_t>(room.size())) size_ *= 2;
  least_.assign(2 * static_cast<size_t>(size_), kEndless);
  added_.assign(least_.size(), 0);
  std::copy(room.begin(), room.end(), least_.begin() + size_);
  for (int32_t node = size_ - 1; node > 0; --node) {
    least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  }
}

void SlotRoom::Add(int32_t first, int32_t last, int64_t bytes) {
  Add(1, 0, size_, first, last, bytes);
}

void SlotRoom::Add(int32_t node, int32_t begin, int32_t end, int32_t first, int32_t last,
                   int64_t bytes) {
  if (first >= end || last <= begin || first >= last) return;
  if (first <= begin && end <= last) {
    least_[node] += bytes;
    added_[node] += bytes;
    return;
  }
  const int32_t middle = begin + (end - begin) / 2;
  Add(2 * node, begin, middle, first, last, bytes);
  Add(2 * node + 1, middle, end, first, last, bytes);
  least_[node] = std::min(least_[2 * node], least_[2 * node + 1]) + added_[node];
}

int64_t SlotRoom::Least(int32_t first, int32_t last) const {
  return Least(1, 0, size_, first, last);
}

int64_t SlotRoom::Least(int32_t node, int32_t begin, int32_t end, int32_t first,
                        int32_t last) const {
  if (first >= end || last <= begin || first >= last) return std::numeric_limits<int64_t>::max();
  if (first <= begin && end <= last) return least_[node];
  const int32_t middle = begin + (end - begin) / 2;
  return std::min(Least(2 * node, begin, middle, first, last),
                  Least(2 * node + 1, middle, end, first, last)) +
         added_[node];
}

Slot SlotRoom::FirstBelow(int32_t first, int32_t last, int64_t bytes) const {
  return Below<true>(1, 0, size_, first, last, bytes);
}

Slot SlotRoom::LastBelow(int32_t first, int32_t last, int64_t bytes) const {
  return Below<false>(1, 0, size_, first, last, bytes);
}

template <bool kFirst>
Slot SlotRoom::Below(int32_t node, int32_t begin, int32_t end, int32_t first, int32_t last,
                     int64_t bytes) const {
  if (first >= end || last <= begin || first >= last || least_[node] >= bytes) return kNoSlot;
  if (end - begin == 1) return Slot(begin);
  const int32_t middle = begin + (end - begin) / 2;
  const int64_t below = bytes - added_[node];
  const auto left = [&] { return Below<kFirst>(2 * node, begin, middle, first, last, below); };
  const auto right = [&] { return Below<kFirst>(2 * node + 1, middle, end, first, last, below); };
  const Slot found = kFirst ? left() : right();
  if (found != kNoSlot) return found;
  return kFirst ? right() : left();
}

}  // namespace spillway::core
