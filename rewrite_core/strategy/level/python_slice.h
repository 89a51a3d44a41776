// Indices and slices as Python writes them.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_PYTHON_SLICE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_PYTHON_SLICE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace spillway::core {

// The positions first, first + step, ... up to last.
struct Positions {
  int64_t first = 0;
  int64_t last = -1;  // Below `first`: none.
  int64_t step = 1;   // At least 1.

  bool empty() const { return last < first; }
};

// Returns the positions from 0 to size - 1 that `text` selects: an index (`3`, `-1`) or a slice
// (`3:5`, `-10:`, `::2`, `::-1`) with Python's meaning. An index out of range selects none. Returns
// nullopt if `text` is neither, or has step 0.
absl::optional<Positions> SelectPositions(absl::string_view text, int32_t size);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_PYTHON_SLICE_H_
