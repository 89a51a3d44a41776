#include "rewrite_core/simulate/best_fit_allocator.h"

#include <algorithm>
#include <utility>

namespace spillway::core {

std::vector<BestFitAllocator::FreeSet::Block>::iterator BestFitAllocator::FreeSet::BlockOf(
    const FreePiece& piece) {
  return std::lower_bound(
      blocks_.begin(), blocks_.end(), piece,
      [](const Block& block, const FreePiece& of) { return block.back() < of; });
}

void BestFitAllocator::FreeSet::Insert(const FreePiece& piece) {
  if (blocks_.empty()) {
    blocks_.push_back({piece});
    return;
  }
  auto block = BlockOf(piece);
  if (block == blocks_.end()) --block;
  block->insert(std::lower_bound(block->begin(), block->end(), piece), piece);
  if (block->size() <= kMostInBlock) return;
  const auto half = block->begin() + kMostInBlock / 2;
  Block rest(half, block->end());
  block->erase(half, block->end());
  blocks_.insert(block + 1, std::move(rest));
}

void BestFitAllocator::FreeSet::Erase(const FreePiece& piece) {
  const auto block = BlockOf(piece);
  Erase(block, std::lower_bound(block->begin(), block->end(), piece));
}

BestFitAllocator::Chunk BestFitAllocator::FreeSet::TakeFirst(int64_t bytes) {
  const FreePiece least{bytes, 0, kNoChunk};
  const auto block = BlockOf(least);
  if (block == blocks_.end()) return kNoChunk;
  const auto piece = std::lower_bound(block->begin(), block->end(), least);
  const Chunk chunk = piece->chunk;
  Erase(block, piece);
  return chunk;
}

void BestFitAllocator::FreeSet::Erase(std::vector<Block>::iterator block, Block::iterator piece) {
  block->erase(piece);
  if (block->empty()) blocks_.erase(block);
}

void BestFitAllocator::Reset(int64_t region_bytes, int64_t max_fragmentation_bytes) {
  max_fragmentation_bytes_ = max_fragmentation_bytes;
  pieces_.clear();
  unused_.clear();
  free_.Clear();
  pieces_.push_back({0, region_bytes, kNoChunk, kNoChunk, true});
  free_.Insert(FreePieceOf(0));
}

BestFitAllocator::Chunk BestFitAllocator::Allocate(int64_t bytes) {
  const Chunk chunk = free_.TakeFirst(bytes);
  if (chunk == kNoChunk) return kNoChunk;
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
  free_.Insert(FreePieceOf(rest));
  return chunk;
}

void BestFitAllocator::Free(Chunk chunk) {
  if (const Chunk next = pieces_[chunk].next; next != kNoChunk && pieces_[next].is_free) {
    free_.Erase(FreePieceOf(next));
    JoinWithPrevious(next);
  }
  if (const Chunk previous = pieces_[chunk].previous;
      previous != kNoChunk && pieces_[previous].is_free) {
    free_.Erase(FreePieceOf(previous));
    JoinWithPrevious(chunk);
    chunk = previous;
  }
  pieces_[chunk].is_free = true;
  free_.Insert(FreePieceOf(chunk));
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
