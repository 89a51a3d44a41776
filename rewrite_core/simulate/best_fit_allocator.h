// BestFitAllocator: where memory lies, as TensorFlow's allocator of GPU memory (BFCAllocator) lays
// it out in one region. What is free may be enough and yet fragmented, and a piece that is handed
// out may be larger than what was asked for; so a step that fits by the sum of its bytes may still
// run out of memory.
//
// The rules of BFCAllocator: the smallest free chunk that is large enough, of several the one at
// the lowest address (its bins are ranges of sizes, so that is what looking from bin to bin finds).
// What is left over is split off if the chunk is at least twice as large as what was asked for, or
// larger by max_fragmentation_bytes; else the whole chunk is taken. (BFCAllocator::FindChunkPtr in
// tensorflow/core/common_runtime/bfc_allocator.cc: 128 MiB, or, where the session's
// gpu_options.experimental.internal_fragmentation_fraction is above 0, that share of the memory
// that the allocator may use.) A chunk that is freed is joined with free neighbours at once.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_BEST_FIT_ALLOCATOR_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_BEST_FIT_ALLOCATOR_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/btree_set.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {

class BestFitAllocator {
 public:
  using Chunk = int32_t;  // Valid until it is freed.
  static constexpr Chunk kNoChunk = -1;

  BestFitAllocator() = default;  // Of no region: Reset comes first.
  explicit BestFitAllocator(int64_t region_bytes,
                            int64_t max_fragmentation_bytes = kDefaultMaxFragmentationBytes) {
    Reset(region_bytes, max_fragmentation_bytes);
  }
  // As if it were new.
  void Reset(int64_t region_bytes, int64_t max_fragmentation_bytes);

  // kNoChunk if no free chunk is large enough. REQUIRES: bytes > 0.
  Chunk Allocate(int64_t bytes);
  void Free(Chunk chunk);

  // What can be had in one piece.
  int64_t largest_free_bytes() const { return free_.empty() ? 0 : std::get<0>(*free_.rbegin()); }

  // What is free, by bytes.
  template <typename Function>  // Of an address and bytes.
  void ForEachFree(Function&& function) const {
    for (const Key& key : free_) function(std::get<1>(key), std::get<0>(key));
  }

  // At least what was asked for.
  int64_t bytes(Chunk chunk) const { return pieces_[chunk].bytes; }
  int64_t address(Chunk chunk) const { return pieces_[chunk].address; }

 private:
  // A part of the region; they follow each other without gaps.
  struct Piece {
    int64_t address = 0;
    int64_t bytes = 0;
    Chunk previous = kNoChunk;
    Chunk next = kNoChunk;
    bool is_free = false;
  };
  using Key = std::tuple<int64_t, int64_t, Chunk>;

  Key KeyOf(Chunk chunk) const { return {bytes(chunk), address(chunk), chunk}; }
  // Takes `chunk` into its neighbour before it.
  void JoinWithPrevious(Chunk chunk);

  int64_t max_fragmentation_bytes_ = kDefaultMaxFragmentationBytes;
  std::vector<Piece> pieces_;
  std::vector<Chunk> unused_;  // Places in pieces_ for new ones.
  absl::btree_set<Key> free_;  // By bytes, then by address.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_BEST_FIT_ALLOCATOR_H_
