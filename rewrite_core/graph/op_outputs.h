// The number and types of a node's outputs, and their sharing, from the op's row in the table and
// the node's attributes.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_OP_OUTPUTS_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_OP_OUTPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "rewrite_core/graph/dtype.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// The type of one output port.
struct OutputType {
  DataType dtype = kDtInvalid;  // kDtInvalid: unknown.
  bool is_ref = false;          // A reference to a variable of that type.
};

// The number of outputs, or -1 if it is unknown: an unknown op without `_output_shapes`, or an
// attribute that is missing or unreadable.
int CountOutputs(const Graph& graph, NodeId node);

// CountOutputs for callers with many tensor names, which may all belong to one node with long
// attributes: each node is counted only once. `graph` must outlive it. Not thread-safe.
class OutputCounts {
 public:
  explicit OutputCounts(const Graph& graph) : graph_(graph) {}
  int operator[](NodeId node) {
    const auto [count, is_new] = counts_.try_emplace(node, 0);
    if (is_new) count->second = CountOutputs(graph_, node);
    return count->second;
  }

 private:
  const Graph& graph_;
  absl::flat_hash_map<NodeId, int> counts_;
};

// The types of the outputs `ports` (ascending), in one pass over the node. A type is unknown if the
// op is, if an attribute is missing or unreadable, or if there is no such output. Costs no more
// than the node's bytes and the requested ports, however many outputs an attribute claims.
std::vector<OutputType> GetOutputTypes(const Graph& graph, NodeId node,
                                       absl::Span<const int32_t> ports);

// Whether an output may share the buffer of a data input: OpInfo::forwards, except a Cast to
// another type and a sum of several. True if the op is unknown.
bool MayForward(const Graph& graph, NodeId node);

// Likewise, for callers that do not know sizes: a Pad or a Transpose by a constant, for which this
// depends on them, is assumed not to.
bool MayShareMemory(const Graph& graph, NodeId node);

// The type of one tensor.
OutputType GetOutputType(const Graph& graph, Tensor tensor);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_OP_OUTPUTS_H_
