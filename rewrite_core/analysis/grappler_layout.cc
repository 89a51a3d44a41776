#include "rewrite_core/analysis/grappler_layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/op_rows.h"

namespace spillway::core {
namespace {

// How a family of ops is converted: the Transposer of generic_layout_optimizer_transposer.cc.
enum class Way : uint8_t {
  // With a data_format.
  kFormat,     // If output 0 is of rank 4 or 5.
  kFormatOf0,  // If input 0 is.
  // In any layout, if output 0 is of rank 4 or 5.
  kAny,
  kBinary,   // The operands of that rank; the others are scalars or vectors.
  kAll,      // All inputs.
  kConcat,   // All but the axis.
  kSelect,   // Fails if an operand is of another rank.
  kVectors,  // If the constant vectors have an element per dimension, and none is new or removed.
  kSplit,    // All outputs are of that rank.
  // In any layout, if input 0 is of that rank.
  kReduce,   // It keeps the dimensions, or the reduced ones are neighbours in both layouts.
  kSqueeze,  // It removes height and width.
  kShapes,   // Each input that comes converted. A shape is permuted in no memory to speak of.
  kEach,     // Likewise, and the output of its port.
  kSwitch,
};

constexpr uint32_t kAllPorts = ~uint32_t{0};

struct LayoutRow {
  absl::string_view ops;
  Way way;
  // In any layout: those of which one has to be converted (GetDataFaninPorts). If its way does not
  // choose among them, all are transposed.
  uint32_t inputs = 1;
  uint32_t outputs = 1;  // Those that are transposed, if its way does not choose.
  uint32_t vectors = 0;  // Inputs with an element per dimension, or a row.
};

constexpr LayoutRow kLayoutRows[] = {
    {"AvgPool BiasAdd Conv2D Conv3D DepthToSpace DepthwiseConv2dNative FusedBatchNorm "
     "FusedBatchNormV2 FusedBatchNormV3 FusedConv2DBiasActivation MaxPool SpaceToDepth",
     Way::kFormat},
    {"MaxPoolV2", Way::kFormatOf0},
    {"BiasAddGrad", Way::kFormatOf0, InputBit(0), 0},
    {"AvgPoolGrad", Way::kFormat, InputBit(1)},
    {"Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter",
     Way::kFormat, InputBit(0) | InputBit(2), 0},
    {"Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput", Way::kFormat,
     InputBit(2)},
    {"FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3", Way::kFormat,
     InputBit(0) | InputBit(1)},
    {"MaxPoolGrad MaxPoolGradGrad MaxPoolGradV2 MaxPoolGradGradV2", Way::kFormat,
     InputBit(0) | InputBit(1) | InputBit(2)},
    {"Abs Acos Acosh Angle Asin Asinh Atan Atanh Bitcast Cast Ceil CheckNumerics ComplexAbs Conj "
     "Cos Cosh Digamma Elu Enter Erf Erfc Exit Exp Expm1 FakeQuantWithMinMaxVars "
     "FakeQuantWithMinMaxArgs Floor GuaranteeConst Identity Imag Inv IsFinite IsInf IsNan "
     "LeakyRelu Lgamma Log LogicalNot Log1p Neg NextIteration OnesLike PreventGradient "
     "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 Real Reciprocal Relu "
     "Relu6 Rint Selu Sigmoid Sign Sin Sinh Snapshot Softplus Round Rsqrt Sqrt Square StopGradient "
     "Tan Tanh ZerosLike",
     Way::kAny},
    {"MirrorPad MirrorPadGrad Pad Tile", Way::kVectors, InputBit(0), 1, InputBit(1)},
    {"Slice", Way::kVectors, InputBit(0), 1, InputBit(1) | InputBit(2)},
    {"StridedSlice", Way::kVectors, InputBit(0), 1, InputBit(1) | InputBit(2) | InputBit(3)},
    {"ReverseV2", Way::kVectors},
    {"Fill", Way::kVectors, 0, 1, InputBit(0)},
    {"EluGrad InvGrad LeakyReluGrad ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad "
     "SigmoidGrad SoftplusGrad SoftsignGrad SqrtGrad TanhGrad",
     Way::kAny, InputBit(0) | InputBit(1)},
    {"Betainc", Way::kAny, InputBit(0) | InputBit(1) | InputBit(2)},
    {"Add AddV2 ApproximateEqual Atan2 Complex Div DivNoNan Equal FloorDiv FloorMod Greater "
     "GreaterEqual Igamma Igammac Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul "
     "MulNoNan NotEqual Polygamma Pow RealDiv SquaredDifference Sub TruncateDiv TruncateMod Xdivy "
     "Xlogy Zeta",
     Way::kBinary, InputBit(0) | InputBit(1)},
    {"AddN Merge RefMerge", Way::kAll, kAllPorts},
    {"Concat", Way::kConcat, kAllPorts & ~InputBit(0)},
    {"ConcatV2", Way::kConcat, kAllPorts},  // The axis is the last.
    {"Select SelectV2", Way::kSelect, InputBit(0) | InputBit(1) | InputBit(2)},
    {"Split", Way::kSplit, InputBit(1)},
    {"SplitV", Way::kSplit, InputBit(0)},
    {"All Any Max Mean Min Prod Sum", Way::kReduce},
    {"Squeeze", Way::kSqueeze},
    {"Shape ShapeN", Way::kShapes, kAllPorts},
    {"IdentityN", Way::kEach, kAllPorts},
    {"Switch RefSwitch", Way::kSwitch},
};

bool NeedsFormat(Way way) { return way == Way::kFormat || way == Way::kFormatOf0; }

}  // namespace

class GrapplerLayout::Finder {
 public:
  Finder(const Graph& graph, const Shapes& shapes, const Placement& placement,
         const ActiveNodes& active)
      : graph_(graph),
        shapes_(shapes),
        placement_(placement),
        active_(active),
        rows_(RowsByOp(graph, kLayoutRows)),
        is_target_(graph.num_nodes(), false) {
    for (NodeId target : active.targets) is_target_[target] = true;
  }

  // Whether the graph has an op with a format: conversion begins there.
  bool HasFormats() const {
    return std::any_of(rows_.begin(), rows_.end(), [](const LayoutRow* row) {
      return row != nullptr && NeedsFormat(row->way);
    });
  }
  // Whether NCHW is converted to NHWC, not NHWC to NCHW.
  bool WantsLast(const Hardware& hardware, StopPoller* poll) const;
  // Returns false if stopped. `nodes` stays empty if nothing is converted.
  bool Find(const Topology& topology, bool wants_last, StopPoller* poll, std::vector<Node>* nodes);

 private:
  // By output: whether a Transpose back to the layout of the file is behind it, or an op that works
  // in any layout has one before it.
  bool ComesConverted(Tensor input) const;
  // The same for any input that counts (GetDataFaninPorts).
  bool ComesConverted(NodeId id, const LayoutRow& row) const;
  Node Convert(NodeId id, const LayoutRow& row);
  // IsFaninPortsDimsNIfConst.
  bool HasVectors(NodeId id, uint32_t vectors, size_t rank) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
      if (!Has(vectors, static_cast<int32_t>(i)) || graph_.op(inputs[i].node) != "Const") continue;
      const ShapeView shape = shapes_.shape(inputs[i]);
      if (!shape.known_rank || shape.dims.empty() || shape.dims[0] != static_cast<int64_t>(rank)) {
        return false;
      }
    }
    return true;
  }
  bool ConvertsReduce(NodeId id) const;
  bool ConvertsSqueeze(NodeId id) const;
  bool AreAll(absl::Span<const int64_t> dims, size_t rank, bool batch, bool space,
              bool channel) const;

  size_t Rank(Tensor tensor) const {
    const ShapeView shape = shapes_.shape(tensor);
    return shape.known_rank && !lacks_rank_[tensor.node] ? shape.dims.size() : kUnknownRank;
  }
  bool HasOpenRank(NodeId id, const LayoutRow* row) const;
  // Notes which shapes ops that have a format read. Returns false if stopped.
  bool FindRead(const Topology& topology, StopPoller* poll);
  // Of an input; kUnknownRank if it is absent.
  size_t Rank(NodeId id, size_t input) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    return input < inputs.size() && !inputs[input].is_control() ? Rank(inputs[input])
                                                                : kUnknownRank;
  }
  static bool IsImage(size_t rank) { return rank == 4 || rank == 5; }
  // The default of the op's definition if it is absent.
  absl::string_view Format(NodeId id) const {
    const auto value = graph_.attr(id, "data_format");
    return value ? AttrString(*value).value_or("") : "NHWC";
  }
  bool IsTrue(NodeId id, absl::string_view attr, bool otherwise) const {
    const auto value = graph_.attr(id, attr);
    return value ? AttrBool(*value).value_or(otherwise) : otherwise;
  }
  bool IsZero(NodeId id, absl::string_view attr) const {
    const auto value = graph_.attr(id, attr);
    return !value || AttrInt(*value).value_or(0) == 0;
  }

  static constexpr size_t kUnknownRank = ~size_t{0};

  const Graph& graph_;
  const Shapes& shapes_;
  const Placement& placement_;
  const ActiveNodes& active_;
  const std::vector<const LayoutRow*> rows_;
  std::vector<bool> is_target_;
  bool wants_last_ = false;
  bool fails_ = false;
  std::vector<Node>* nodes_ = nullptr;
  // By node: its rank depends on feeds, whose shapes the pass does not trust (InferStatically in
  // graph_properties.cc, without assume_valid_feeds).
  std::vector<bool> open_rank_;
  // Of these: no op that has a format reads its shape, which would give it a rank, but not shapes
  // derived from it (SymbolicShapeManager::Merge).
  std::vector<bool> lacks_rank_;
  // By node: the node whose shape its first output has, through Identities, such as swap nodes; and
  // for it, whether an op that has a format reads it.
  std::vector<NodeId> shape_of_;
  std::vector<bool> has_format_;
  // By node of an op that works in any layout and is not converted: whether its inputs are.
  std::vector<bool> passes_on_;
};

// GetSrcAndDstDataFormats: half of the convolutions prefer NHWC.
bool GrapplerLayout::Finder::WantsLast(const Hardware& hardware, StopPoller* poll) const {
  int64_t convolutions = 0, half = 0, bfloat16 = 0, single = 0;
  bool has_gradients = false;
  for (NodeId id(0); id < graph_.num_nodes(); ++id) {
    if (poll->Tick()) return false;  // Find polls, too.
    const absl::string_view op = graph_.op(id);
    if (!active_.needed[id] || placement_.node(id) == kHostPlace || !absl::StartsWith(op, "Conv")) {
      continue;
    }
    const auto attr = graph_.attr(id, "T");
    const DataType type = attr ? AttrType(*attr) : kDtInvalid;
    has_gradients =
        has_gradients ||
        (type == kDtFloat32 && (op == "Conv2DBackpropFilter" || op == "Conv2DBackpropInput" ||
                                op == "Conv3DBackpropFilterV2" || op == "Conv3DBackpropInputV2"));
    if (op != "Conv2D" && op != "Conv3D") continue;
    ++convolutions;
    half += type == kDtHalf;
    bfloat16 += type == kDtBfloat16;
    single += type == kDtFloat32;
  }
  int64_t preferring = 0;
  if (hardware.compute_capability >= 7) preferring += half;
  if (hardware.compute_capability >= 8) {
    preferring += bfloat16;
    if (hardware.tf32 && !has_gradients) preferring += single;
  }
  return convolutions > 0 && 2 * preferring >= convolutions;
}

bool GrapplerLayout::Finder::FindRead(const Topology& topology, StopPoller* poll) {
  shape_of_.resize(graph_.num_nodes());
  std::iota(shape_of_.begin(), shape_of_.end(), NodeId(0));
  has_format_.assign(graph_.num_nodes(), false);
  for (NodeId id : topology.order()) {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    if (poll->Tick(1 + static_cast<int64_t>(inputs.size()))) return false;
    if (graph_.op(id) == "Identity" && !inputs.empty() && inputs[0].port == 0) {
      shape_of_[id] = shape_of_[inputs[0].node];
    }
    const LayoutRow* row = rows_[graph_.op_id(id)];
    if (row == nullptr || !NeedsFormat(row->way)) continue;
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
      if (inputs[i].port != 0 || !Has(row->inputs, static_cast<int32_t>(i))) continue;
      has_format_[shape_of_[inputs[i].node]] = true;
    }
  }
  return true;
}

bool GrapplerLayout::Finder::Find(const Topology& topology, bool wants_last, StopPoller* poll,
                                  std::vector<Node>* nodes) {
  wants_last_ = wants_last;
  nodes_ = nodes;
  nodes->assign(graph_.num_nodes(), {});
  passes_on_.assign(graph_.num_nodes(), false);
  open_rank_.assign(graph_.num_nodes(), false);
  lacks_rank_.assign(graph_.num_nodes(), false);
  if (!FindRead(topology, poll)) return false;
  bool any = false;
  for (NodeId id : topology.order()) {
    if (poll->Tick()) return false;
    const LayoutRow* row = rows_[graph_.op_id(id)];
    open_rank_[id] = HasOpenRank(id, row);
    lacks_rank_[id] = open_rank_[id] && !has_format_[shape_of_[id]];
    // The side of a conditional that is not taken is there, too.
    if (row == nullptr || !active_.needed[id] || active_.only_orders[id]) continue;
    const bool needs_format = NeedsFormat(row->way);
    const bool comes_converted = !needs_format && ComesConverted(id, *row);
    const bool is_kept =
        placement_.node(id) == kHostPlace || is_target_[id] || shapes_.IsFed(id) ||
        (needs_format ? (wants_last_ ? !HasChannelsFirst(Format(id)) : !HasChannelsLast(Format(id)))
                      : !comes_converted);
    if (!is_kept) (*nodes)[id] = Convert(id, *row);
    passes_on_[id] = comes_converted && !(*nodes)[id].is_converted;
    any = any || (*nodes)[id].is_converted;
    if (fails_) break;
  }
  if (!any || fails_) *nodes = {};  // Not kept: a graph may have very many.
  return true;
}

bool GrapplerLayout::Finder::HasOpenRank(NodeId id, const LayoutRow* row) const {
  const absl::string_view op = graph_.op(id);
  if (shapes_.IsFed(id) || op == "Placeholder" || op == "PlaceholderV2") return true;
  const bool one = op == "OneHot" || op == "ExpandDims" ||
                   (row != nullptr && (row->way == Way::kAny || row->way == Way::kBinary));
  const bool all = row != nullptr && row->way == Way::kAll;  // One known rank is that of all.
  bool is_open = false;
  for (Tensor input : graph_.inputs(id)) {
    if (input.is_control()) break;
    is_open = open_rank_[input.node];
    if (is_open == one) break;
  }
  return is_open && (one || all);
}

bool GrapplerLayout::Finder::ComesConverted(NodeId id, const LayoutRow& row) const {
  const uint32_t ports = row.inputs != 0 ? row.inputs : row.vectors;  // Of Fill, its dimensions.
  const absl::Span<const Tensor> inputs = graph_.inputs(id);
  for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
    if (Has(ports, static_cast<int32_t>(i)) && ComesConverted(inputs[i])) return true;
  }
  return false;
}

bool GrapplerLayout::Finder::ComesConverted(Tensor input) const {
  const Node& producer = (*nodes_)[input.node];
  return Has(producer.outputs, input.port) || passes_on_[input.node] ||
         (producer.is_converted && rows_[graph_.op_id(input.node)]->way == Way::kShapes);
}

GrapplerLayout::Node GrapplerLayout::Finder::Convert(NodeId id, const LayoutRow& row) {
  const absl::Span<const Tensor> inputs = graph_.inputs(id);
  Node node{row.inputs, row.outputs, true};
  const size_t rank = Rank({id, 0});
  switch (row.way) {
    case Way::kFormat:
      // FusedBatchNormGradTransposer: in training alone.
      if (absl::StartsWith(graph_.op(id), "FusedBatchNormGrad") &&
          !IsTrue(id, "is_training", true)) {
        return {};
      }
      return IsImage(rank) ? node : Node();
    case Way::kFormatOf0:
      return IsImage(Rank(id, 0)) ? node : Node();
    case Way::kAny:
      return IsImage(rank) ? node : Node();
    case Way::kBinary: {
      const size_t left = Rank(id, 0), right = Rank(id, 1);
      if (!IsImage(rank) || (left != rank && right != rank) || (left != rank && left > 1) ||
          (right != rank && right > 1)) {
        return {};
      }
      node.inputs = (left == rank ? InputBit(0) : 0) | (right == rank ? InputBit(1) : 0);
      return node;
    }
    case Way::kAll:
      if (!IsImage(rank)) return {};
      if (graph_.op_info(id).control_flow != ControlFlow::kMerge) return node;
      for (Tensor input : inputs) {  // IsEveryFaninAfterDstToSrcTransform.
        if (!input.is_control() && !ComesConverted(input)) return {};
      }
      return node;
    case Way::kConcat: {
      if (!IsImage(rank)) return {};
      size_t data = inputs.size();
      while (data > 0 && inputs[data - 1].is_control()) --data;
      if (data == 0) return {};
      // Without the axis of a ConcatV2; behind the last bit, it is an integer in host memory.
      if (graph_.op(id) != "Concat" && data <= kLastBit) {
        node.inputs = InputBit(static_cast<int>(data) - 1) - 1;
      }
      return node;
    }
    case Way::kSelect: {
      if (!IsImage(rank)) return {};
      const size_t condition = Rank(id, 0);
      if (condition > 1 && !IsImage(condition)) return {};
      node.inputs = InputBit(1) | InputBit(2) | (IsImage(condition) ? InputBit(0) : 0);
      // Permute: "Size of values 0 does not match size of permutation 4".
      for (size_t i = 1; i <= 2; ++i) {
        fails_ = fails_ || (Rank(id, i) != kUnknownRank && Rank(id, i) != rank);
      }
      return node;
    }
    case Way::kVectors:
      return IsImage(rank) && HasVectors(id, row.vectors, rank) && IsZero(id, "ellipsis_mask") &&
                     IsZero(id, "new_axis_mask") && IsZero(id, "shrink_axis_mask")
                 ? node
                 : Node();
    case Way::kSplit:
      node.outputs = kAllPorts;
      return IsImage(rank) ? node : Node();
    case Way::kReduce:
      node.outputs = IsTrue(id, "keep_dims", false) ? 1 : 0;
      return IsImage(Rank(id, 0)) && (node.outputs != 0 || ConvertsReduce(id)) ? node : Node();
    case Way::kSqueeze:
      node.outputs = 0;
      return ConvertsSqueeze(id) ? node : Node();
    case Way::kShapes:
    case Way::kEach:
      node.inputs = node.outputs = 0;
      for (size_t i = 0; i < std::min<size_t>(inputs.size(), kLastBit); ++i) {
        const bool converts = IsImage(Rank(id, i)) && ComesConverted(inputs[i]);
        if (converts) node.inputs |= InputBit(static_cast<int>(i));
      }
      if (row.way == Way::kEach) node.outputs = node.inputs;
      return node.inputs != 0 ? node : Node();
    case Way::kSwitch:
      node.outputs = kAllPorts;
      return IsImage(Rank(id, 0)) ? node : Node();
  }
  return {};
}

// Whether these are the dimensions, in any order, of one of the sets: `batch`, `space` and
// `channel` define it.
bool GrapplerLayout::Finder::AreAll(absl::Span<const int64_t> dims, size_t rank, bool batch,
                                    bool space, bool channel) const {
  const size_t channel_at = wants_last_ ? 1 : rank - 1;
  const auto is_in = [&](int64_t dim) {
    const size_t at = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
    return at == 0 ? batch : at == channel_at ? channel : at < rank && space;
  };
  return dims.size() == batch + channel + (space ? rank - 2 : 0) &&
         std::all_of(dims.begin(), dims.end(), is_in);
}

// IsReduceAxisSupported.
bool GrapplerLayout::Finder::ConvertsReduce(NodeId id) const {
  const absl::Span<const Tensor> inputs = graph_.inputs(id);
  if (inputs.size() < 2 || graph_.op(inputs[1].node) != "Const") return false;
  const auto axes = shapes_.value(inputs[1]);
  if (!axes) return false;
  const size_t rank = Rank(id, 0);
  return AreAll(*axes, rank, true, true, true) || AreAll(*axes, rank, false, true, true) ||
         AreAll(*axes, rank, true, true, false) || AreAll(*axes, rank, false, true, false) ||
         AreAll(*axes, rank, false, false, true);
}

// IsInputConvertible and IsDimsSupported. TensorFlow does not know height and width of feeds, and
// may not convert a node converted here, whose tensor is as small as its channels.
bool GrapplerLayout::Finder::ConvertsSqueeze(NodeId id) const {
  constexpr size_t kRank = 4;
  const ShapeView shape = shapes_.shape(graph_.inputs(id)[0]);
  const size_t height = wants_last_ ? 2 : 1;
  if (!shape.known_rank || shape.dims.size() != kRank || shape.dims[height] != 1 ||
      shape.dims[height + 1] != 1) {
    return false;
  }
  const auto attr = graph_.attr(id, "squeeze_dims");
  const std::vector<int64_t> dims = attr ? AttrInts(*attr, kRank) : std::vector<int64_t>();
  const size_t rank = Rank({id, 0});
  return (rank == 2 && (dims.empty() || AreAll(dims, kRank, false, true, false))) ||
         (rank == 1 && (dims.empty() || AreAll(dims, kRank, true, true, false)));
}

absl::StatusOr<GrapplerLayout> GrapplerLayout::Find(
    const Graph& graph, const Topology& topology, const Shapes& shapes, const Placement& placement,
    const Hardware& hardware, const ActiveNodes& active, const StopToken& stop) {
  GrapplerLayout layout;
  if (placement.devices().empty()) return layout;
  Finder finder(graph, shapes, placement, active);
  if (!finder.HasFormats()) return layout;
  StopPoller poll(stop);
  if (!finder.Find(topology, finder.WantsLast(hardware, &poll), &poll, &layout.nodes_)) {
    return stop.status("layout");
  }
  return layout;
}

}  // namespace spillway::core
