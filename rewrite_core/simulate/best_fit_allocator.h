// BestFitAllocator: places memory in one region as TensorFlow's GPU allocator (BFCAllocator) does.
// Free memory may be sufficient but fragmented, and a chunk may be larger than the request, so a
// step that fits by the sum of its bytes may still run out of memory.
//
// The rules of BFCAllocator are best fit: the smallest free chunk that is large enough, and of
// several the one at the lowest address (its bins are ranges of sizes, so the search from bin to
// bin finds that one). The remainder is split off if the chunk is at least twice as large as the
// request, or larger by max_fragmentation_bytes; otherwise the whole chunk is taken.
// (BFCAllocator::FindChunkPtr in tensorflow/core/common_runtime/bfc_allocator.cc: 128 MiB, or, if
// the session's gpu_options.experimental.internal_fragmentation_fraction is above 0, that share of
// the memory that the allocator may use.) A freed chunk is immediately coalesced with free
// neighbours.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_BEST_FIT_ALLOCATOR_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_BEST_FIT_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {

class BestFitAllocator {
 public:
  using Chunk = int32_t;  // Valid until it is freed.
  static constexpr Chunk kNoChunk = -1;

  BestFitAllocator() = default;  // Has no region: call Reset first.
  explicit BestFitAllocator(int64_t region_bytes,
                            int64_t max_fragmentation_bytes = kDefaultMaxFragmentationBytes) {
    Reset(region_bytes, max_fragmentation_bytes);
  }
  // Returns to the state of a new allocator.
  void Reset(int64_t region_bytes, int64_t max_fragmentation_bytes);

  // Returns kNoChunk if no free chunk is large enough. REQUIRES: bytes > 0.
  Chunk Allocate(int64_t bytes);
  void Free(Chunk chunk);

  // The largest request that fits.
  int64_t largest_free_bytes() const { return free_.largest_bytes(); }
  // The bytes outside all chunks that are taken.
  int64_t free_bytes() const {
    int64_t bytes = 0;
    ForEach([&](Chunk chunk, bool is_free) { bytes += is_free ? pieces_[chunk].bytes : 0; });
    return bytes;
  }

  // Visits all chunks by address.
  template <typename Function>  // Takes a chunk, and whether it is free.
  void ForEach(Function&& function) const {
    if (pieces_.empty()) return;
    // A chunk keeps its number when it is split or joined with the next one: so does the first.
    for (Chunk chunk = 0; chunk != kNoChunk; chunk = pieces_[chunk].next) {
      function(chunk, pieces_[chunk].is_free);
    }
  }

  // At least the bytes requested.
  int64_t bytes(Chunk chunk) const { return pieces_[chunk].bytes; }
  int64_t address(Chunk chunk) const { return pieces_[chunk].address; }

 private:
  // A part of the region. The pieces cover it without gaps.
  struct Piece {
    int64_t address = 0;
    int64_t bytes = 0;
    Chunk previous = kNoChunk;
    Chunk next = kNoChunk;
    bool is_free = false;
  };
  struct FreePiece {
    int64_t bytes;
    int64_t address;
    Chunk chunk;

    // Without branches: which one is smaller cannot be predicted.
    friend bool operator<(const FreePiece& a, const FreePiece& b) {
      return (a.bytes < b.bytes) | ((a.bytes == b.bytes) & (a.address < b.address));
    }
  };

  // The free pieces by bytes, then by address. A step has tens of them, for which one sorted array
  // is faster than a tree (ResNet-50 in 8 GiB: planned in 0.89 of the time with absl::btree_set);
  // if there are many, no block has more than kMostInBlock.
  class FreeSet {
   public:
    void Clear() { blocks_.clear(); }
    void Insert(const FreePiece& piece);
    void Erase(const FreePiece& piece);  // REQUIRES: it is there.
    // Removes the first piece of at least `bytes`; returns kNoChunk if none.
    Chunk TakeFirst(int64_t bytes);
    int64_t largest_bytes() const { return blocks_.empty() ? 0 : blocks_.back().back().bytes; }

   private:
    using Block = std::vector<FreePiece>;
    static constexpr size_t kMostInBlock = 128;

    // The first block whose last piece is not before `piece`; the end if none.
    std::vector<Block>::iterator BlockOf(const FreePiece& piece);
    void Erase(std::vector<Block>::iterator block, Block::iterator piece);

    std::vector<Block> blocks_;  // In order; none is empty.
  };

  FreePiece FreePieceOf(Chunk chunk) const { return {bytes(chunk), address(chunk), chunk}; }
  // Merges `chunk` into its predecessor.
  void JoinWithPrevious(Chunk chunk);

  int64_t max_fragmentation_bytes_ = kDefaultMaxFragmentationBytes;
  std::vector<Piece> pieces_;
  std::vector<Chunk> unused_;  // Indices in pieces_ for reuse.
  FreeSet free_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_BEST_FIT_ALLOCATOR_H_
