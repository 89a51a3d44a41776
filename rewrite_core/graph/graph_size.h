// The size of a GraphDef before it is parsed: one pass over its bytes that keeps nothing.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_SIZE_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_SIZE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

struct GraphSize {
  int64_t nodes = 0;
  int64_t inputs = 0;

  // The minimum memory for any work on it, in bytes: the graph's index and the facts about each
  // node. (Measured with a counting operator new: indexing takes 79 bytes per node and 17 per
  // input; a rewrite with forecasts and a report takes up to 1,500 and 30.)
  int64_t least_memory_bytes() const { return 120 * nodes + 30 * inputs; }
};

// If the bytes are not a GraphDef, counts as far as possible. Ends early if stopped.
GraphSize MeasureGraph(absl::string_view bytes, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_GRAPH_SIZE_H_
