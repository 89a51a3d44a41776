#include "rewrite_core/analysis/node_attrs.h"

namespace spillway::core {

void NodeAttrs::Read() {
  read_ = true;
  entries_.clear();
  // Nearly all nodes consist of fields of the form: a tag of one byte, a size below 2^14, bytes.
  const auto* p = reinterpret_cast<const unsigned char*>(bytes_.data());
  const auto* const end = p + bytes_.size();
  while (end - p >= 3) {
    size_t size = p[1];
    size_t header = 2;
    if (size >= 0x80) {
      if (p[2] >= 0x80) break;
      size = (size & 0x7f) | size_t{p[2]} << 7;
      header = 3;
    }
    if (p[0] >= 0x80 || (p[0] & 7) != 2 || size > static_cast<size_t>(end - p) - header) break;
    p += header;
    if (p[-static_cast<int>(header)] == (node_def::kAttr << 3 | 2)) {
      entries_.push_back(ReadAttrEntry({reinterpret_cast<const char*>(p), size}));
    }
    p += size;
  }
  // What is left has another form.
  WireReader reader({reinterpret_cast<const char*>(p), static_cast<size_t>(end - p)});
  while (reader.Next()) {
    if (reader.IsBytes(node_def::kAttr)) entries_.push_back(ReadAttrEntry(reader.bytes()));
  }
}

}  // namespace spillway::core
