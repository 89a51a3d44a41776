// The memory of one device, or of the host, as the simulator counts it: what is in use, the budget,
// and the operations that wait for memory in the order in which they asked.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_MEMORY_POOL_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_MEMORY_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

// Operations with what each of them needs, in order. Adding, finding and removing one take
// logarithmic time, so that a thousand copies that wait cost nothing much.
class WaitingList {
 public:
  bool empty() const { return count_ == 0; }
  void Add(OpId op, int64_t bytes);
  // Each waits for what `bytes` says from now on.
  void Rekey(absl::FunctionRef<int64_t(OpId)> bytes);
  void Clear();
  // Removes and returns the first whose need is at most `free_bytes` and that `accepts` takes
  // (called in order, until it does); kNoOp if there is none.
  OpId TakeFirst(int64_t free_bytes, absl::FunctionRef<bool(OpId)> accepts);

 private:
  // Makes room for one more at the end.
  void Grow();
  void SetLeast();  // Of all inner nodes.
  // The first place from `from` on whose need is at most `free_bytes`; capacity_ if there is none.
  int32_t FindFrom(int32_t from, int64_t free_bytes) const;

  // A binary tree over the places, each node the least need below it; the place of number i is node
  // capacity_ + i. Places that nobody has need the most.
  std::vector<int64_t> least_;
  std::vector<OpId> ops_;  // By place.
  int32_t capacity_ = 0;   // A power of two, or 0.
  int32_t end_ = 0;        // The first place after the last one taken.
  int32_t count_ = 0;
};

class MemoryPool {
 public:
  explicit MemoryPool(int64_t budget_bytes) : budget_(budget_bytes) {}
  // As if it were new.
  void Reset(int64_t budget_bytes);

  int64_t budget_bytes() const { return budget_; }
  int64_t in_use_bytes() const { return in_use_; }
  int64_t peak_bytes() const { return peak_; }
  // The operation whose memory made the peak; kNoOp: what was there from the start.
  OpId peak_op() const { return peak_op_; }

  bool Fits(int64_t bytes) const { return bytes <= budget_ - in_use_; }
  // REQUIRES: it fits. Returns whether this is a new peak.
  bool Take(OpId op, int64_t bytes) {
    in_use_ += bytes;
    if (in_use_ <= peak_) return false;
    peak_ = in_use_;
    peak_op_ = op;
    return true;
  }
  void GiveBack(int64_t bytes) { in_use_ -= bytes; }

  bool somebody_waits() const { return !waiting_.empty(); }
  void Wait(OpId op, int64_t bytes) { waiting_.Add(op, bytes); }
  void Rekey(absl::FunctionRef<int64_t(OpId)> bytes) { waiting_.Rekey(bytes); }
  int64_t free_bytes() const { return budget_ - in_use_; }
  // The first of those who wait for no more than `bytes`, and whom `accepts` takes, who then waits
  // no longer; kNoOp if there is nobody.
  OpId NextServed(int64_t bytes, absl::FunctionRef<bool(OpId)> accepts) {
    return waiting_.TakeFirst(bytes, accepts);
  }

 private:
  int64_t budget_;
  int64_t in_use_ = 0;
  int64_t peak_ = 0;
  OpId peak_op_ = kNoOp;
  WaitingList waiting_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_MEMORY_POOL_H_
