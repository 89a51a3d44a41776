#include "rewrite_core/graph/graph_size.h"

#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {

GraphSize MeasureGraph(absl::string_view bytes, const StopToken& stop) {
  GraphSize size;
  StopPoller poll(stop);
  WireReader fields(bytes);
  while (fields.Next()) {
    if (!fields.IsBytes(graph_def::kNode)) continue;
    ++size.nodes;
    WireReader node(fields.bytes());
    while (node.Next()) {
      if (poll.Tick()) return size;
      size.inputs += node.IsBytes(node_def::kInput);
    }
  }
  return size;
}

}  // namespace spillway::core
