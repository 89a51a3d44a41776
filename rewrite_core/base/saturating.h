// Sums and products of non-negative numbers that a graph decides, clamped on overflow.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_BASE_SATURATING_H_
#define SPILLWAY_REWRITE_CORE_BASE_SATURATING_H_

#include <cstdint>
#include <limits>

namespace spillway::core {

inline int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

inline int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_SATURATING_H_
