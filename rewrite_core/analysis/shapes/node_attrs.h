// The attributes of one node at a time, found in one pass over its bytes. (Graph::attr reads the
// node again for each name.)
//
// The bytes are untrusted: malformed attributes count as absent. Thread-compatible.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_NODE_ATTRS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_NODE_ATTRS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/graph/attr_entry.h"

namespace spillway::core {

class NodeAttrs {
 public:
  // Switches to another node, given its serialized NodeDef, which is read on first use.
  void Reset(absl::string_view node_bytes) {
    bytes_ = node_bytes;
    read_ = false;
  }

  // The serialized AttrValue of that attribute, or nullopt.
  absl::optional<absl::string_view> Find(absl::string_view key) {
    if (!read_) Read();
    // The last one counts, as in protobuf.
    for (size_t i = entries_.size(); i-- > 0;) {
      if (entries_[i].key == key) return entries_[i].value;
    }
    return absl::nullopt;
  }

 private:
  void Read();

  absl::string_view bytes_;
  std::vector<AttrEntry> entries_;  // Kept between nodes to reuse its memory.
  bool read_ = false;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_NODE_ATTRS_H_
