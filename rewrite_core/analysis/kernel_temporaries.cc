#include "rewrite_core/analysis/kernel_temporaries.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/op_rows.h"

namespace spillway::core {

enum class KernelKind : uint8_t {
  kBatchNorm,
  kForward,
  kInputGradient,
  kFilterGradient,
  kAveragePoolGradient,
  kReduction
};

constexpr int8_t kOutput0 = -1;  // Output 0, in place of an input.

// One row per family. All files are in tensorflow/core/kernels.
struct KernelRow {
  absl::string_view ops;
  KernelKind kernel;
  // Convolutions: the dimensions of space, and where the input, the filter and the result of the
  // forward pass are.
  int8_t spatial = 0;
  int8_t data = 0, filter = 0, result = 0;
  bool depthwise = false;
  // Batch normalization: the tensors that it copies from and to NCHW.
  int8_t copies = 0;
};

namespace {

constexpr KernelRow ConvRow(KernelKind kernel, int8_t spatial, int8_t data, int8_t filter,
                            int8_t result, absl::string_view ops) {
  return {ops, kernel, spatial, data, filter, result};
}
// depthwise_conv_op.cc and depthwise_conv_grad_op.cc call the same for grouped convolutions.
constexpr KernelRow DepthwiseRow(KernelKind kernel, int8_t data, int8_t filter, int8_t result,
                                 absl::string_view ops) {
  KernelRow row = ConvRow(kernel, 2, data, filter, result, ops);
  row.depthwise = true;
  return row;
}
constexpr KernelRow BatchNormRow(int8_t data, int8_t copies, absl::string_view ops) {
  KernelRow row{ops, KernelKind::kBatchNorm};
  row.data = data;
  row.copies = copies;
  return row;
}

constexpr KernelRow kKernelRows[] = {
    // fused_batch_norm_op.cc, FusedBatchNorm and FusedBatchNormGrad for GPUs: in training cuDNN
    // gets NCHW, unless TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT is set for half precision, which
    // a graph does not show. x and y; dy, x and dx.
    BatchNormRow(0, 2, "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"),
    BatchNormRow(1, 3, "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3"),
    // conv_ops_impl.h, LaunchConvOpImpl.
    ConvRow(KernelKind::kForward, 2, 0, 1, kOutput0, "Conv2D"),
    ConvRow(KernelKind::kForward, 3, 0, 1, kOutput0, "Conv3D"),
    // conv_grad_input_ops.cc, LaunchConv2DBackpropInputOp; conv_grad_ops_3d.cc,
    // LaunchConvBackpropInputOpImpl.
    ConvRow(KernelKind::kInputGradient, 2, kOutput0, 1, 2, "Conv2DBackpropInput"),
    ConvRow(KernelKind::kInputGradient, 3, kOutput0, 1, 2,
            "Conv3DBackpropInput Conv3DBackpropInputV2"),
    // conv_grad_filter_ops_launcher.cc, LaunchConv2DBackpropFilterOpImpl; conv_grad_ops_3d.cc,
    // LaunchConvBackpropFilterOpImpl.
    ConvRow(KernelKind::kFilterGradient, 2, 0, kOutput0, 2, "Conv2DBackpropFilter"),
    ConvRow(KernelKind::kFilterGradient, 3, 0, kOutput0, 2,
            "Conv3DBackpropFilter Conv3DBackpropFilterV2"),
    DepthwiseRow(KernelKind::kForward, 0, 1, kOutput0, "DepthwiseConv2dNative"),
    DepthwiseRow(KernelKind::kInputGradient, kOutput0, 1, 2, "DepthwiseConv2dNativeBackpropInput"),
    DepthwiseRow(KernelKind::kFilterGradient, 0, kOutput0, 2,
                 "DepthwiseConv2dNativeBackpropFilter"),
    // pooling_ops_common.cc, DnnPoolingGradOp::Compute: cuDNN asks for the forward pass's input and
    // output, which AvgPoolGrad does not have (avgpooling_op.cc; for NHWC it has a kernel of its
    // own). MaxPoolGrad has both.
    ConvRow(KernelKind::kAveragePoolGradient, 2, kOutput0, 0, 1, "AvgPoolGrad"),
    // reduction_ops_common.h, ReductionOp::Compute.
    {"Sum Mean Prod Max Min EuclideanNorm", KernelKind::kReduction},
};

// The longest list of an attribute: explicit_paddings of five dimensions.
constexpr size_t kMaxInts = 10;

bool IsKnown(const ShapeView& shape, size_t rank) {
  return shape.known_rank && shape.dims.size() == rank &&
         std::all_of(shape.dims.begin(), shape.dims.end(), [](int64_t dim) { return dim >= 0; });
}

int64_t BytesOf(absl::Span<const int64_t> dims, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (int64_t dim : dims) bytes = SaturatingMultiply(bytes, dim);
  return std::min(bytes, kMaxTemporaryBytes);
}

int64_t At(const std::vector<int64_t>& list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

// How much more padding a dimension gets at one end than at the other (GetWindowedOutputSizeVerbose
// in core/framework/kernel_shape_util.cc). cuDNN pads both alike.
int64_t Unevenness(absl::string_view padding, int64_t before, int64_t after, int64_t size,
                   int64_t window, int64_t stride, int64_t dilation) {
  constexpr int64_t kMax = int64_t{1} << 31;
  if (padding == "EXPLICIT") {
    if (before < 0 || after < 0 || before > kMax || after > kMax) return 0;
    return std::abs(before - after);
  }
  if (padding != "SAME" || stride < 1 || dilation < 1) return 0;
  if (std::max({size, window, stride, dilation}) > kMax || window < 1) return 0;
  const int64_t results = (size + stride - 1) / stride;
  return std::max<int64_t>(0, (results - 1) * stride + (window - 1) * dilation + 1 - size) % 2;
}

// Whether cuDNN convolves half precision with square depthwise filters: IsCudnnSupportedFilterSize
// in tsl/util/use_cudnn.cc, and use_cudnn_grouped_conv_ of the three kernels.
bool GroupsDepthwise(KernelKind kernel, bool channels_last, int64_t window, int64_t stride) {
  if (window != 1 && window != 3 && window != 5 && window != 7) return false;
  switch (kernel) {
    case KernelKind::kForward:
      return !channels_last || stride <= 2;
    case KernelKind::kInputGradient:
      return stride == 1 || (channels_last && stride == 2);
    default:
      return true;
  }
}

// One more copy, which takes `moved_bytes` to make.
void AddCopy(int64_t bytes, double moved_bytes, KernelTemporaries::Use* use) {
  if (bytes == 0) return;
  use->copies.push_back(bytes);
  use->bytes += bytes;
  use->moved_bytes += moved_bytes;
}

}  // namespace

KernelTemporaries::KernelTemporaries(const Graph& graph, const Shapes& shapes,
                                     const Hardware& hardware, const GrapplerLayout& layout)
    : graph_(graph),
      shapes_(shapes),
      hardware_(hardware),
      layout_(layout),
      rows_(RowsByOp(graph, kKernelRows)) {}

KernelTemporaries::Use KernelTemporaries::Of(NodeId id) const {
  const KernelRow* row = rows_[graph_.op_id(id)];
  if (row == nullptr) return {};
  Use use;
  switch (row->kernel) {
    case KernelKind::kBatchNorm:
      use = BatchNorm(id, *row);
      break;
    case KernelKind::kForward:
    case KernelKind::kInputGradient:
    case KernelKind::kFilterGradient:
      use = Convolution(id, *row);
      break;
    case KernelKind::kAveragePoolGradient:
      use = AveragePoolGradient(id, *row);
      break;
    case KernelKind::kReduction:
      use = Reduction(id);
      break;
  }
  use.bytes = std::min(use.bytes, kMaxTemporaryBytes);
  return use;
}

std::string KernelTemporaries::Reason(NodeId id, const Use& use) const {
  const KernelRow* row = rows_[graph_.op_id(id)];
  std::string format;
  if (row != nullptr && row->kernel != KernelKind::kReduction) {
    const bool last = RunsLast(id, String(id, "data_format", "NHWC"));
    format = row->spatial == 3 ? (last ? "NDHWC " : "NCDHW ") : (last ? "NHWC " : "NCHW ");
  }
  std::string text =
      absl::StrCat(graph_.op(id), " of ", format, DataTypeName(Type(id)), " copies ");
  const size_t count = use.copies.size();
  if (std::all_of(use.copies.begin(), use.copies.end(),
                  [&](int64_t bytes) { return bytes == use.copies[0]; })) {
    return absl::StrCat(text, CountText(count, "tensor"), " of ",
                        count == 0 ? "0 B" : BytesText(use.copies[0]));
  }
  absl::StrAppend(&text, "tensors of ");
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : i + 1 < count ? ", " : " and ", BytesText(use.copies[i]));
  }
  return text;
}

KernelTemporaries::Use KernelTemporaries::BatchNorm(NodeId id, const KernelRow& row) const {
  Use use;
  const auto training = graph_.attr(id, "is_training");
  if (training && !AttrBool(*training).value_or(true)) return use;
  const ShapeView data = Operand(id, row.data);
  if (!RunsLast(id, String(id, "data_format", "NHWC")) || !IsKnown(data, data.dims.size())) {
    return use;
  }
  const int64_t bytes = BytesOf(data.dims, ElementBytes(Type(id)));
  for (int i = 0; i < row.copies; ++i) AddCopy(bytes, 2.0 * bytes, &use);
  return use;
}

KernelTemporaries::Use KernelTemporaries::Convolution(NodeId id, const KernelRow& row) const {
  Use use;
  const size_t spatial = row.spatial, rank = spatial + 2;
  const ShapeView data = Operand(id, row.data), filter = Operand(id, row.filter),
                  result = Operand(id, row.result);
  if (!IsKnown(data, rank) || !IsKnown(filter, rank) || !IsKnown(result, rank)) return use;
  DataType type = Type(id);
  if (type != kDtFloat32 && type != kDtHalf && type != kDtBfloat16 && type != kDtDouble) return use;
  const absl::string_view format = String(id, "data_format", "NHWC");
  if (!HasChannelsLast(format) && !HasChannelsFirst(format)) return use;
  const bool last = RunsLast(id, format);
  // conv_ops_bfloat16.cc: computed in float32 if the GPU has no bfloat16.
  const bool as_float = type == kDtBfloat16 && hardware_.compute_capability < 8;
  if (as_float) type = kDtFloat32;

  const size_t space = HasChannelsLast(format) ? 1 : 2;
  const int64_t depth = data.dims[HasChannelsLast(format) ? rank - 1 : 1];
  const int64_t result_depth =
      SaturatingMultiply(filter.dims[rank - 1], row.depthwise ? filter.dims[spatial] : 1);
  const absl::string_view padding = String(id, "padding", "");
  const std::vector<int64_t> strides = Ints(id, "strides"), dilations = Ints(id, "dilations"),
                             paddings = Ints(id, "explicit_paddings");
  bool is_point = padding != "EXPLICIT", is_whole = padding == "VALID", uneven = false;
  std::vector<int64_t> padded(data.dims.begin(), data.dims.end());
  for (size_t i = 0; i < spatial; ++i) {
    const size_t at = space + i;
    const int64_t stride = At(strides, at, 1), dilation = At(dilations, at, 1);
    const bool dilates = dilation != 1 && (spatial == 3 || row.kernel == KernelKind::kForward);
    is_point = is_point && filter.dims[i] == 1 && stride == 1 && !dilates;
    is_whole = is_whole && filter.dims[i] == data.dims[at];
    const int64_t more = Unevenness(padding, At(paddings, 2 * at, 0), At(paddings, 2 * at + 1, 0),
                                    data.dims[at], filter.dims[i], stride, dilation);
    uneven = uneven || more > 0;
    padded[at] = SaturatingAdd(padded[at], more);
  }
  if (row.depthwise && depth > 1 &&
      !(type == kDtHalf && filter.dims[0] == filter.dims[1] && filter.dims[3] == 1 &&
        GroupsDepthwise(row.kernel, last, filter.dims[0], At(strides, space, 1)))) {
    return use;
  }
  const int64_t element_bytes = ElementBytes(type);
  const int64_t data_bytes = BytesOf(data.dims, element_bytes),
                padded_bytes = BytesOf(padded, element_bytes),
                filter_bytes = BytesOf(filter.dims, element_bytes),
                result_bytes = BytesOf(result.dims, element_bytes);
  if (data_bytes == 0 || filter_bytes == 0 || result_bytes == 0) return use;
  if (as_float) {
    for (int64_t bytes : {data_bytes, filter_bytes, result_bytes})
      AddCopy(bytes, 1.5 * bytes, &use);
  }
  // cuBLAS multiplies the tensors as they are.
  const bool is_grouped = filter.dims[spatial] != depth || (row.depthwise && depth > 1);
  if (last && !is_grouped && (is_point || is_whole)) return use;

  const bool converts = last && !ConvolvesInNhwc(type);
  if (!last || converts) {
    use.wanted_bytes = std::min(SaturatingAdd(padded_bytes, result_bytes), kMaxTemporaryBytes);
  }
  switch (row.kernel) {
    case KernelKind::kForward:
      if (uneven) AddCopy(padded_bytes, 1.0 * data_bytes + padded_bytes, &use);
      if (converts && depth > 1) AddCopy(padded_bytes, 2.0 * padded_bytes, &use);
      AddCopy(filter_bytes, 2.0 * filter_bytes, &use);
      if (converts) AddCopy(result_bytes, 2.0 * result_bytes, &use);
      // The padded input is freed when it has been copied, before the next copies are made.
      if (uneven && converts && depth > 1) {
        use.bytes -= std::min(padded_bytes, filter_bytes + result_bytes);
      }
      break;
    case KernelKind::kInputGradient:
      AddCopy(filter_bytes, 2.0 * filter_bytes, &use);
      if (converts && result_depth > 1) AddCopy(result_bytes, 2.0 * result_bytes, &use);
      // cuDNN never writes to the output: this replaces it or, in another layout, is copied to it.
      AddCopy(padded_bytes, converts ? 2.0 * data_bytes : 0, &use);
      if (uneven) AddCopy(data_bytes, 1.0 * padded_bytes + data_bytes, &use);
      break;
    default:
      if (uneven) AddCopy(padded_bytes, 1.0 * data_bytes + padded_bytes, &use);
      AddCopy(filter_bytes, 2.0 * filter_bytes, &use);
      if (converts && result_depth > 1) AddCopy(result_bytes, 2.0 * result_bytes, &use);
      if (converts && depth > 1) AddCopy(padded_bytes, 2.0 * padded_bytes, &use);
  }
  return use;
}

KernelTemporaries::Use KernelTemporaries::AveragePoolGradient(NodeId id,
                                                              const KernelRow& row) const {
  Use use;
  const ShapeView data = Operand(id, row.data), result = Operand(id, row.result);
  if (RunsLast(id, String(id, "data_format", "NHWC"))) return use;
  if (!IsKnown(data, data.dims.size()) || !IsKnown(result, result.dims.size())) return use;
  // They are only allocated.
  AddCopy(BytesOf(data.dims, ElementBytes(Type(id))), 0, &use);
  AddCopy(BytesOf(result.dims, ElementBytes(Type(id))), 0, &use);
  return use;
}

// Neighbouring dimensions that are both reduced, or both kept, count as one (ReductionHelper in
// reduction_ops_common.cc). For up to three of these there are kernels; the rest is transposed.
KernelTemporaries::Use KernelTemporaries::Reduction(NodeId id) const {
  constexpr size_t kMostParts = 3;
  Use use;
  const ShapeView data = Operand(id, 0);
  const absl::Span<const Tensor> inputs = graph_.inputs(id);
  if (!IsKnown(data, data.dims.size()) || inputs.size() < 2 || inputs[1].is_control()) return use;
  const int64_t rank = static_cast<int64_t>(data.dims.size());
  std::vector<bool> reduced(data.dims.size(), false);
  const auto axes = shapes_.value(inputs[1]);
  const bool is_known = axes && std::none_of(axes->begin(), axes->end(),
                                             [](int64_t axis) { return axis == kUnknownElement; });
  if (is_known) {
    for (int64_t axis : *axes) {
      if (axis < 0) axis += rank;
      if (axis >= 0 && axis < rank) reduced[axis] = true;
    }
  }
  size_t parts = 0;
  bool last = false;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (data.dims[i] == 1) continue;
    // Of unknown axes the worst: each dimension is a part of its own.
    parts += parts == 0 || !is_known || reduced[i] != last;
    last = reduced[i];
  }
  if (parts <= kMostParts) return use;
  const int64_t bytes = BytesOf(data.dims, ElementBytes(Type(id)));
  AddCopy(bytes, 2.0 * bytes, &use);
  return use;
}

bool KernelTemporaries::RunsLast(NodeId id, absl::string_view format) const {
  return HasChannelsLast(format) != layout_.IsConverted(id);
}

ShapeView KernelTemporaries::Operand(NodeId id, int number) const {
  if (number == kOutput0) return shapes_.shape({id, 0});
  const absl::Span<const Tensor> inputs = graph_.inputs(id);
  if (number >= static_cast<int>(inputs.size()) || inputs[number].is_control()) return {};
  return shapes_.shape(inputs[number]);
}

absl::string_view KernelTemporaries::String(NodeId id, absl::string_view key,
                                            absl::string_view otherwise) const {
  const auto value = graph_.attr(id, key);
  return value ? AttrString(*value).value_or(otherwise) : otherwise;
}

std::vector<int64_t> KernelTemporaries::Ints(NodeId id, absl::string_view key) const {
  const auto value = graph_.attr(id, key);
  return value ? AttrInts(*value, kMaxInts) : std::vector<int64_t>();
}

DataType KernelTemporaries::Type(NodeId id) const {
  const auto value = graph_.attr(id, "T");
  return value ? AttrType(*value) : kDtInvalid;
}

// ComputeInNhwcEnabled in conv_ops_gpu.cc.
bool KernelTemporaries::ConvolvesInNhwc(DataType type) const {
  const double capability = hardware_.compute_capability;
  return (type == kDtFloat32 && capability >= 8 && hardware_.tf32) ||
         (type == kDtHalf && capability >= 7) || (type == kDtBfloat16 && capability >= 8);
}

}  // namespace spillway::core
