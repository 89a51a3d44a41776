// The outputs of a node: how many, and of what type, from the op's signature and its attributes.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_OP_OUTPUTS_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_OP_OUTPUTS_H_

#include <vector>

#include "rewrite_core/graph/dtype.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// What one output port carries.
struct OutputType {
  DataType dtype = kDtInvalid;  // kDtInvalid: unknown.
  bool is_ref = false;          // A reference to a variable of that type.
};

// The number of outputs, or -1 if it cannot be told: an unknown op without `_output_shapes`, or an
// attribute that is missing or unreadable.
int CountOutputs(const Graph& graph, NodeId node);

// The types of outputs 0 to `count` - 1, in one pass. Unknown if the op is, or if an attribute is
// missing or unreadable, or if there are fewer outputs.
std::vector<OutputType> GetOutputTypes(const Graph& graph, NodeId node, int count);

// The type of one tensor.
OutputType GetOutputType(const Graph& graph, Tensor tensor);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_OP_OUTPUTS_H_
