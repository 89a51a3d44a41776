#include "rewrite_core/analysis/cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/analysis/call_cost.h"
#include "rewrite_core/analysis/kernel_temporaries.h"
#include "rewrite_core/analysis/shapes/shape_table.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/op_rows.h"

namespace spillway::core {
namespace {

// How the operations of a family are counted.
enum class Work : uint8_t {
  kMove,       // Not at all: the time is that of its bytes.
  kConv,       // Each element of `data` takes part in filter / (its last dimension) multiply-adds.
  kDepthwise,  // The same with filter / (its last two dimensions).
  kMatmul,     // Rows, columns and depth from the last two dimensions of the operands.
  kEinsum,     // The product of all labels.
  kWeights,    // Recurrent cells: each weight once per row of the sequence.
  kCall,       // A function: unknown.
};

// One row per family. Operands are input indices; kOut is output 0.
constexpr int8_t kOut = -1;
struct CostRow {
  absl::string_view ops;
  Work work = Work::kMove;
  // kConv, kDepthwise: the operands with the extent of the forward pass's output, and of its
  // filter. kWeights: the sequence, and the weights.
  int8_t data = 0;
  int8_t filter = 0;
  double products = 1;  // kWeights: a gradient computes two.
  // How often the first `passes_inputs` inputs are read; the others are read once.
  double passes = 1;
  int8_t passes_inputs = 0;
  // The number of inputs and outputs that count; 0: all. They are followed by cuDNN's reserve
  // space, of open size.
  int8_t counted = 0;
  // If above 0: the total bytes are this many times those of the largest input that is neither a
  // reference nor a handle (the gradient).
  double update_passes = 0;
  // Convolutions and matrix products: any of theirs; Estimator::ClassOf knows which. kBroadcast: if
  // an operand is smaller than the result, otherwise kElementwise.
  KernelClass kernels = KernelClass::kElementwise;
};

constexpr CostRow Conv(Work work, int8_t data, int8_t filter, absl::string_view ops) {
  CostRow row{ops, work};
  row.data = data;
  row.filter = filter;
  row.kernels =
      work == Work::kConv ? KernelClass::kConvolutionNchw : KernelClass::kDepthwiseConvolution;
  return row;
}
constexpr CostRow Cell(int8_t sequence, int8_t weights, double products, absl::string_view ops) {
  CostRow row{ops, Work::kWeights};
  row.data = sequence;
  row.filter = weights;
  row.products = products;
  row.kernels = KernelClass::kMatmul;
  return row;
}
// Reads its first `inputs` inputs `passes` times.
constexpr CostRow Passes(double passes, int8_t inputs, int8_t counted, absl::string_view ops) {
  CostRow row{ops, Work::kMove};
  row.passes = passes;
  row.passes_inputs = inputs;
  row.counted = counted;
  return row;
}
// Reads as much of its first `inputs` inputs as it writes.
constexpr CostRow Part(int8_t inputs, absl::string_view ops) { return Passes(0, inputs, 0, ops); }
constexpr CostRow Update(double passes, absl::string_view ops) {
  CostRow row{ops, Work::kMove};
  row.update_passes = passes;
  return row;
}

constexpr CostRow Of(KernelClass kernels, CostRow row) {
  row.kernels = kernels;
  return row;
}

constexpr char kCalls[] =
    "If StatelessIf Case StatelessCase While StatelessWhile For PartitionedCall "
    "StatefulPartitionedCall SymbolicGradient RemoteCall";

constexpr CostRow kCostRows[] = {
    Conv(Work::kConv, kOut, 1, "Conv2D Conv3D _FusedConv2D FusedConv2DBiasActivation"),
    Conv(Work::kConv, 2, 1, "Conv2DBackpropInput Conv3DBackpropInput Conv3DBackpropInputV2"),
    Conv(Work::kConv, 2, kOut, "Conv2DBackpropFilter Conv3DBackpropFilter Conv3DBackpropFilterV2"),
    Conv(Work::kDepthwise, kOut, 1, "DepthwiseConv2dNative _FusedDepthwiseConv2dNative"),
    Conv(Work::kDepthwise, 2, 1, "DepthwiseConv2dNativeBackpropInput"),
    Conv(Work::kDepthwise, 2, kOut, "DepthwiseConv2dNativeBackpropFilter"),
    Of(KernelClass::kMatmul,
       {"MatMul _FusedMatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 SparseMatMul", Work::kMatmul}),
    Of(KernelClass::kMatmul, {"Einsum", Work::kEinsum}),
    Cell(0, 3, 1, "CudnnRNN CudnnRNNV2 CudnnRNNV3 LSTMBlockCell"),
    Cell(0, 3, 2, "CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3"),
    Cell(1, 4, 1, "BlockLSTM BlockLSTMV2"),
    Cell(1, 4, 2, "BlockLSTMGrad BlockLSTMGradV2"),
    {kCalls, Work::kCall},
    // In training: once for mean and variance, once to normalize.
    Of(KernelClass::kNormalization,
       Passes(2, 1, 5, "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 _FusedBatchNormEx")),
    // The gradient and the input: once for the sums, once for the result.
    Of(KernelClass::kNormalization,
       Passes(2, 2, 5,
              "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 "
              "_FusedBatchNormGradEx")),
    Of(KernelClass::kNormalization, {"LRN LRNGrad"}),
    // The largest element, the sum of exponentials, the result.
    Of(KernelClass::kReduction, Passes(3, 1, 0,
                                       "Softmax LogSoftmax SoftmaxCrossEntropyWithLogits "
                                       "SparseSoftmaxCrossEntropyWithLogits")),
    Of(KernelClass::kReduction,
       {"Sum Mean Prod Max Min All Any EuclideanNorm ArgMax ArgMin L2Loss BiasAddGrad"}),
    Of(KernelClass::kTranspose,
       {"Transpose ConjugateTranspose SpaceToDepth DepthToSpace SpaceToBatchND BatchToSpaceND"}),
    Of(KernelClass::kPooling,
       {"MaxPool MaxPoolV2 MaxPoolWithArgmax MaxPool3D AvgPool AvgPool3D MaxPoolGrad MaxPoolGradV2 "
        "MaxPoolGradWithArgmax MaxPool3DGrad AvgPoolGrad AvgPool3DGrad"}),
    Of(KernelClass::kBroadcast,
       {"Add AddV2 Sub Mul MulNoNan Div RealDiv DivNoNan FloorDiv FloorMod Maximum Minimum Pow "
        "SquaredDifference Less LessEqual Greater GreaterEqual Equal NotEqual LogicalAnd LogicalOr "
        "SelectV2 BiasAdd BiasAddV1 BroadcastTo Tile"}),
    Of(KernelClass::kGather,
       {"ScatterNd TensorScatterUpdate TensorScatterAdd SegmentSum UnsortedSegmentSum "
        "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN"}),
    // The variable and each slot are read and written, the gradient is read. Assign: no slots, and
    // the variable is not read.
    Update(2, "Assign AssignVariableOp"),
    Update(3,
           "AssignAdd AssignSub AssignAddVariableOp AssignSubVariableOp ApplyGradientDescent "
           "ResourceApplyGradientDescent ApplyProximalGradientDescent "
           "ResourceApplyProximalGradientDescent"),
    Of(KernelClass::kGather,
       Update(3,
              "ScatterAdd ScatterSub ScatterUpdate ScatterMul ResourceScatterAdd "
              "ResourceScatterSub ResourceScatterUpdate")),
    // One slot.
    Update(5,
           "ApplyMomentum ResourceApplyMomentum ResourceApplyKerasMomentum ApplyAdagrad "
           "ResourceApplyAdagrad ApplyAdagradV2 ResourceApplyAdagradV2 ApplyProximalAdagrad "
           "ResourceApplyProximalAdagrad ApplyAddSign ResourceApplyAddSign ApplyPowerSign "
           "ResourceApplyPowerSign SparseApplyMomentum ResourceSparseApplyMomentum "
           "ResourceSparseApplyKerasMomentum SparseApplyAdagrad ResourceSparseApplyAdagrad "
           "SparseApplyAdagradV2 ResourceSparseApplyAdagradV2"),
    // Two slots.
    Update(7,
           "ApplyAdam ResourceApplyAdam ApplyAdaMax ResourceApplyAdaMax ApplyAdadelta "
           "ResourceApplyAdadelta ApplyRMSProp ResourceApplyRMSProp ApplyFtrl ResourceApplyFtrl "
           "ApplyFtrlV2 ResourceApplyFtrlV2 ApplyAdagradDA ResourceApplyAdagradDA "
           "SparseApplyAdadelta SparseApplyRMSProp SparseApplyFtrl SparseApplyFtrlV2 "
           "ResourceSparseApplyAdadelta ResourceSparseApplyRMSProp ResourceSparseApplyFtrl "
           "ResourceSparseApplyFtrlV2"),
    // Three.
    Update(9,
           "ApplyCenteredRMSProp ResourceApplyCenteredRMSProp ResourceApplyAdamWithAmsgrad "
           "SparseApplyCenteredRMSProp ResourceSparseApplyCenteredRMSProp"),
    Of(KernelClass::kGather, Part(1, "Gather GatherV2 GatherNd ResourceGather ResourceGatherNd")),
    Part(1, "Slice StridedSlice SplitV"),
    Part(2, "Split"),
};

// Matrix products are narrow if a dimension is smaller: cuBLAS multiplies in tiles of about this.
constexpr int64_t kNarrow = 128;

// The number of elements of a shape; -1 if unknown.
double Elements(absl::Span<const int64_t> dims) {
  double product = 1;
  for (int64_t dim : dims) {
    if (dim < 0) return -1;
    product *= static_cast<double>(dim);
  }
  return product;
}

class Estimator {
 public:
  Estimator(const Graph& graph, const Shapes& shapes, const Placement& placement,
            const Buffers& buffers, const Hardware& hardware, const GrapplerLayout& layout,
            const v1::Step& step)
      : graph_(graph),
        shapes_(shapes),
        placement_(placement),
        buffers_(buffers),
        hardware_(hardware),
        layout_(layout),
        bytes_per_s_(hardware.mem_bytes_per_s * hardware.mem_eff),
        workspace_bytes_(step.convolution_workspace_bytes()),
        rows_(RowsByOp(graph, kCostRows)) {
    if (CountsTemporaries(step)) temporaries_.emplace(graph, shapes, hardware, layout);
  }

  // For a node that launches a kernel. Sets `wanted_bytes` if it wants a workspace.
  NodeCost Estimate(NodeId id, int64_t* wanted_bytes) const {
    const CostRow* row = RowOf(id);
    NodeCost cost;
    const bool is_conv = row->work == Work::kConv || row->work == Work::kDepthwise;
    if (is_conv) cost.workspace_bytes = workspace_bytes_;
    const double flops = Flops(id, *row);
    const double bytes = Bytes(id, *row);
    cost.is_known = flops >= 0 && bytes >= 0 && row->work != Work::kCall;
    double busy_s = 0;
    if (cost.is_known) {
      cost.flops = flops;
      cost.memory_bytes = bytes;
      const double rate = hardware_.KernelRate(ClassOf(id, *row));
      busy_s =
          row->work == Work::kMove ? bytes / rate : std::max(flops / rate, bytes / bytes_per_s_);
    }
    if (temporaries_) {
      const KernelTemporaries::Use use = temporaries_->Of(id);
      cost.workspace_bytes = std::min(cost.workspace_bytes + use.bytes, kMaxTemporaryBytes);
      if (workspace_bytes_ == 0) *wanted_bytes = use.wanted_bytes;
      cost.memory_bytes += use.moved_bytes;
      busy_s += use.moved_bytes / hardware_.KernelRate(KernelClass::kTranspose);
    }
    cost.duration_ns = ToNanoseconds(hardware_.launch_s + busy_s);
    return cost;
  }

  // For a node that computes on the host.
  NodeCost EstimateOnHost(NodeId id) const {
    NodeCost cost;
    const double bytes = Bytes(id, *RowOf(id));
    if (bytes < kLeastHostBytes) return cost;
    cost.memory_bytes = bytes;
    cost.duration_ns = ToNanoseconds(bytes / hardware_.host_mem_bytes_per_s);
    cost.on_host_engine = true;
    return cost;
  }

 private:
  const CostRow* RowOf(NodeId id) const {
    static constexpr CostRow kOther{};
    const CostRow* row = rows_[graph_.op_id(id)];
    return row == nullptr ? &kOther : row;
  }

  ShapeView Operand(NodeId id, int number) const {
    if (number == kOut) return shapes_.shape({id, 0});
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    if (number >= static_cast<int>(inputs.size()) || inputs[number].is_control()) return {};
    return shapes_.shape(inputs[number]);
  }

  KernelClass ClassOf(NodeId id, const CostRow& row) const {
    const bool is_conv = row.kernels == KernelClass::kConvolutionNchw;
    if (row.kernels == KernelClass::kBroadcast) {
      return IsBroadcast(id) ? row.kernels : KernelClass::kElementwise;
    }
    if (!is_conv && row.kernels != KernelClass::kMatmul) return row.kernels;
    const auto type = graph_.attr(id, "T");
    const DataType dtype = type ? AttrType(*type) : kDtInvalid;
    const bool half = dtype == kDtHalf || dtype == kDtBfloat16;
    if (is_conv) {
      const auto format = graph_.attr(id, "data_format");
      const bool first = format && HasChannelsFirst(AttrString(*format).value_or(""));
      if (first != layout_.IsConverted(id)) {
        return half ? KernelClass::kHalfConvolutionNchw : KernelClass::kConvolutionNchw;
      }
      return half ? KernelClass::kHalfConvolutionNhwc : KernelClass::kConvolutionNhwc;
    }
    if (half) return KernelClass::kHalfMatmul;
    if (row.work != Work::kMatmul) return KernelClass::kMatmul;
    const ShapeView out = Operand(id, kOut);
    if (Elements(out.dims.subspan(0, out.dims.size() - 2)) > 1) return KernelClass::kBatchMatmul;
    for (int operand : {0, 1}) {
      const absl::Span<const int64_t> dims = Operand(id, operand).dims;
      if (std::min(dims[dims.size() - 1], dims[dims.size() - 2]) < kNarrow) {
        return KernelClass::kNarrowMatmul;
      }
    }
    return KernelClass::kMatmul;
  }

  bool IsBroadcast(NodeId id) const {
    const double result = Elements(Operand(id, kOut).dims);
    for (int i = 0; i < static_cast<int>(graph_.inputs(id).size()); ++i) {
      const double elements = Elements(Operand(id, i).dims);
      // A scalar stays in a register.
      if (elements > 1 && elements < result) return true;
    }
    return false;
  }

  // -1: unknown.
  double Flops(NodeId id, const CostRow& row) const {
    switch (row.work) {
      case Work::kMove:
      case Work::kCall:
        return 0;
      case Work::kConv:
      case Work::kDepthwise: {
        const ShapeView data = Operand(id, row.data);
        const ShapeView filter = Operand(id, row.filter);
        const size_t per_output = row.work == Work::kConv ? 1 : 2;  // Its last dimensions.
        if (!data.known_rank || !filter.known_rank || filter.dims.size() < per_output) return -1;
        const double points = Elements(data.dims);
        const double taps = Elements(filter.dims.subspan(0, filter.dims.size() - per_output));
        return points < 0 || taps < 0 ? -1 : 2 * points * taps;
      }
      case Work::kMatmul:
        return MatmulFlops(Operand(id, 0), Operand(id, 1), Operand(id, kOut));
      case Work::kEinsum:
        return EinsumFlops(id);
      case Work::kWeights: {
        const ShapeView sequence = Operand(id, row.data);
        const ShapeView weights = Operand(id, row.filter);
        if (!sequence.known_rank || !weights.known_rank || sequence.dims.empty()) return -1;
        const double rows = Elements(sequence.dims.subspan(0, sequence.dims.size() - 1));
        const double size = Elements(weights.dims);
        return rows < 0 || size < 0 ? -1 : 2 * rows * size * row.products;
      }
    }
    return -1;
  }

  // The operands have m*k, k*n and m*n elements per matrix, with any of them transposed: the root
  // of their product is m*n*k.
  static double MatmulFlops(const ShapeView& a, const ShapeView& b, const ShapeView& out) {
    double product = 1;
    for (const ShapeView* shape : {&a, &b, &out}) {
      if (!shape->known_rank || shape->dims.size() < 2) return -1;
      const double matrix = Elements(shape->dims.subspan(shape->dims.size() - 2));
      if (matrix < 0) return -1;
      product *= matrix;
    }
    const double batch = Elements(out.dims.subspan(0, out.dims.size() - 2));
    return batch < 0 ? -1 : 2 * batch * std::sqrt(product);
  }

  double EinsumFlops(NodeId id) const {
    const auto attr = graph_.attr(id, "equation");
    const auto equation = attr ? AttrString(*attr) : absl::nullopt;
    if (!equation || equation->size() > kMaxEquation) return -1;
    std::array<double, 256> label_size;
    label_size.fill(1);
    // Labels of the inputs; `...` stands for the dimensions without labels, and broadcasts.
    double ellipsis = 1;
    int operand = 0;
    size_t at = 0;
    const size_t end = std::min(equation->find("->"), equation->size());
    while (at <= end) {
      const size_t stop = std::min(std::min(equation->find(',', at), end), equation->size());
      const absl::string_view labels = equation->substr(at, stop - at);
      const ShapeView shape = Operand(id, operand++);
      if (!shape.known_rank || Elements(shape.dims) < 0) return -1;
      const size_t named = std::count_if(labels.begin(), labels.end(),
                                         [](char c) { return absl::ascii_isalpha(c); });
      if (named > shape.dims.size()) return -1;
      const size_t unnamed = shape.dims.size() - named;
      double broadcast = 1;
      size_t dim = 0;
      bool dots = false;
      for (char c : labels) {
        if (c == '.' && !dots) {
          dots = true;
          for (size_t i = 0; i < unnamed; ++i) broadcast *= static_cast<double>(shape.dims[dim++]);
        } else if (absl::ascii_isalpha(c)) {
          if (dim >= shape.dims.size()) return -1;
          double& size = label_size[static_cast<unsigned char>(c)];
          size = std::max(size, static_cast<double>(shape.dims[dim++]));
        }
      }
      ellipsis = std::max(ellipsis, broadcast);
      at = stop + 1;
    }
    double flops = 2 * ellipsis;
    for (double size : label_size) flops *= size;
    return flops;
  }

  // -1: unknown.
  double Bytes(NodeId id, const CostRow& row) const {
    const bool on_host = placement_.node(id) == kHostPlace;
    const auto counts = [&](Place place) { return on_host ? place == kHostPlace : place >= 0; };
    double sum = 0;
    double largest = -1;
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    const size_t counted = row.counted > 0 ? row.counted : inputs.size();
    for (size_t i = 0; i < std::min(inputs.size(), counted) && !inputs[i].is_control(); ++i) {
      // The kernel does not read handles; on a GPU nor parameters in host memory.
      if (!counts(placement_.input(id, static_cast<int32_t>(i), inputs[i]))) continue;
      const bool is_ref = shapes_.type(inputs[i]).is_ref;
      if (row.update_passes > 0 && is_ref) continue;
      const double passes = static_cast<int>(i) < row.passes_inputs ? row.passes : 1;
      if (passes == 0) continue;
      const int64_t bytes = buffers_.bytes(inputs[i]);
      if (bytes == kUnknownSize) return -1;
      sum += passes * static_cast<double>(bytes);
      largest = std::max(largest, static_cast<double>(bytes));
    }
    if (row.update_passes > 0) return largest < 0 ? -1 : row.update_passes * largest;
    const int32_t num_outputs = buffers_.num_outputs(id);
    const int32_t counted_outputs = row.counted > 0 ? row.counted : num_outputs;
    for (int32_t port = 0; port < std::min(num_outputs, counted_outputs); ++port) {
      const Tensor tensor{id, port};
      if (!counts(buffers_.place(tensor))) continue;
      const int64_t bytes = buffers_.bytes(tensor);
      if (bytes == kUnknownSize) return -1;
      sum += static_cast<double>(bytes) * (row.passes == 0 ? 2 : 1);
    }
    return sum;
  }

  const Graph& graph_;
  const Shapes& shapes_;
  const Placement& placement_;
  const Buffers& buffers_;
  const Hardware& hardware_;
  const GrapplerLayout& layout_;
  const double bytes_per_s_;
  const int64_t workspace_bytes_;
  const std::vector<const CostRow*> rows_;
  absl::optional<KernelTemporaries> temporaries_;  // Absent: they do not count.
};

// By op id: whether nodes of that type run functions.
std::vector<bool> FindCalls(const Graph& graph, const CallCosts& functions) {
  std::vector<bool> calls(graph.num_ops(), false);
  if (!graph.has_functions()) return calls;
  const absl::flat_hash_set<absl::string_view> known = absl::StrSplit(kCalls, ' ');
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    calls[op] = known.contains(graph.op_name(op)) || functions.IsFunction(graph.op_name(op));
  }
  return calls;
}

// By node: whether it needs a variable or a GPU's output, and so is in no input pipeline.
std::vector<bool> FindBeyondInput(const Graph& graph, const Placement& placement,
                                  const Buffers& buffers, StopPoller* poll) {
  std::vector<bool> beyond(graph.num_nodes(), false);
  std::vector<NodeId> stack;
  const auto visit = [&](NodeId id) {
    if (beyond[id]) return;
    beyond[id] = true;
    stack.push_back(id);
  };
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll->Tick()) return beyond;  // The caller polls, too.
    if (placement.node(id) != kHostPlace ||
        (buffers.num_outputs(id) > 0 && buffers.storage({id, 0}) == Storage::kVariable)) {
      visit(id);
    }
  }
  while (!stack.empty()) {
    const Graph::Readers readers = graph.readers(stack.back());
    stack.pop_back();
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll->Tick()) return beyond;
      if (readers[i].port != kControl) visit(readers[i].node);
    }
  }
  return beyond;
}

}  // namespace

int64_t ToNanoseconds(double seconds) {
  const double ns = seconds * 1e9;
  // Written so that NaN fails.
  if (!(ns < static_cast<double>(kMaxDurationNs))) return kMaxDurationNs;
  return ns > 0 ? static_cast<int64_t>(ns + 0.5) : 0;
}

int64_t CopyNanoseconds(const Hardware& hardware, double bytes_per_s, int64_t bytes) {
  const double transfer_s = bytes > 0 ? static_cast<double>(bytes) / bytes_per_s : 0;
  return ToNanoseconds(hardware.copy_latency_s + transfer_s);
}

int64_t TransposeNanoseconds(const Hardware& hardware, int64_t bytes) {
  const double moved = bytes > 0 ? 2.0 * static_cast<double>(bytes) : 0;
  return ToNanoseconds(hardware.launch_s + moved / hardware.KernelRate(KernelClass::kTranspose));
}

absl::Status CheckKernelMemory(const v1::Step& step) {
  const int64_t workspace_bytes = step.convolution_workspace_bytes();
  if (workspace_bytes < 0 || workspace_bytes > kMaxTemporaryBytes) {
    return BadOptionError("convolution_workspace_bytes", workspace_bytes,
                          absl::StrCat("give a size in bytes, 0 to ", kMaxTemporaryBytes));
  }
  if (step.has_convolution_workspace_limit_bytes()) {
    const int64_t limit = step.convolution_workspace_limit_bytes();
    if (limit < 0 || limit > kMaxTemporaryBytes || limit % kBytesPerMib != 0) {
      return BadOptionError(
          "convolution_workspace_limit_bytes", limit,
          absl::StrCat("give a whole number of MiB in bytes, 0 to ", kMaxTemporaryBytes));
    }
    if (workspace_bytes > 0) {
      return InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                          "convolution_workspace_limit_bytes and convolution_workspace_bytes are "
                          "given: convolutions either must have a workspace, or take one up to a "
                          "limit if it is free; leave one of them out",
                          {{"option", "convolution_workspace_limit_bytes"},
                           {"other_option", "convolution_workspace_bytes"}});
    }
    if (limit > 0 && step.kernel_memory() == v1::KERNEL_MEMORY_OFF) {
      return InvalidError(
          v1::ERROR_REASON_CONFLICTING_OPTIONS,
          "convolution_workspace_limit_bytes is given, and kernel_memory is OFF, which leaves "
          "workspaces out; leave one of them out",
          {{"option", "convolution_workspace_limit_bytes"}, {"other_option", "kernel_memory"}});
    }
  }
  if (v1::KernelMemory_IsValid(step.kernel_memory())) return absl::OkStatus();
  return UnknownValueError("kernel_memory", step.kernel_memory());
}

std::vector<int64_t> WorkspaceLimits(const v1::Step& step) {
  if (!CountsTemporaries(step) || step.convolution_workspace_bytes() > 0) return {};
  if (!step.has_convolution_workspace_limit_bytes()) {
    return {256 * kBytesPerMib, 128 * kBytesPerMib, 64 * kBytesPerMib};
  }
  if (step.convolution_workspace_limit_bytes() == 0) return {};
  return {step.convolution_workspace_limit_bytes()};
}

bool CountsTemporaries(const v1::Step& step) {
  return step.kernel_memory() != v1::KERNEL_MEMORY_OFF;
}

absl::StatusOr<Costs> Costs::Estimate(const Graph& graph, const Shapes& shapes,
                                      const Placement& placement, const Buffers& buffers,
                                      const Hardware& hardware, const GrapplerLayout& layout,
                                      const v1::Step& step, const Profile* profile,
                                      const StopToken& stop) {
  if (absl::Status s = CheckKernelMemory(step); !s.ok()) return s;
  const Estimator estimator(graph, shapes.bounds(), placement, buffers, hardware, layout, step);
  Costs costs;
  costs.nodes_.resize(graph.num_nodes());
  CallCosts call_costs(graph, shapes.bounds(), hardware, step, stop);
  if (absl::Status s = stop.status("costs"); !s.ok()) return s;
  const std::vector<bool> calls = FindCalls(graph, call_costs);
  StopPoller poll(stop);
  const std::vector<bool> in_step = FindBeyondInput(graph, placement, buffers, &poll);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("costs");
    NodeCost& cost = costs.nodes_[id];
    const bool on_host = placement.node(id) == kHostPlace;
    if (on_host && in_step[id] && !calls[graph.op_id(id)] && buffers.ComputesOnHost(id)) {
      cost = estimator.EstimateOnHost(id);
    }
    if (!on_host) {
      if (!buffers.LaunchesKernel(id)) continue;
      int64_t wanted_bytes = 0;
      cost = estimator.Estimate(id, &wanted_bytes);
      // A measured workspace includes it.
      if (profile != nullptr && profile->workspace_bytes(id) != kNotMeasured) wanted_bytes = 0;
      if (wanted_bytes > 0) {
        costs.wanted_bytes_.resize(id + 1, 0);
        costs.wanted_bytes_[id] = wanted_bytes;
      }
      if (calls[graph.op_id(id)]) {
        cost.is_call = true;
        if (const auto of_body = call_costs.Of(id)) cost = *of_body;
        cost.workspace_bytes = std::min(cost.workspace_bytes, kMaxTemporaryBytes);
        if (absl::Status s = stop.status("costs"); !s.ok()) return s;
      }
    }
    if (profile == nullptr) continue;
    if (!on_host && profile->workspace_bytes(id) != kNotMeasured) {
      cost.workspace_bytes = std::min(profile->workspace_bytes(id), kMaxTemporaryBytes);
    }
    if (profile->duration_ns(id) == kNotMeasured) continue;
    cost.duration_ns = std::min(profile->duration_ns(id), kMaxDurationNs);
    cost.is_known = true;
  }
  return costs;
}

}  // namespace spillway::core
