// The text form of a graph, one line per node, for tests and human readers.
//
//   w = VariableV2() @/gpu:0 {dtype=float32, shape=(3,3)}
//   c = Conv2D(x, w/read:0, ^init) {T=float32, strides=[1,2,2,1], _output_shapes=[(?,8,8,3)]}
//
// Inputs are spelled as in the NodeDef. An empty device or attribute list is omitted. Values:
//   float32, int64, ...   a type             (2,?,3)  ()  (*)   a shape, a scalar's, unknown rank
//   3   0.5f   true       int, float, bool   "a\x00b"           bytes, escaped as in C
//   [v, v, ...]           a list of one kind; `[]` is the empty list
//   0x0a03...             any other AttrValue: its bytes
// A line `! 0x...` holds other fields of the GraphDef (library, versions), as bytes. `#` starts a
// comment line. Printing writes attributes in the order of their names, and omits fields of a
// NodeDef other than these five (debug info).
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_TEXT_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// The text form of a serialized GraphDef, and of one node.
std::string PrintGraph(const Graph& graph);
std::string PrintNode(const Graph& graph, NodeId id);

// The serialized GraphDef of a text form. INVALID_ARGUMENT naming line and column if it does not
// parse. The graph is not checked, so tests can also write invalid graphs.
absl::StatusOr<std::string> ParseGraphText(absl::string_view text);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_TEXT_H_
