// Which operations TensorFlow's layout pass converts to the other layout before a step runs, NHWC
// to NCHW on most GPUs (Keras's default is NHWC). It puts a Transpose on every edge between an
// operation that it converted and one that it did not, such as a swap node, which is on the CPU;
// two in a row that cancel each other are removed, and those of one tensor become one when common
// subexpressions are eliminated.
//
// The rules are those of tensorflow/core/grappler/optimizers/generic_layout_optimizer.cc and
// ..._transposer.cc in TensorFlow 2.15: ops that have a data_format are converted if it is the one
// to convert from (GetSrcAndDstDataFormats); ops that work in any layout, if their inputs come from
// such an op, through others that work in any (IsAfterDstToSrcTransform). Nothing is converted that
// is fetched or fed. If one operation makes the pass fail (a SelectV2 that reads a scalar, as in
// dropout), it converts nothing at all.
//
// Thread safety: immutable.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPPLER_LAYOUT_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPPLER_LAYOUT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/flow/active_nodes.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

// Of the attribute data_format; both false: it is neither.
inline bool HasChannelsLast(absl::string_view format) {
  return format == "NHWC" || format == "NDHWC";
}
inline bool HasChannelsFirst(absl::string_view format) {
  return format == "NCHW" || format == "NCDHW";
}

class GrapplerLayout {
 public:
  // Converts nothing.
  GrapplerLayout() = default;

  // Errors: those of `stop`. Linear in the graph.
  static absl::StatusOr<GrapplerLayout> Find(const Graph& graph, const Topology& topology,
                                             const Shapes& shapes, const Placement& placement,
                                             const Hardware& hardware, const ActiveNodes& active,
                                             const StopToken& stop);

  bool empty() const { return nodes_.empty(); }
  int64_t CountConverted() const {
    return std::count_if(nodes_.begin(), nodes_.end(),
                         [](const Node& node) { return node.is_converted; });
  }
  // Whether the node runs in the other layout.
  bool IsConverted(NodeId id) const { return !empty() && nodes_[id].is_converted; }
  // Whether it writes the tensor in the other layout; whether it reads that input in it.
  bool WritesOther(Tensor tensor) const {
    return !empty() && tensor.port >= 0 && Has(nodes_[tensor.node].outputs, tensor.port);
  }
  bool ReadsOther(NodeId id, int32_t input) const {
    return !empty() && Has(nodes_[id].inputs, input);
  }

 private:
  class Finder;

  // Sets of ports: the last bit stands for all from there on.
  struct Node {
    uint32_t inputs = 0;
    uint32_t outputs = 0;
    bool is_converted = false;
  };
  static constexpr int32_t kLastBit = 31;
  static bool Has(uint32_t set, int32_t port) { return set >> std::min(port, kLastBit) & 1; }

  std::vector<Node> nodes_;  // By node; empty: nothing is converted.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_GRAPPLER_LAYOUT_H_
