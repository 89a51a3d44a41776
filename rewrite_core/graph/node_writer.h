// Writing NodeDefs: the new nodes of a rewrite, and those of the text form.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_NODE_WRITER_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_NODE_WRITER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace spillway::core {

// The fields of a node. Attribute values are serialized AttrValues (attr_value.h).
struct NodeSpec {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;  // `node`, `node:port`, `^node`; control inputs last.
  std::string device;               // Empty: none.
  std::vector<std::pair<std::string, std::string>> attrs;
};

// A data input as NodeDefs spell it: port 0 is omitted.
std::string Spelling(absl::string_view name, int port);

// The name of a node or a tensor as a part of a new node's: `_` for `/` and `:`.
std::string NameStem(absl::string_view name);

// Appends `spec` to `out` as a field `node` of a GraphDef. Attributes are written in the order of
// their names, so that the bytes are those of protobuf's deterministic serialization.
void AppendNodeField(const NodeSpec& spec, std::string* out);

// Reads the bytes of a NodeDef; malformed parts are left out.
NodeSpec ReadNode(absl::string_view node_def);

// The same as TensorFlow would read it: attributes by name, of a repeated one the last; without the
// undo record.
NodeSpec ReadCleanNode(absl::string_view node_def);

// Appends one attribute entry to the bytes of a NodeDef.
void AppendAttrField(absl::string_view key, absl::string_view value, std::string* node_def);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_NODE_WRITER_H_
