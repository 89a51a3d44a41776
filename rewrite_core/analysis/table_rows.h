// How many rows captured tables have, of which a graph only tells that rows are taken from them, by
// indices that it computes. Nothing of that is an op's own word, as in variable_handles.h; it
// follows from how TensorFlow writes the gradient and optimizers write their updates.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_TABLE_ROWS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_TABLE_ROWS_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/analysis/shape_pool.h"
#include "rewrite_core/analysis/tensor_fact.h"
#include "rewrite_core/analysis/variable_handles.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// What is inferred of the graph so far: of an output of a node the fact at first[node] + port.
struct InferredFacts {
  const Graph& graph;
  const std::vector<uint32_t>& first;
  const std::vector<TensorFact>& facts;
};

// Adds to what nodes say of variables, where that leaves the rows open:
// - The gradient of ResourceGather(table, indices) is indexed slices, whose values are reshaped to
//   [size of the indices] + shape of the table, from its second dimension on; and that shape is a
//   constant, since Python knew it (_GatherGrad in python/ops/resource_variable_ops.py).
// - A table's slots are scattered to by the same tensor of indices as the table itself.
// Where constants or tables by the same indices do not agree, nothing is added.
void NoteTableRows(const InferredFacts& inferred, ShapePool& pool, StopPoller* poll,
                   VariableFacts* variables);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_TABLE_ROWS_H_
