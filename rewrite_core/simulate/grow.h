// Room behind long arrays. Vectors double what they hold; a plan adds little to much.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_GROW_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_GROW_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace spillway::core {

// Makes room for `more` items, and at most a sixteenth of what there is besides.
template <typename T>
void GrowBy(size_t more, std::vector<T>* items) {
  constexpr size_t kParts = 16;
  const size_t size = items->size();
  if (size + more > items->capacity()) items->reserve(size + std::max(more, size / kParts));
}

// Gives the memory back, too.
template <typename T>
void Release(std::vector<T>* items) {
  std::vector<T>().swap(*items);
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_GROW_H_
