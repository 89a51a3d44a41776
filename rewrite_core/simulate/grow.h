// Growing long arrays. Vectors double their capacity, but a plan adds little to a large workload.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_GROW_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_GROW_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace spillway::core {

// Makes room for `more` items or, if that is more, a sixteenth of the current size.
template <typename T>
void GrowBy(size_t more, std::vector<T>* items) {
  constexpr size_t kParts = 16;
  const size_t size = items->size();
  if (size + more > items->capacity()) items->reserve(size + std::max(more, size / kParts));
}

// Empties `items` and frees the memory.
template <typename T>
void Release(std::vector<T>* items) {
  std::vector<T>().swap(*items);
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_GROW_H_
