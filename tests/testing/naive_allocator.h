// A naive allocator that follows the rules of simulate/best_fit_allocator.h literally: every call
// examines all pieces of the region, in order of address.
#ifndef SPILLWAY_TESTS_TESTING_NAIVE_ALLOCATOR_H_
#define SPILLWAY_TESTS_TESTING_NAIVE_ALLOCATOR_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace spillway::testing {

class NaiveAllocator {
 public:
  struct Piece {
    int64_t address;
    int64_t bytes;
    bool is_free;
    friend bool operator==(const Piece& a, const Piece& b) {
      return a.address == b.address && a.bytes == b.bytes && a.is_free == b.is_free;
    }
  };

  explicit NaiveAllocator(int64_t region_bytes, int64_t max_fragmentation = 128 * 1024 * 1024)
      : max_fragmentation_(max_fragmentation), pieces_{{0, region_bytes, true}} {}

  // Returns the address; nullopt if nothing fits.
  std::optional<int64_t> Allocate(int64_t bytes) {
    int best = -1;
    for (int i = 0; i < static_cast<int>(pieces_.size()); ++i) {
      if (!pieces_[i].is_free || pieces_[i].bytes < bytes) continue;
      if (best < 0 || pieces_[i].bytes < pieces_[best].bytes) best = i;
    }
    if (best < 0) return std::nullopt;
    Piece& piece = pieces_[best];
    piece.is_free = false;
    const int64_t address = piece.address, left = piece.bytes - bytes;
    if (left > 0 && (piece.bytes >= 2 * bytes || left >= max_fragmentation_)) {
      piece.bytes = bytes;
      pieces_.insert(pieces_.begin() + best + 1, Piece{address + bytes, left, true});
    }
    return address;
  }

  void Free(int64_t address) {
    for (Piece& piece : pieces_) {
      if (piece.address == address) piece.is_free = true;
    }
    for (size_t i = 0; i + 1 < pieces_.size();) {
      if (pieces_[i].is_free && pieces_[i + 1].is_free) {
        pieces_[i].bytes += pieces_[i + 1].bytes;
        pieces_.erase(pieces_.begin() + i + 1);
      } else {
        ++i;
      }
    }
  }

  // By address.
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  int64_t max_fragmentation_;
  std::vector<Piece> pieces_;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_NAIVE_ALLOCATOR_H_
