#include "rewrite_core/analysis/memory/variable_aliases.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/graph/attr_value.h"

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

// Whether this node may forward an input's buffer, if the op type alone does not decide.
bool MayForward(const Graph& graph, const Shapes& shapes, NodeId id) {
  const OpInfo& info = graph.op_info(id);
  if (!info.known) return true;  // A custom op: possibly.
  if (!info.forwards) return false;
  if (info.name == "Cast") {
    const auto from = graph.attr(id, "SrcT");
    const auto to = graph.attr(id, "DstT");
    return !from || !to || AttrType(*from) == AttrType(*to);
  }
  if (info.name == "Pad" || info.name == "PadV2") {  // If there is no padding.
    const auto paddings = ConstantOperand(graph, shapes, id);
    return !paddings || std::none_of(paddings->begin(), paddings->end(), IsNotZero);
  }
  if (info.name == "Transpose" || info.name == "ConjugateTranspose") {
    // If only dimensions of 1 move.
    const auto permutation = ConstantOperand(graph, shapes, id);
    return !permutation || !Reorders(shapes.shape(graph.inputs(id)[0]), *permutation);
  }
  if (info.name == "AddN") {
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    return inputs.size() < 2 || inputs[1].is_control();  // A sum of one input is that input.
  }
  return true;
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
      const Graph::Reader reader = readers[i];
      if (reader.port == kControl || aliases[reader.node] ||
          !MayForward(graph, shapes, reader.node)) {
        continue;
      }
      aliases[reader.node] = true;
      queue.push_back(reader.node);
    }
  }
  return aliases;
}

}  // namespace spillway::core
