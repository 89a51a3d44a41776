// One entry of a NodeDef's attribute map: its name and its serialized AttrValue.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_ATTR_ENTRY_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_ATTR_ENTRY_H_

#include "absl/strings/string_view.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {

// Attributes that a node, a function or a call may have: each reader of attributes goes through all
// of a node's without polling the stop token; this limit keeps that below a millisecond.
// TensorFlow's nodes have some dozens.
inline constexpr int kMaxAttributes = 10'000;

struct AttrEntry {
  absl::string_view key;
  absl::string_view value;
};

// Reads the payload of a field `attr`. A missing or malformed part is empty; if a key or value is
// repeated, the last one counts, as in protobuf.
inline AttrEntry ReadAttrEntry(absl::string_view payload) {
  // Fast path for every serializer's form: one key of fewer than 128 bytes, then one value of fewer
  // than 128 bytes, and nothing else. Most entries look like this, and reading them dominates the
  // cost of parsing.
  const auto byte = [&payload](size_t i) { return static_cast<unsigned char>(payload[i]); };
  if (payload.size() >= 4 && byte(0) == (map_entry::kKey << 3 | 2) && byte(1) < 0x80) {
    const size_t value_tag = 2 + size_t{byte(1)};
    if (value_tag + 2 <= payload.size() && byte(value_tag) == (map_entry::kValue << 3 | 2) &&
        byte(value_tag + 1) < 0x80 && value_tag + 2 + byte(value_tag + 1) == payload.size()) {
      return {payload.substr(2, byte(1)), payload.substr(value_tag + 2)};
    }
  }
  AttrEntry entry;
  WireReader reader(payload);
  while (reader.Next()) {
    if (reader.IsBytes(map_entry::kKey)) entry.key = reader.bytes();
    if (reader.IsBytes(map_entry::kValue)) entry.value = reader.bytes();
  }
  return entry;
}

// Whether the current field of a NodeDef's reader is the undo record.
inline bool IsUndoField(const WireReader& reader) {
  return reader.IsBytes(node_def::kAttr) && ReadAttrEntry(reader.bytes()).key == kUndoAttr;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_ATTR_ENTRY_H_
