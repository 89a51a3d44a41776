// Indices and slices as Python writes them.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_PYTHON_SLICE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_PYTHON_SLICE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace spillway::core {

// Returns the positions from 0 to size - 1 that `text` selects, ascending: an index (`3`, `-1`) or
// a slice (`3:5`, `-10:`, `::2`) with Python's meaning. An index out of range selects none. Returns
// nullopt if `text` is neither, or has step 0.
absl::optional<std::vector<int32_t>> SelectPositions(absl::string_view text, int32_t size);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_PYTHON_SLICE_H_
