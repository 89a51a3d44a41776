// The adjacent pieces of memory that would hold a request at the least cost, as an evicting
// allocator takes them: the sliding window of Coop (Zhang and others 2023).
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_CHEAPEST_WINDOW_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_CHEAPEST_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spillway::core {

struct WindowPiece {
  int64_t address = 0;
  int64_t bytes = 0;
  // Of freeing it; 0 if it is free. At least 0.
  double cost = 0;
};

// A range of pieces, without `end`; may be empty.
struct PieceWindow {
  size_t begin = 0, end = 0;
};

// `pieces`: those that are free or may be freed, by address; others are left out. Of several
// equally cheap windows, returns the first.
inline PieceWindow CheapestWindow(const std::vector<WindowPiece>& pieces, int64_t bytes) {
  PieceWindow best;
  double least_cost = -1, cost = 0;
  int64_t held = 0;
  size_t begin = 0;
  // For each piece, the shortest sufficient window that ends with it.
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && pieces[i - 1].address + pieces[i - 1].bytes != pieces[i].address) {
      begin = i;
      held = 0;
      cost = 0;
    }
    held += pieces[i].bytes;
    cost += pieces[i].cost;
    for (; held - pieces[begin].bytes >= bytes; ++begin) {
      held -= pieces[begin].bytes;
      cost -= pieces[begin].cost;
    }
    if (held >= bytes && (least_cost < 0 || cost < least_cost)) {
      least_cost = cost;
      best = {begin, i + 1};
    }
  }
  return best;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_CHEAPEST_WINDOW_H_
