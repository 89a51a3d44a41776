// Infers the number of rows of captured tables from which the graph only gathers rows, by computed
// indices. Unlike in variable_handles.h, no op states this; it follows from how TensorFlow builds
// the gradient and optimizers build their updates.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_TABLE_ROWS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_TABLE_ROWS_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/analysis/shapes/shape_pool.h"
#include "rewrite_core/analysis/shapes/tensor_fact.h"
#include "rewrite_core/analysis/shapes/variable_handles.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// The facts inferred so far: that of a node's output is at first[node] + port.
struct InferredFacts {
  const Graph& graph;
  const std::vector<uint32_t>& first;
  const std::vector<TensorFact>& facts;
};

// Adds to the facts about variables whose number of rows is still unknown:
// - The gradient of ResourceGather(table, indices) is indexed slices, whose values are reshaped to
//   [size of the indices] + shape of the table, from its second dimension on; and that shape is a
//   constant, because it was known in Python (_GatherGrad in python/ops/resource_variable_ops.py).
// - A table's slots are updated with the same indices tensor as the table itself.
// If constants, or tables with the same indices, disagree, nothing is added.
void NoteTableRows(const InferredFacts& inferred, ShapePool& pool, StopPoller* poll,
                   VariableFacts* variables);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_TABLE_ROWS_H_
