#include "rewrite_core/graph/graph.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {

NodeId Graph::Find(absl::string_view name, uint32_t tag) const {
  return NodeId(names_.Find(name, tag, [this](int32_t id) { return this->name(NodeId(id)); }));
}

absl::string_view Graph::node_field(NodeId id) const {
  const Node& node = nodes_[id];
  return View(node.field_begin, node.begin + node.size - node.field_begin);
}

std::vector<absl::string_view> Graph::input_spellings(NodeId id) const {
  std::vector<absl::string_view> spellings;
  WireReader reader(node_bytes(id));
  while (reader.Next()) {
    if (reader.IsBytes(node_def::kInput)) spellings.push_back(reader.bytes());
  }
  return spellings;
}

absl::optional<absl::string_view> Graph::attr(NodeId id, absl::string_view key) const {
  absl::optional<absl::string_view> found;
  if (!indexed_attrs_.empty()) {
    if (const auto attrs = indexed_attrs_.find(id); attrs != indexed_attrs_.end()) {
      const auto entry = attrs->second.find(key);
      if (entry != attrs->second.end()) found = entry->second;
      return found;
    }
  }
  WireReader reader(node_bytes(id));
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key == key) found = entry.value;  // The last one counts, as in protobuf.
  }
  return found;
}

int CountDataInputs(const Graph& graph, NodeId id) {
  const absl::Span<const Tensor> inputs = graph.inputs(id);
  // Control inputs come last.
  const auto first_control = std::partition_point(inputs.begin(), inputs.end(),
                                                  [](Tensor input) { return !input.is_control(); });
  return static_cast<int>(first_control - inputs.begin());
}

bool HasDataReader(const Graph& graph, NodeId id) {
  const Graph::Readers readers = graph.readers(id);
  return !readers.empty() && readers[readers.size() - 1].port != kControl;
}

std::string TensorName(const Graph& graph, Tensor tensor) {
  return absl::StrCat(graph.name(tensor.node), ":", tensor.port);
}

}  // namespace spillway::core
