// Interned lists of 64-bit integers: shapes, and the values of small integer tensors.
//
// Equal lists have equal ids, so shapes compare as integers and a graph of 100,000 tensors keeps a
// few hundred lists. Spans stay valid as long as the pool: lists are never moved or freed.
//
// Thread safety: const methods may run concurrently.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_POOL_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_POOL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "rewrite_core/base/strong_id.h"

namespace spillway::core {

// A list in a pool.
using ShapeId = StrongId<struct ShapeIdTag>;
inline constexpr ShapeId kUnknownShape(0);  // No list: a shape of unknown rank, an unknown value.
inline constexpr ShapeId kScalar(1);        // The empty list.

// TensorFlow's limit on a tensor's rank.
inline constexpr int kMaxRank = 254;

class ShapePool {
 public:
  // Results of `elements` that are not a number of elements.
  static constexpr int64_t kUnknownElements = -1;
  static constexpr int64_t kTooManyElements = -2;  // More than 63 bits.

  ShapePool();
  ShapePool(ShapePool&&) = default;
  ShapePool& operator=(ShapePool&&) = default;

  // Graphs keep thousands of numbers here; one with more than this (512 MiB) is malicious.
  static constexpr int64_t kMaxItems = int64_t{1} << 26;
  bool full() const { return static_cast<int64_t>(chunks_.size()) * kChunkItems > kMaxItems; }

  // The id of that list. REQUIRES: at most kMaxListSize items. (The longest are shapes in one
  // tensor, as the gradient of a concat stacks them: 200 of rank 5.)
  static constexpr int kMaxListSize = 1024;
  ShapeId Intern(absl::Span<const int64_t> list);

  // The list; empty for kUnknownShape.
  absl::Span<const int64_t> operator[](ShapeId id) const {
    return {records_[id].items, records_[id].size};
  }
  // The product of the list: a shape's number of elements.
  int64_t elements(ShapeId id) const { return records_[id].elements; }

 private:
  static constexpr size_t kChunkItems = 4096;

  struct Record {
    const int64_t* items;
    uint32_t size;
    uint32_t hash;
    int64_t elements;
  };

  void Grow();

  std::vector<std::unique_ptr<int64_t[]>> chunks_;
  size_t used_ = 0;  // In the last chunk.
  std::vector<Record> records_;
  std::vector<ShapeId> table_;  // Open addressing; 0 is free. Its size is a power of 2.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_POOL_H_
