// Interruptible sorting of long lists: std::sort of ten million items takes a second, during which
// it would not poll the token.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_BASE_POLLED_SORT_H_
#define SPILLWAY_REWRITE_CORE_BASE_POLLED_SORT_H_

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// Sorts [begin, end) by `less`, stably. Returns false if `poll` stopped it; the order is then
// unspecified.
template <typename Iterator, typename Less>
bool PolledSort(Iterator begin, Iterator end, const Less& less, StopPoller* poll) {
  using Item = typename std::iterator_traits<Iterator>::value_type;
  constexpr std::ptrdiff_t kRun = 32;  // Sorted in one go.
  const std::ptrdiff_t size = end - begin;
  for (std::ptrdiff_t at = 0; at < size; at += kRun) {
    const std::ptrdiff_t stop_at = std::min(at + kRun, size);
    for (std::ptrdiff_t i = at; i < stop_at; ++i) {
      if (poll->Tick()) return false;
    }
    std::stable_sort(begin + at, begin + stop_at, less);
  }
  // Merges runs in pairs: the first of the two is moved aside, and the merged run is written from
  // its start.
  std::vector<Item> first;
  for (std::ptrdiff_t run = kRun; run < size; run *= 2) {
    for (std::ptrdiff_t at = 0; at + run < size; at += 2 * run) {
      Iterator second = begin + at + run;
      const Iterator last = begin + std::min(at + 2 * run, size);
      if (!less(*second, *(second - 1))) continue;  // Already in order.
      first.clear();
      for (Iterator it = begin + at; it != second; ++it) {
        if (poll->Tick()) return false;
        first.push_back(std::move(*it));
      }
      Iterator to = begin + at;
      for (Item& item : first) {
        for (; second != last && less(*second, item); ++second, ++to) {
          if (poll->Tick()) return false;
          *to = std::move(*second);
        }
        *to++ = std::move(item);
      }
    }
  }
  return true;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_POLLED_SORT_H_
