// Graphs as protobuf messages with our own schema: a way to read a GraphDef that shares nothing
// with rewrite_core's reader. Everything here is deliberately naive: the core is compared with it.
#ifndef SPILLWAY_TESTS_TESTING_PROTO_GRAPH_H_
#define SPILLWAY_TESTS_TESTING_PROTO_GRAPH_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "spillway/v1/patch.pb.h"
#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {

// The message in `bytes`; ends the program if protobuf cannot read it.
GraphDef ReadProto(absl::string_view bytes);

// The message in protobuf's deterministic serialization (maps in order of their keys).
std::string WriteProto(const GraphDef& graph);

// The same with the attributes of nodes in the opposite order, as another process may write them.
std::string WriteProtoBackward(const GraphDef& graph);

// A length-delimited field of a message.
std::string BytesField(int field, const std::string& payload);

// A node's input, split into its parts.
struct InputName {
  std::string node;
  int port = 0;
  bool control = false;
};
InputName SplitInput(const std::string& input);

// Position of every node by name.
std::map<std::string, int> IndexNodes(const GraphDef& graph);

// Whether the graph has no cycles other than those closed by an edge NextIteration -> Merge, and
// all its inputs resolve.
bool IsAcyclic(const GraphDef& graph);

// The differences between two messages according to protobuf; empty without differences.
std::string Difference(const GraphDef& expected, const GraphDef& actual);

// `graph` with `patch` applied as described in patch.proto. Dies if the patch does not apply.
GraphDef ApplyPatch(const GraphDef& graph, const v1::GraphPatch& patch);

// `graph` without the attribute `key` on any node.
GraphDef WithoutAttr(const GraphDef& graph, const std::string& key);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_PROTO_GRAPH_H_
