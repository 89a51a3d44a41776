#include "rewrite_core/graph/node_writer.h"

#include <algorithm>

#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {

void AppendAttrField(absl::string_view key, absl::string_view value, std::string* node_def) {
  std::string entry;
  AppendBytesField(map_entry::kKey, key, &entry);
  AppendBytesField(map_entry::kValue, value, &entry);
  AppendBytesField(node_def::kAttr, entry, node_def);
}

NodeSpec ReadNode(absl::string_view node_def) {
  NodeSpec node;
  for (WireReader reader(node_def); reader.Next();) {
    if (reader.IsBytes(node_def::kName)) node.name = std::string(reader.bytes());
    if (reader.IsBytes(node_def::kOp)) node.op = std::string(reader.bytes());
    if (reader.IsBytes(node_def::kDevice)) node.device = std::string(reader.bytes());
    if (reader.IsBytes(node_def::kInput)) node.inputs.emplace_back(reader.bytes());
    if (reader.IsBytes(node_def::kAttr)) {
      const AttrEntry attr = ReadAttrEntry(reader.bytes());
      node.attrs.emplace_back(attr.key, attr.value);
    }
  }
  return node;
}

void AppendNodeField(const NodeSpec& spec, std::string* out) {
  std::string node;
  AppendBytesField(node_def::kName, spec.name, &node);
  AppendBytesField(node_def::kOp, spec.op, &node);
  for (const std::string& input : spec.inputs) AppendBytesField(node_def::kInput, input, &node);
  if (!spec.device.empty()) AppendBytesField(node_def::kDevice, spec.device, &node);
  auto attrs = spec.attrs;
  std::sort(attrs.begin(), attrs.end());
  for (const auto& [key, value] : attrs) AppendAttrField(key, value, &node);
  AppendBytesField(graph_def::kNode, node, out);
}

}  // namespace spillway::core
