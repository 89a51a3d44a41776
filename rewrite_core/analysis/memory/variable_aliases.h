// Which nodes' outputs may share the buffer of a variable. Such a tensor is never swapped: its copy
// would stay in host memory while the variable is updated in place, whereas TensorFlow's late read
// of the buffer sees the update.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_VARIABLE_ALIASES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_VARIABLE_ALIASES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// One flag per node: some output is a reference to a variable, the value read from a resource, or
// reached from one of these through ops that forward buffers (Identity, Reshape, Switch, Enter,
// slices, ...). Conservative: may flag nodes that actually copy, but not a Pad or Transpose by a
// constant that certainly makes a new tensor.
absl::StatusOr<std::vector<bool>> FindVariableAliases(const Graph& graph, const Shapes& shapes,
                                                      const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_VARIABLE_ALIASES_H_
