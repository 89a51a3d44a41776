#include "rewrite_core/analysis/shapes/shape_pool.h"

#include <algorithm>

namespace spillway::core {
namespace {

constexpr size_t kFirstTableSize = 256;

uint32_t Hash(absl::Span<const int64_t> list) {
  // Each step is the finalizer's first half of MurmurHash3 (public domain).
  uint64_t hash = list.size();
  for (int64_t item : list) {
    hash = (hash ^ static_cast<uint64_t>(item)) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return static_cast<uint32_t>(hash);
}

int64_t Product(absl::Span<const int64_t> list) {
  // A zero anywhere makes it 0, however large the others are.
  if (std::find(list.begin(), list.end(), 0) != list.end()) return 0;
  int64_t product = 1;
  bool fits = true;
  for (int64_t item : list) {
    if (item < 0) return ShapePool::kUnknownElements;
    fits = fits && !__builtin_mul_overflow(product, item, &product);
  }
  return fits ? product : ShapePool::kTooManyElements;
}

}  // namespace

ShapePool::ShapePool() : table_(kFirstTableSize, kUnknownShape) {
  records_.push_back({nullptr, 0, 0, kUnknownElements});
  Intern({});
}

ShapeId ShapePool::Intern(absl::Span<const int64_t> list) {
  const uint32_t hash = Hash(list);
  size_t slot = hash & (table_.size() - 1);
  for (; table_[slot] != 0; slot = (slot + 1) & (table_.size() - 1)) {
    const Record& record = records_[table_[slot]];
    if (record.hash == hash && record.size == list.size() &&
        std::equal(list.begin(), list.end(), record.items)) {
      return table_[slot];
    }
  }
  if (chunks_.empty() || used_ + list.size() > kChunkItems) {
    chunks_.push_back(std::make_unique<int64_t[]>(kChunkItems));
    used_ = 0;
  }
  int64_t* items = chunks_.back().get() + used_;
  std::copy(list.begin(), list.end(), items);
  used_ += list.size();
  const auto id = static_cast<ShapeId>(records_.size());
  records_.push_back({items, static_cast<uint32_t>(list.size()), hash, Product(list)});
  table_[slot] = id;
  if (records_.size() * 2 > table_.size()) Grow();
  return id;
}

void ShapePool::Grow() {
  table_.assign(table_.size() * 2, kUnknownShape);
  for (size_t id = 1; id < records_.size(); ++id) {
    size_t slot = records_[id].hash & (table_.size() - 1);
    while (table_[slot] != 0) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = static_cast<ShapeId>(id);
  }
}

}  // namespace spillway::core
