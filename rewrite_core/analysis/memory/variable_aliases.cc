#include "rewrite_core/analysis/memory/variable_aliases.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/graph/op_outputs.h"

namespace spillway::core {
namespace {

// An op whose output itself is a variable's buffer.
bool IsSource(const OpInfo& info) {
  return absl::StrContains(info.outputs, '&') || info.name == "ReadVariableOp" ||
         info.name == "_ReadVariablesOp";
}

// The value of a node's input 1, if it is a constant that feeds do not change.
absl::optional<absl::Span<const int64_t>> ConstantOperand(const Graph& graph, const Shapes& shapes,
                                                          NodeId id) {
  const absl::Span<const Tensor> inputs = graph.inputs(id);
  if (inputs.size() < 2 || inputs[1].is_control()) return absl::nullopt;
  if (graph.op(inputs[1].node) != "Const" || shapes.IsFed(inputs[1].node)) return absl::nullopt;
  return shapes.value(inputs[1]);
}

bool IsNotZero(int64_t element) { return element != 0 && element != kUnknownElement; }

// Whether a permutation certainly changes the order of elements: of dimensions that are certainly
// not 1.
bool Reorders(const ShapeView& shape, absl::Span<const int64_t> permutation) {
  if (!shape.known_rank || permutation.size() != shape.dims.size()) return false;
  int64_t last = -1;
  for (int64_t from : permutation) {
    if (from < 0 || from >= static_cast<int64_t>(shape.dims.size())) return false;
    if (shape.dims[from] == 1 || shape.dims[from] == kUnknownDim) continue;
    if (from < last) return true;
    last = from;
  }
  return false;
}

// Whether this node certainly makes a new tensor, by shapes and constants.
bool Copies(const Graph& graph, const Shapes& shapes, NodeId id) {
  const OpInfo& info = graph.op_info(id);
  if (info.name == "Pad" || info.name == "PadV2") {  // Unless there is no padding.
    const auto paddings = ConstantOperand(graph, shapes, id);
    return paddings && std::any_of(paddings->begin(), paddings->end(), IsNotZero);
  }
  if (info.name == "Transpose" || info.name == "ConjugateTranspose") {
    // Unless only dimensions of 1 move.
    const auto permutation = ConstantOperand(graph, shapes, id);
    return permutation && Reorders(shapes.shape(graph.inputs(id)[0]), *permutation);
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<bool>> FindVariableAliases(const Graph& graph, const Shapes& shapes,
                                                      const StopToken& stop) {
  std::vector<bool> aliases(graph.num_nodes(), false);
  std::vector<NodeId> queue;
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    if (!IsSource(graph.op_info(id))) continue;
    aliases[id] = true;
    queue.push_back(id);
  }
  for (size_t done = 0; done < queue.size(); ++done) {
    const Graph::Readers readers = graph.readers(queue[done]);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("analysis");
      const NodeId reader = readers[i].node;
      if (readers[i].port == kControl || aliases[reader] || !MayForward(graph, reader) ||
          Copies(graph, shapes, reader)) {
        continue;
      }
      aliases[reader] = true;
      queue.push_back(reader);
    }
  }
  return aliases;
}

}  // namespace spillway::core
