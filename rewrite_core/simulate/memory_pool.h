// The memory of one device, or of the host, as the simulator counts it: the bytes in use, the
// budget, and the operations that wait for memory, in order of their requests.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_MEMORY_POOL_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_MEMORY_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

// The waiting operations, in order, with the bytes each of them needs. Adding, finding and removing
// one take logarithmic time, so that a thousand waiting copies cost little.
class WaitingList {
 public:
  bool empty() const { return count_ == 0; }
  void Add(OpId op, int64_t bytes);
  // From now on each operation needs the result of `bytes`.
  void Rekey(absl::FunctionRef<int64_t(OpId)> bytes);
  void Clear();
  // Removes and returns the first operation that needs at most `free_bytes` and that `accepts`
  // accepts (called in order until it returns true); kNoOp if none.
  OpId TakeFirst(int64_t free_bytes, absl::FunctionRef<bool(OpId)> accepts);

 private:
  // Makes room for another one at the end.
  void Grow();
  void SetLeast();  // Recomputes all inner nodes.
  // Returns the first place from `from` on whose need is at most `free_bytes`; capacity_ if none.
  int32_t FindFrom(int32_t from, int64_t free_bytes) const;

  // A binary tree over the places; each node holds the minimum need below it. Place i is node
  // capacity_ + i. Vacant places hold the maximum.
  std::vector<int64_t> least_;
  std::vector<OpId> ops_;  // By place.
  int32_t capacity_ = 0;   // A power of two, or 0.
  int32_t end_ = 0;        // The first place after the last one taken.
  int32_t count_ = 0;
};

class MemoryPool {
 public:
  explicit MemoryPool(int64_t budget_bytes) : budget_(budget_bytes) {}
  // Returns to the state of a new pool.
  void Reset(int64_t budget_bytes);

  int64_t budget_bytes() const { return budget_; }
  int64_t in_use_bytes() const { return in_use_; }
  int64_t peak_bytes() const { return peak_; }
  // The operation whose allocation made the peak; kNoOp: the resident buffers did.
  OpId peak_op() const { return peak_op_; }

  bool Fits(int64_t bytes) const { return bytes <= budget_ - in_use_; }
  // REQUIRES: it fits. Returns true if this is a new peak.
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
  // Removes and returns the first waiting operation that needs at most `bytes` and that `accepts`
  // accepts; kNoOp if none.
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
