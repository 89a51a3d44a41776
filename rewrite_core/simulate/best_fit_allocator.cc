#include "rewrite_core/simulate/best_fit_allocator.h"

namespace spillway::core {

void BestFitAllocator::Reset(int64_t region_bytes, int64_t max_fragmentation_bytes) {
  max_fragmentation_bytes_ = max_fragmentation_bytes;
  pieces_.clear();
  unused_.clear();
  free_.clear();
  pieces_.push_back({0, region_bytes, kNoChunk, kNoChunk, true});
  free_.insert(KeyOf(0));
}

BestFitAllocator::Chunk BestFitAllocator::Allocate(int64_t bytes) {
  const auto it = free_.lower_bound({bytes, 0, 0});
  if (it == free_.end()) return kNoChunk;
  const Chunk chunk = std::get<Chunk>(*it);
  free_.erase(it);
  pieces_[chunk].is_free = false;
  const int64_t left = pieces_[chunk].bytes - bytes;
  if (left == 0 || (left < bytes && left < max_fragmentation_bytes_)) return chunk;

  Chunk rest = static_cast<Chunk>(pieces_.size());
  if (unused_.empty()) {
    pieces_.emplace_back();
  } else {
    rest = unused_.back();
    unused_.pop_back();
  }
  Piece& piece = pieces_[chunk];
  pieces_[rest] = {piece.address + bytes, left, chunk, piece.next, true};
  if (piece.next != kNoChunk) pieces_[piece.next].previous = rest;
  piece.next = rest;
  piece.bytes = bytes;
  free_.insert(KeyOf(rest));
  return chunk;
}

void BestFitAllocator::Free(Chunk chunk) {
  if (const Chunk next = pieces_[chunk].next; next != kNoChunk && pieces_[next].is_free) {
    free_.erase(KeyOf(next));
    JoinWithPrevious(next);
  }
  if (const Chunk previous = pieces_[chunk].previous;
      previous != kNoChunk && pieces_[previous].is_free) {
    free_.erase(KeyOf(previous));
    JoinWithPrevious(chunk);
    chunk = previous;
  }
  pieces_[chunk].is_free = true;
  free_.insert(KeyOf(chunk));
}

void BestFitAllocator::JoinWithPrevious(Chunk chunk) {
  const Piece& piece = pieces_[chunk];
  const Chunk previous = piece.previous;
  pieces_[previous].bytes += piece.bytes;
  pieces_[previous].next = piece.next;
  if (piece.next != kNoChunk) pieces_[piece.next].previous = previous;
  unused_.push_back(chunk);
}

}  // namespace spillway::core
