#include "rewrite_core/analysis/cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/op_rows.h"
#include "rewrite_core/graph/error.h"

namespace spillway::core {
namespace {

// How the operations of a family are counted.
enum class Work : uint8_t {
  kMove,       // None: it lasts as long as its bytes take.
  kConv,       // Each element of `data` takes part in filter / (its last dimension) multiply-adds.
  kDepthwise,  // The same with filter / (its last two dimensions).
  kMatmul,     // Rows, columns and depth from the last two dimensions of the operands.
  kEinsum,     // The product of all labels.
  kWeights,    // Recurrent cells: each weight once per row of the sequence.
  kCall,       // A function: unknown.
};

// One row per family. Operands are numbered as the inputs, and kOut is output 0.
constexpr int8_t kOut = -1;
struct Row {
  absl::string_view ops;
  Work work = Work::kMove;
  int8_t data = 0;    // kConv, kDepthwise: what has the spatial extent of the forward output.
  int8_t filter = 0;  // Of kWeights: the weights, with `data` the sequence.
  // Times 2 * multiply-adds: gradients that compute two products in one node.
  double factor = 1;
  // How often the inputs below are read, and how many inputs from 0 on are read so often. The
  // others are read once.
  double passes = 1;
  int8_t passes_inputs = 0;
  // If above 0: bytes are this many times those of the largest input that is no reference or handle
  // (the gradient), since an update reads and writes what its handles stand for.
  double update_passes = 0;
};

constexpr Row kRows[] = {
    {"Conv2D Conv3D _FusedConv2D FusedConv2DBiasActivation", Work::kConv, kOut, 1},
    {"Conv2DBackpropInput Conv3DBackpropInput Conv3DBackpropInputV2", Work::kConv, 2, 1},
    {"Conv2DBackpropFilter Conv3DBackpropFilter Conv3DBackpropFilterV2", Work::kConv, 2, kOut},
    {"DepthwiseConv2dNative _FusedDepthwiseConv2dNative", Work::kDepthwise, kOut, 1},
    {"DepthwiseConv2dNativeBackpropInput", Work::kDepthwise, 2, 1},
    {"DepthwiseConv2dNativeBackpropFilter", Work::kDepthwise, 2, kOut},
    {"MatMul _FusedMatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 SparseMatMul", Work::kMatmul},
    {"Einsum", Work::kEinsum},
    {"CudnnRNN CudnnRNNV2 CudnnRNNV3", Work::kWeights, 0, 3},
    {"CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3", Work::kWeights, 0, 3, 2},
    {"LSTMBlockCell GRUBlockCell", Work::kWeights, 0, 3},
    {"BlockLSTM BlockLSTMV2", Work::kWeights, 1, 4},
    {"BlockLSTMGrad BlockLSTMGradV2", Work::kWeights, 1, 4, 2},
    {"If StatelessIf Case StatelessCase While StatelessWhile For PartitionedCall "
     "StatefulPartitionedCall SymbolicGradient RemoteCall _XlaRun",
     Work::kCall},
    // In training: once for mean and variance, once to normalize.
    {"FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 _FusedBatchNormEx", Work::kMove, 0, 0, 1, 2,
     1},
    // Both the gradient and the input: once for the sums, once for the result.
    {"FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 _FusedBatchNormGradEx",
     Work::kMove, 0, 0, 1, 2, 2},
    // The largest, the sum of exponentials, the result.
    {"Softmax LogSoftmax", Work::kMove, 0, 0, 1, 3, 1},
    {"SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits", Work::kMove, 0, 0, 1, 3,
     1},
    // Mean, variance, result.
    {"LayerNorm InstanceNorm MklLayerNorm", Work::kMove, 0, 0, 1, 3, 1},
    // Updates: the variable and each slot is read and written, the gradient is read.
    {"Assign AssignVariableOp", Work::kMove, 0, 0, 1, 1, 0, 2},
    {"AssignAdd AssignSub AssignAddVariableOp AssignSubVariableOp ApplyGradientDescent "
     "ResourceApplyGradientDescent ApplyProximalGradientDescent "
     "ResourceApplyProximalGradientDescent "
     "ScatterAdd ScatterSub ScatterUpdate ScatterMul ResourceScatterAdd ResourceScatterSub "
     "ResourceScatterUpdate",
     Work::kMove, 0, 0, 1, 1, 0, 3},
    {"ApplyMomentum ResourceApplyMomentum ResourceApplyKerasMomentum ApplyAdagrad "
     "ResourceApplyAdagrad ApplyAdagradV2 ResourceApplyAdagradV2 ApplyProximalAdagrad "
     "ResourceApplyProximalAdagrad ApplyAddSign ResourceApplyAddSign ApplyPowerSign "
     "ResourceApplyPowerSign SparseApplyMomentum ResourceSparseApplyMomentum "
     "ResourceSparseApplyKerasMomentum SparseApplyAdagrad ResourceSparseApplyAdagrad "
     "ResourceSparseApplyAdagradV2",
     Work::kMove, 0, 0, 1, 1, 0, 5},
    {"ApplyAdam ResourceApplyAdam ApplyAdaMax ResourceApplyAdaMax ApplyAdadelta "
     "ResourceApplyAdadelta ApplyRMSProp ResourceApplyRMSProp ApplyFtrl ResourceApplyFtrl "
     "ApplyFtrlV2 "
     "ResourceApplyFtrlV2 ApplyAdagradDA ResourceApplyAdagradDA SparseApplyAdadelta "
     "SparseApplyRMSProp SparseApplyFtrl SparseApplyFtrlV2 ResourceSparseApplyAdadelta "
     "ResourceSparseApplyRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2",
     Work::kMove, 0, 0, 1, 1, 0, 7},
    {"ApplyCenteredRMSProp ResourceApplyCenteredRMSProp ResourceApplyAdamWithAmsgrad "
     "SparseApplyCenteredRMSProp ResourceSparseApplyCenteredRMSProp",
     Work::kMove, 0, 0, 1, 1, 0, 9},
    // Reads the rows that it gives, not the table.
    {"Gather GatherV2 GatherNd ResourceGather ResourceGatherNd", Work::kMove, 0, 0, 1, 0, 1},
    {"Slice StridedSlice Split SplitV", Work::kMove, 0, 0, 1, 0, 2},
};

constexpr int64_t kMaxWorkspaceBytes = int64_t{1} << 50;

// The elements of a shape as a number; -1 if unknown.
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
  Estimator(const Graph& graph, const Shapes& shapes, const Buffers& buffers,
            const Hardware& hardware)
      : graph_(graph),
        shapes_(shapes),
        buffers_(buffers),
        hardware_(hardware),
        conv_flops_(hardware.peak_flops * hardware.eff_conv),
        matmul_flops_(hardware.peak_flops * hardware.eff_matmul),
        bytes_per_s_(hardware.mem_bytes_per_s * hardware.mem_eff),
        rows_(RowsByOp(graph, kRows)) {}

  // Of a node that launches a kernel.
  NodeCost Estimate(NodeId id, int64_t workspace_bytes) const {
    static constexpr Row kOther{};
    const Row* row = rows_[graph_.op_id(id)];
    if (row == nullptr) row = &kOther;
    NodeCost cost;
    const bool is_conv = row->work == Work::kConv || row->work == Work::kDepthwise;
    if (is_conv) cost.workspace_bytes = workspace_bytes;
    const double flops = Flops(id, *row);
    const double bytes = Bytes(id, *row);
    cost.is_known = flops >= 0 && bytes >= 0 && row->work != Work::kCall;
    double busy_s = 0;
    if (cost.is_known) {
      cost.flops = flops;
      cost.memory_bytes = bytes;
      busy_s = std::max(flops / (is_conv ? conv_flops_ : matmul_flops_), bytes / bytes_per_s_);
    }
    cost.duration_ns = ToNanoseconds(hardware_.launch_s + busy_s);
    return cost;
  }

 private:
  ShapeView Operand(NodeId id, int number) const {
    if (number == kOut) return shapes_.shape({id, 0});
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    if (number >= static_cast<int>(inputs.size()) || inputs[number].is_control()) return {};
    return shapes_.shape(inputs[number]);
  }

  // -1: unknown.
  double Flops(NodeId id, const Row& row) const {
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
        return rows < 0 || size < 0 ? -1 : 2 * rows * size * row.factor;
      }
    }
    return -1;
  }

  // The operands have m*k, k*n and m*n elements per matrix, whichever of them is transposed: the
  // root of their product is m*n*k.
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
    if (!equation) return -1;
    std::array<double, 256> label_size;
    label_size.fill(1);
    // Labels of the inputs; `...` stands for the dimensions that no label names, and broadcasts.
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
  double Bytes(NodeId id, const Row& row) const {
    double sum = 0;
    double largest = -1;
    bool unknown = false;
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
      const Place place = buffers_.place(inputs[i]);
      if (place == kNoMemory) continue;  // A handle.
      const bool is_ref = shapes_.type(inputs[i]).is_ref;
      if (row.update_passes > 0 && is_ref) continue;
      const double passes = static_cast<int>(i) < row.passes_inputs ? row.passes : 1;
      if (passes == 0) continue;
      const int64_t bytes = buffers_.bytes(inputs[i]);
      if (bytes == kUnknownSize) {
        // What lies in host memory is a parameter: small.
        unknown = unknown || place != kHostPlace;
        continue;
      }
      sum += passes * static_cast<double>(bytes);
      largest = std::max(largest, static_cast<double>(bytes));
    }
    if (unknown) return -1;
    if (row.update_passes > 0) return largest < 0 ? -1 : row.update_passes * largest;
    for (int32_t port = 0; port < buffers_.num_outputs(id); ++port) {
      const Tensor tensor{id, port};
      if (buffers_.place(tensor) == kNoMemory) continue;
      const int64_t bytes = buffers_.bytes(tensor);
      if (bytes == kUnknownSize) {
        // cuDNN's reserve space has an open size, and is small.
        if (port > 0) continue;
        return -1;
      }
      // A part that gathers or cuts reads as much as it writes.
      sum += static_cast<double>(bytes) * (row.passes == 0 ? 2 : 1);
    }
    return sum;
  }

  const Graph& graph_;
  const Shapes& shapes_;
  const Buffers& buffers_;
  const Hardware& hardware_;
  const double conv_flops_;
  const double matmul_flops_;
  const double bytes_per_s_;
  const std::vector<const Row*> rows_;
};

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

absl::StatusOr<Costs> Costs::Estimate(const Graph& graph, const Shapes& shapes,
                                      const Placement& placement, const Buffers& buffers,
                                      const Hardware& hardware, int64_t convolution_workspace_bytes,
                                      const Profile* profile, const StopToken& stop) {
  if (convolution_workspace_bytes < 0 || convolution_workspace_bytes > kMaxWorkspaceBytes) {
    const std::string value = absl::StrCat(convolution_workspace_bytes);
    return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                        absl::StrCat("convolution_workspace_bytes is ", value,
                                     "; give a size in bytes, 0 to ", kMaxWorkspaceBytes),
                        {{"option", "convolution_workspace_bytes"}, {"value", value}});
  }
  const Estimator estimator(graph, shapes, buffers, hardware);
  Costs costs;
  costs.nodes_.resize(graph.num_nodes());
  StopPoller poll(stop);
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("costs");
    NodeCost& cost = costs.nodes_[id];
    const bool on_host = placement.node(id) == kHostPlace;
    if (!on_host) {
      if (!buffers.LaunchesKernel(id)) continue;
      cost = estimator.Estimate(id, convolution_workspace_bytes);
    }
    if (profile == nullptr || profile->duration_ns(id) == kNotMeasured) continue;
    cost.duration_ns = std::min(profile->duration_ns(id), kMaxDurationNs);
    cost.is_known = true;
  }
  return costs;
}

}  // namespace spillway::core
