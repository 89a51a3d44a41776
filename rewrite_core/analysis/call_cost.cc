#include "rewrite_core/analysis/call_cost.h"

#include <algorithm>
#include <utility>

#include "rewrite_core/analysis/shapes/function_body.h"
#include "rewrite_core/analysis/shapes/function_library.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/no_limits.h"
#include "rewrite_core/graph/node_writer.h"

namespace spillway::core {
namespace {

// The attributes of a Placeholder; empty if the shape is not known.
std::string ArgumentAttrs(DataType dtype, const ShapeView& shape) {
  std::string attrs, dims, value;
  if (!shape.known_rank) return attrs;
  for (int64_t dim : shape.dims) {
    if (dim < 0) return attrs;
    std::string size;
    AppendVarintField(shape_proto::kDimSize, static_cast<uint64_t>(dim), &size);
    AppendBytesField(shape_proto::kDim, size, &dims);
  }
  AppendBytesField(attr_value::kShape, dims, &value);
  AppendAttrField("dtype", TypeAttr(dtype), &attrs);
  AppendAttrField("shape", value, &attrs);
  return attrs;
}

// The memory of a body whose nodes run one after the other.
class BodyMemory {
 public:
  BodyMemory(const Graph& body, const Topology& topology, const Buffers& buffers)
      : body_(body), topology_(topology), buffers_(buffers) {
    last_reader_.assign(buffers.buffers().size(), kNoNode);
    is_outside_.assign(buffers.buffers().size(), false);
  }

  // The caller's: an argument or a result.
  void SetOutside(Tensor tensor) {
    if (const BufferIndex of = buffers_.buffer_of(tensor); of != kNoBuffer) is_outside_[of] = true;
  }

  // The peak, with `workspace_of` a node while it runs; kUnknownSize if a size is unknown, or if
  // something stays when the call ends.
  template <typename WorkspaceOf>
  int64_t Peak(const WorkspaceOf& workspace_of, StopPoller* poll) {
    for (NodeId id : topology_.order()) {
      for (Tensor input : body_.inputs(id)) {
        if (poll->Tick()) return kUnknownSize;
        if (const BufferIndex of = Inside(input); of != kNoBuffer) last_reader_[of] = id;
      }
    }
    std::vector<bool> lives(buffers_.buffers().size(), false);
    int64_t bytes = 0, peak = 0;
    for (NodeId id : topology_.order()) {
      for (int32_t port = 0; port < buffers_.num_outputs(id); ++port) {
        if (poll->Tick()) return kUnknownSize;
        const BufferIndex of = Inside({id, port});
        if (of == kNoBuffer || lives[of]) continue;
        const Buffers::Buffer& buffer = buffers_.buffers()[of];
        if (buffer.bytes == kUnknownSize || buffer.storage != Storage::kAllocated) {
          return kUnknownSize;
        }
        const BufferIndex reused = Reused({id, port});
        if (reused != kNoBuffer && lives[reused]) {
          lives[reused] = false;
          bytes -= buffers_.buffers()[reused].bytes;
        }
        lives[of] = true;
        bytes = SaturatingAdd(bytes, buffer.bytes);
      }
      peak = std::max(peak, SaturatingAdd(bytes, workspace_of(id)));
      const auto end = [&](Tensor tensor) {
        const BufferIndex of = Inside(tensor);
        if (of == kNoBuffer || !lives[of]) return;
        if (last_reader_[of] != kNoNode && last_reader_[of] != id) return;
        lives[of] = false;
        bytes -= buffers_.buffers()[of].bytes;
      };
      for (int32_t port = 0; port < buffers_.num_outputs(id); ++port) end({id, port});
      for (Tensor input : body_.inputs(id)) end(input);
    }
    return peak;
  }

 private:
  // The buffer of an input, last read by its node, that an output of that node takes over.
  BufferIndex Reused(Tensor output) const {
    const uint32_t inputs = buffers_.reusable_inputs(output);
    const absl::Span<const Tensor> read = body_.inputs(output.node);
    for (size_t i = 0; inputs != 0 && i < read.size(); ++i) {
      if (inputs != Buffers::kAnyInput && (i > 31 || (inputs >> i & 1) == 0)) continue;
      const BufferIndex of = Inside(read[i]);
      if (of != kNoBuffer && last_reader_[of] == output.node &&
          buffers_.buffers()[of].bytes == buffers_.bytes(output)) {
        return of;
      }
    }
    return kNoBuffer;
  }

  // The buffer on a GPU that only the body knows; kNoBuffer if none.
  BufferIndex Inside(Tensor tensor) const {
    if (tensor.is_control()) return kNoBuffer;
    const BufferIndex of = buffers_.buffer_of(tensor);
    if (of == kNoBuffer || is_outside_[of] || buffers_.buffers()[of].place < 0) return kNoBuffer;
    return of;
  }

  const Graph& body_;
  const Topology& topology_;
  const Buffers& buffers_;
  std::vector<NodeId> last_reader_;  // By buffer.
  std::vector<bool> is_outside_;
};

}  // namespace

CallCosts::CallCosts(const Graph& graph, const Shapes& shapes, const Hardware& hardware,
                     const v1::Step& step, const StopToken& stop)
    : graph_(graph), shapes_(shapes), hardware_(hardware), step_(step), stop_(stop), poll_(stop) {
  if (!graph.has_functions()) return;
  ForEachFunction(graph.bytes(), stop,
                  [this](absl::string_view name, absl::string_view function_def) {
                    functions_[name] = function_def;
                  });
}

absl::optional<NodeCost> CallCosts::Of(NodeId call) {
  absl::string_view name = graph_.op(call);
  if (name == "PartitionedCall" || name == "StatefulPartitionedCall") {
    const auto function = graph_.attr(call, "f");
    name = function ? AttrFunction(*function).value_or("") : "";
  }
  const auto function = functions_.find(name);
  if (function == functions_.end() || bytes_left_ < 0) return absl::nullopt;
  std::vector<std::string> arguments;
  std::string key(name);
  for (Tensor input : graph_.inputs(call)) {
    if (poll_.Tick()) return absl::nullopt;
    if (input.is_control()) break;
    arguments.push_back(ArgumentAttrs(shapes_.type(input).dtype, shapes_.shape(input)));
    if (arguments.back().empty()) return absl::nullopt;
    AppendBytesField(1, arguments.back(), &key);
  }
  bytes_left_ -= static_cast<int64_t>(key.size());  // A known call costs as much: its key was made.
  const auto [known, is_new] = costs_.try_emplace(std::move(key));
  if (is_new) known->second = Analyse(function->second, arguments);
  return known->second;
}

absl::optional<NodeCost> CallCosts::Analyse(absl::string_view function_def,
                                            const std::vector<std::string>& arguments) {
  bytes_left_ -= static_cast<int64_t>(function_def.size());
  if (bytes_left_ < 0) return absl::nullopt;
  FunctionBody text;
  const auto find = [this](absl::string_view name) {
    const auto found = functions_.find(name);
    return found == functions_.end() ? absl::string_view() : found->second;
  };
  if (!WriteFunctionBody(function_def, find, stop_, &text, &function_results_))
    return absl::nullopt;
  if (text.arguments.size() != arguments.size()) return absl::nullopt;
  // The body with its arguments, whose nodes come first, as placeholders.
  std::string bytes, node;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (poll_.Tick()) return absl::nullopt;
    node.clear();
    AppendBytesField(node_def::kName, text.arguments[i], &node);
    AppendBytesField(node_def::kOp, "Placeholder", &node);
    node += arguments[i];
    AppendBytesField(graph_def::kNode, node, &bytes);
  }
  size_t skipped = 0;
  WireReader reader(text.graph_def);
  while (reader.Next()) {
    if (poll_.Tick()) return absl::nullopt;
    if (skipped++ >= arguments.size()) bytes.append(reader.whole().data(), reader.whole().size());
  }

  const auto body = Graph::Parse(bytes, NoLimits(), stop_);
  if (!body.ok() || body->has_control_flow()) return absl::nullopt;
  for (int32_t op = 0; op < body->num_ops(); ++op) {
    if (IsFunction(body->op_name(op))) return absl::nullopt;
  }
  const auto topology = Topology::Build(*body, stop_);
  if (!topology.ok()) return absl::nullopt;
  const auto shapes = Shapes::Infer(*body, *topology, v1::Step(), stop_);
  if (!shapes.ok()) return absl::nullopt;
  const auto placement = Placement::Find(*body, *topology, *shapes, stop_);
  if (!placement.ok()) return absl::nullopt;
  const auto buffers = Buffers::Find(*body, *topology, *shapes, *placement, Conditionals(), Loops(),
                                     /*profile=*/nullptr, stop_);
  if (!buffers.ok()) return absl::nullopt;
  const auto costs =
      Costs::Estimate(*body, *shapes, *placement, *buffers, hardware_, GrapplerLayout(), step_,
                      /*profile=*/nullptr, stop_);
  if (!costs.ok()) return absl::nullopt;

  NodeCost sum;
  BodyMemory memory(*body, *topology, *buffers);
  const NodeId first(static_cast<int32_t>(arguments.size()));  // After the arguments.
  for (NodeId id(0); id < first; ++id) memory.SetOutside({id, 0});
  for (NodeId id = first; id < body->num_nodes(); ++id) {
    const NodeCost& cost = (*costs)[id];
    if (!cost.is_known) return absl::nullopt;
    sum.duration_ns = std::min(sum.duration_ns + cost.duration_ns, kMaxDurationNs);
    sum.flops += cost.flops;
    sum.memory_bytes += cost.memory_bytes;
  }
  for (const std::string& spelling : text.results) {
    const auto result = FindResult(*body, spelling);
    if (!result || result->port >= buffers->num_outputs(result->node)) return absl::nullopt;
    memory.SetOutside(*result);
  }
  sum.workspace_bytes =
      memory.Peak([&](NodeId id) { return id < first ? 0 : (*costs)[id].workspace_bytes; }, &poll_);
  if (sum.workspace_bytes == kUnknownSize) return absl::nullopt;
  return sum;
}

}  // namespace spillway::core
