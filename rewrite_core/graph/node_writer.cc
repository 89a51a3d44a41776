#include "rewrite_core/graph/node_writer.h"

#include <algorithm>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

constexpr uint32_t kBytesType = 2;  // The length-delimited wire type.

}  // namespace

std::string Spelling(absl::string_view name, int port) {
  return port == 0 ? std::string(name) : absl::StrCat(name, ":", port);
}

std::string NameStem(absl::string_view name) {
  return absl::StrReplaceAll(name, {{"/", "_"}, {":", "_"}});
}

void AppendAttrField(absl::string_view key, absl::string_view value, std::string* node_def) {
  AppendVarint(node_def::kAttr << 3 | kBytesType, node_def);
  AppendVarint(BytesFieldSize(key.size()) + BytesFieldSize(value.size()), node_def);
  AppendBytesField(map_entry::kKey, key, node_def);
  AppendBytesField(map_entry::kValue, value, node_def);
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

NodeSpec ReadCleanNode(absl::string_view node_def) {
  NodeSpec node = ReadNode(node_def);
  auto& attrs = node.attrs;
  const auto key = [](const auto& attr) -> const std::string& { return attr.first; };
  // The last of each name comes first, and stays.
  std::reverse(attrs.begin(), attrs.end());
  std::stable_sort(attrs.begin(), attrs.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  attrs.erase(std::unique(attrs.begin(), attrs.end(),
                          [&](const auto& a, const auto& b) { return key(a) == key(b); }),
              attrs.end());
  attrs.erase(std::remove_if(attrs.begin(), attrs.end(),
                             [&](const auto& attr) { return key(attr) == kUndoAttr; }),
              attrs.end());
  return node;
}

void AppendNodeField(const NodeSpec& spec, std::string* out) {
  absl::InlinedVector<const std::pair<std::string, std::string>*, 8> attrs;
  for (const auto& attr : spec.attrs) attrs.push_back(&attr);
  std::sort(attrs.begin(), attrs.end(), [](const auto* a, const auto* b) { return *a < *b; });
  // A field is preceded by its size, so sizes are added up first to avoid writing anything twice.
  size_t size = BytesFieldSize(spec.name.size()) + BytesFieldSize(spec.op.size());
  for (const std::string& input : spec.inputs) size += BytesFieldSize(input.size());
  if (!spec.device.empty()) size += BytesFieldSize(spec.device.size());
  for (const auto* attr : attrs) {
    size +=
        BytesFieldSize(BytesFieldSize(attr->first.size()) + BytesFieldSize(attr->second.size()));
  }
  AppendVarint(graph_def::kNode << 3 | kBytesType, out);
  AppendVarint(size, out);
  AppendBytesField(node_def::kName, spec.name, out);
  AppendBytesField(node_def::kOp, spec.op, out);
  for (const std::string& input : spec.inputs) AppendBytesField(node_def::kInput, input, out);
  if (!spec.device.empty()) AppendBytesField(node_def::kDevice, spec.device, out);
  for (const auto* attr : attrs) AppendAttrField(attr->first, attr->second, out);
}

}  // namespace spillway::core
