#include "rewrite_core/simulate/memory_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace spillway::core {
namespace {

constexpr int64_t kNobody = std::numeric_limits<int64_t>::max();
constexpr int32_t kSmallest = 8;

}  // namespace

void WaitingList::Add(OpId op, int64_t bytes) {
  if (count_ == 0) end_ = 0;
  if (end_ == capacity_) Grow();
  ops_[end_] = op;
  int32_t node = capacity_ + end_;
  least_[node] = bytes;
  while (node /= 2) least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  ++end_;
  ++count_;
}

int32_t WaitingList::FindFrom(int32_t from, int64_t free_bytes) const {
  if (from >= capacity_) return capacity_;
  int32_t node = capacity_ + from;
  while (least_[node] > free_bytes) {
    // Moves to the next part of the tree.
    while (node % 2 == 1) node /= 2;
    if (node == 0) return capacity_;  // It was the last one.
    ++node;
  }
  while (node < capacity_) node = 2 * node + (least_[2 * node] <= free_bytes ? 0 : 1);
  return node - capacity_;
}

OpId WaitingList::TakeFirst(int64_t free_bytes, absl::FunctionRef<bool(OpId)> accepts) {
  free_bytes = std::min(free_bytes, kNobody - 1);
  int32_t place = FindFrom(0, free_bytes);
  while (place < capacity_ && !accepts(ops_[place])) place = FindFrom(place + 1, free_bytes);
  if (place == capacity_) return kNoOp;
  int32_t node = capacity_ + place;
  least_[node] = kNobody;
  while (node /= 2) least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  --count_;
  return ops_[place];
}

void WaitingList::Grow() {
  // Compacts the waiting operations; the tree doubles only if they fill half of it.
  std::vector<std::pair<OpId, int64_t>> left;
  for (int32_t place = 0; place < end_; ++place) {
    const int64_t bytes = least_[capacity_ + place];
    if (bytes != kNobody) left.emplace_back(ops_[place], bytes);
  }
  if (2 * count_ >= capacity_) capacity_ = std::max(kSmallest, 2 * capacity_);
  ops_.resize(capacity_);
  least_.assign(2 * static_cast<size_t>(capacity_), kNobody);
  end_ = static_cast<int32_t>(left.size());
  for (int32_t place = 0; place < end_; ++place) {
    ops_[place] = left[place].first;
    least_[capacity_ + place] = left[place].second;
  }
  SetLeast();
}

void WaitingList::SetLeast() {
  for (int32_t node = capacity_ - 1; node > 0; --node) {
    least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  }
}

void WaitingList::Rekey(absl::FunctionRef<int64_t(OpId)> bytes) {
  for (int32_t place = 0; place < end_; ++place) {
    int64_t& least = least_[capacity_ + place];
    if (least != kNobody) least = bytes(ops_[place]);
  }
  SetLeast();
}

void WaitingList::Clear() {
  if (count_ > 0) std::fill(least_.begin(), least_.end(), kNobody);
  end_ = count_ = 0;
}

void MemoryPool::Reset(int64_t budget_bytes) {
  budget_ = budget_bytes;
  in_use_ = peak_ = 0;
  peak_op_ = kNoOp;
  waiting_.Clear();
}

}  // namespace spillway::core
