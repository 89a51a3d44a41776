#include "rewrite_core/analysis/shapes/node_attrs.h"

namespace spillway::core {

void NodeAttrs::Read() {
  read_ = true;
  entries_.clear();
  WireReader reader(bytes_);
  while (reader.Next()) {
    if (reader.IsBytes(node_def::kAttr)) entries_.push_back(ReadAttrEntry(reader.bytes()));
  }
}

}  // namespace spillway::core
