// Neural networks: convolutions, pooling, normalization, activations, losses.
#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/shapes/shape_functions/common.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// ---- Windows: convolutions and pooling.

// The positions of batch, channels and space in a tensor with `spatial` spatial dimensions.
struct Layout {
  int channel;
  int first_space;
};

// From the attribute data_format; nullopt for layouts that split a dimension (NCHW_VECT_C).
absl::optional<Layout> ReadLayout(ShapeContext& c, int spatial) {
  const absl::string_view format = c.String("data_format", spatial == 2 ? "NHWC" : "NDHWC");
  if (format == (spatial == 2 ? "NHWC" : "NDHWC")) return Layout{spatial + 1, 1};
  if (format == (spatial == 2 ? "NCHW" : "NCDHW")) return Layout{1, 2};
  return absl::nullopt;
}

enum class Padding { kSame, kValid, kExplicit, kUnknown };

Padding ReadPadding(ShapeContext& c) {
  const absl::string_view padding = c.String("padding");
  return padding == "SAME"       ? Padding::kSame
         : padding == "VALID"    ? Padding::kValid
         : padding == "EXPLICIT" ? Padding::kExplicit
                                 : Padding::kUnknown;
}

// The number of windows of `size` (with `dilation` between elements) in a dimension padded by
// `added` elements (if padding is explicit).
int64_t Windows(ShapeContext& c, int64_t dim, int64_t size, int64_t stride, int64_t dilation,
                Padding padding, int64_t added) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (stride < 1 || stride > kMax || dilation < 1 || dilation > kMax) return kUnknownDim;
  if (padding == Padding::kSame) return c.Div(c.Add(dim, stride - 1), stride);
  if (padding == Padding::kUnknown || size == kUnknownDim || dim == kUnknownDim) {
    return kUnknownDim;
  }
  const int64_t padded = padding == Padding::kExplicit ? c.Add(dim, added) : dim;
  const int64_t window = c.Add(c.Mul(std::max<int64_t>(size - 1, 0), dilation), 1);
  if (padded < 0 || window < 0) return kUnknownDim;
  if (padded < window) {
    c.Fail(absl::StrCat("a window of ", window, " does not fit into a dimension of ", padded));
    return kUnknownDim;
  }
  return (padded - window) / stride + 1;
}

int64_t At(const DimVector& list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

// The windows over the dimensions from `begin` to `end`; sizes(i) is the window in dimension i.
template <typename Sizes>
void SlideWindows(ShapeContext& c, int begin, int end, const Sizes& sizes, DimVector strides,
                  DimVector* dims) {
  const DimVector dilations = c.Ints("dilations"), paddings = c.Ints("explicit_paddings");
  const Padding padding = ReadPadding(c);
  for (int i = begin; i < end; ++i) {
    const int64_t added = c.Add(At(paddings, 2 * i, 0), At(paddings, 2 * i + 1, 0));
    (*dims)[i] =
        Windows(c, (*dims)[i], sizes(i), At(strides, i, 1), At(dilations, i, 1), padding, added);
  }
}

// Conv2D and Conv3D(input, filter), where filter is [space..., in, out]. Depthwise: [..., in,
// times].
void ConvWith(ShapeContext& c, int spatial, bool depthwise) {
  const auto layout = ReadLayout(c, spatial);
  if (!layout) return;
  const ShapeId in = c.WithRank(0, spatial + 2), filter = c.WithRank(1, spatial + 2);
  if (c.failed()) return;
  const int64_t depth = c.dim(in, layout->channel), filter_depth = c.dim(filter, spatial);
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  if (depthwise) {
    out[layout->channel] = c.Mul(c.MergeDims(depth, filter_depth), c.dim(filter, -1));
  } else {
    out[layout->channel] = c.dim(filter, -1);
    // A multiple of it: grouped convolution.
    if (depth >= 0 && filter_depth > 0 && depth % filter_depth != 0) {
      return c.Fail(
          absl::StrCat("the input has ", depth, " channels, the filter takes ", filter_depth));
    }
  }
  SlideWindows(
      c, layout->first_space, layout->first_space + spatial,
      [&](int i) { return c.dim(filter, i - layout->first_space); }, c.Ints("strides"), &out);
  c.set(0, c.Make(out));
}

void Conv2D(ShapeContext& c) { ConvWith(c, 2, false); }
void Conv3D(ShapeContext& c) { ConvWith(c, 3, false); }
// The ops into which Grappler's remapper fuses a convolution and its readers. Only filters
// [space..., in, out]; others are for cuDNN's int8.
void FusedConv2D(ShapeContext& c) {
  if (c.String("filter_format", "HWIO") != "HWIO") return c.set(0, c.OfRank(4));
  Conv2D(c);
}
void DepthwiseConv2d(ShapeContext& c) { ConvWith(c, 2, true); }

// Conv2DBackpropInput(input_sizes, filter, out_backprop) and the like. The sizes may be only those
// of space.
void ConvBackpropInput(ShapeContext& c, int spatial, bool depthwise) {
  const ShapeId filter = c.WithRank(1, spatial + 2), gradient = c.WithRank(2, spatial + 2);
  ShapeId out = c.ShapeFromValue(0);
  const auto layout = ReadLayout(c, spatial);
  if (layout && c.rank(out) == spatial && !depthwise) {
    DimVector dims(spatial + 2, kUnknownDim);
    dims[0] = c.dim(gradient, 0);
    dims[layout->channel] = c.dim(filter, spatial);
    for (int i = 0; i < spatial; ++i) dims[layout->first_space + i] = c.dim(out, i);
    out = c.Make(dims);
  } else if (!c.known(out)) {
    out = c.OfRank(spatial + 2);
  }
  if (c.rank(out) != spatial + 2) {
    return c.Fail(absl::StrCat("input_sizes are of rank ", c.rank(out), ", not ", spatial + 2));
  }
  // The batch is the gradient's.
  c.set(0, c.ReplaceDim(out, 0, c.MergeDims(c.dim(out, 0), c.dim(gradient, 0))));
}

void Conv2DBackpropInput(ShapeContext& c) { ConvBackpropInput(c, 2, false); }
void Conv3DBackpropInputV2(ShapeContext& c) { ConvBackpropInput(c, 3, false); }
void DepthwiseBackpropInput(ShapeContext& c) { ConvBackpropInput(c, 2, true); }

// Conv2DBackpropFilter(input, filter_sizes, out_backprop) and the like.
void ConvBackpropFilter(ShapeContext& c, int spatial) {
  c.WithRank(0, spatial + 2);
  c.WithRank(2, spatial + 2);
  const ShapeId out = c.ShapeFromValue(1);
  c.set(0, c.known(out) ? out : c.OfRank(spatial + 2));
}

void Conv2DBackpropFilter(ShapeContext& c) { ConvBackpropFilter(c, 2); }
void Conv3DBackpropFilterV2(ShapeContext& c) { ConvBackpropFilter(c, 3); }

// AvgPoolGrad(orig_input_shape, grad) and the like.
void PoolGradFromShape(ShapeContext& c, int rank) {
  c.set(0, c.OfRank(rank));
  c.refine(0, c.ShapeFromValue(0));
}

void PoolGradFromShape2D(ShapeContext& c) { PoolGradFromShape(c, 4); }
void PoolGradFromShape3D(ShapeContext& c) { PoolGradFromShape(c, 5); }

// MaxPoolGrad(orig_input, orig_output, grad): the input's; MaxPoolGradGrad: the output's.
void MaxPoolGrad2D(ShapeContext& c) { c.set(0, c.WithRank(0, 4)); }
void MaxPoolGrad3D(ShapeContext& c) { c.set(0, c.WithRank(0, 5)); }
void MaxPoolGradGrad2D(ShapeContext& c) { c.set(0, c.WithRank(1, 4)); }
void MaxPoolGradGrad3D(ShapeContext& c) { c.set(0, c.WithRank(1, 5)); }

// MaxPool and AvgPool; MaxPoolV2 has sizes and strides as inputs. Only MaxPool also slides over
// channels.
void PoolWith(ShapeContext& c, int spatial, bool from_inputs, bool channels) {
  const ShapeId in = c.WithRank(0, spatial + 2);
  if (c.failed()) return;
  const auto layout = ReadLayout(c, spatial);
  if (!layout) return;
  DimVector sizes = c.Ints("ksize"), strides = c.Ints("strides");
  if (from_inputs) {
    const auto size = c.Value(1), stride = c.Value(2);
    if (!size || !stride) return c.set(0, c.OfRank(spatial + 2));
    sizes.assign(size->begin(), size->end());
    strides.assign(stride->begin(), stride->end());
  }
  if (static_cast<int>(sizes.size()) != spatial + 2 ||
      static_cast<int>(strides.size()) != spatial + 2) {
    return;
  }
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  const int begin = channels ? 1 : layout->first_space;
  SlideWindows(
      c, begin, channels ? spatial + 2 : begin + spatial, [&](int i) { return sizes[i]; }, strides,
      &out);
  c.set_all(c.Make(out));
}

void AvgPool(ShapeContext& c) { PoolWith(c, 2, false, false); }
void MaxPool(ShapeContext& c) { PoolWith(c, 2, false, true); }
void MaxPoolV2(ShapeContext& c) { PoolWith(c, 2, true, true); }
void Pool3D(ShapeContext& c) { PoolWith(c, 3, false, false); }

// FractionalMaxPool(value) -> output, row_pooling_sequence, col_pooling_sequence. TensorFlow infers
// one number in these for each region; its kernel outputs one more.
void FractionalPool(ShapeContext& c) {
  const ShapeId in = c.WithRank(0, 4);
  const auto ratios = c.Floats("pooling_ratio");
  if (c.failed()) return;
  c.set_all(c.OfRank(1));
  if (ratios.size() != 4) return c.set(0, c.OfRank(4));
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  for (int i = 0; i < 4; ++i) {
    if (!(ratios[i] >= 1)) return c.Fail("a pooling ratio is below 1");
    // In the precision of TensorFlow's own division.
    if (out[i] <= 0) continue;
    const float pooled = static_cast<float>(out[i]) / ratios[i];
    constexpr float kTooLarge = 0x1p63f;
    out[i] = pooled < kTooLarge ? static_cast<int64_t>(pooled) : kUnknownDim;
  }
  c.set(0, c.Make(out));
  c.set(1, c.Make({out[1]}));
  c.set(2, c.Make({out[2]}));
}

// Dilation2D(input, filter [rows, columns, depth]).
void Dilation2D(ShapeContext& c) {
  const ShapeId in = c.WithRank(0, 4), filter = c.WithRank(1, 3);
  if (c.failed()) return;
  const DimVector strides = c.Ints("strides"), rates = c.Ints("rates");
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  for (int i = 1; i < 3; ++i) {
    out[i] = Windows(c, out[i], c.dim(filter, i - 1), At(strides, i, 1), At(rates, i, 1),
                     ReadPadding(c), 0);
  }
  out[3] = c.MergeDims(out[3], c.dim(filter, 2));
  c.set(0, c.Make(out));
}

// ExtractImagePatches(images), ExtractVolumePatches(input): a patch's elements become channels.
void ExtractPatches(ShapeContext& c, int spatial) {
  const ShapeId in = c.WithRank(0, spatial + 2);
  if (c.failed()) return;
  const DimVector sizes = c.Ints("ksizes"), strides = c.Ints("strides"), rates = c.Ints("rates");
  if (static_cast<int>(sizes.size()) != spatial + 2) return;
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  for (int i = 1; i <= spatial; ++i) {
    out[i] = Windows(c, out[i], sizes[i], At(strides, i, 1), At(rates, i, 1), ReadPadding(c), 0);
    out[spatial + 1] = c.Mul(out[spatial + 1], sizes[i]);
  }
  c.set(0, c.Make(out));
}

void ExtractImagePatches(ShapeContext& c) { ExtractPatches(c, 2); }
void ExtractVolumePatches(ShapeContext& c) { ExtractPatches(c, 3); }

// ---- Normalization. The rank is that of the layout's name (NHWC, NCDHW, ...).
ShapeId NormalizedInput(ShapeContext& c, int input, int* channel) {
  const absl::string_view format = c.String("data_format", "NHWC");
  const int rank = static_cast<int>(format.size());
  if (rank != 4 && rank != 5) return kUnknownShape;
  *channel = format[1] == 'C' ? 1 : rank - 1;
  return c.WithRank(input, rank);
}

// FusedBatchNorm(x, scale, offset, mean, variance) -> y, mean, variance, and outputs for the
// gradient.
void FusedBatchNorm(ShapeContext& c) {
  int channel = 0;
  const ShapeId in = NormalizedInput(c, 0, &channel);
  if (!c.known(in) || c.failed()) return;
  int64_t depth = c.dim(in, channel);
  // Mean and variance are empty in training.
  const int vectors = c.Bool("is_training", true) ? 3 : 5;
  for (int i = 1; i < vectors; ++i) depth = c.MergeDims(depth, c.dim(c.WithRank(i, 1), 0));
  c.set(0, c.ReplaceDim(in, channel, depth));
  for (int i = 1; i < 5; ++i) c.set(i, c.Make({depth}));
  // Output 5, cuDNN's reserve, is for the fused activation; without one cuDNN needs 0 elements. If
  // cuDNN is not used, the kernel outputs an empty tensor, too
  // (tensorflow/core/kernels/fused_batch_norm_op.cc; on some GPUs a scalar).
  if (c.op() == "FusedBatchNormV3") c.set(5, c.Make({0}));
}

// FusedBatchNormGrad(y_backprop, x, scale, ...). _FusedBatchNormGradEx has as output 5 the gradient
// of the input that is added before the activation.
void FusedBatchNormGrad(ShapeContext& c) {
  int channel = 0;
  const ShapeId gradient = NormalizedInput(c, 0, &channel);
  if (!c.known(gradient) || c.failed()) return;
  const ShapeId in = c.Merge(gradient, c.input(1));
  int64_t depth = c.dim(in, channel);
  for (int i = 2; i < 5; ++i) depth = c.MergeDims(depth, c.dim(c.WithRank(i, 1), 0));
  if (c.failed()) return;
  const ShapeId out = c.ReplaceDim(in, channel, depth);
  c.set(0, out);
  c.set(1, c.Make({depth}));
  c.set(2, c.Make({depth}));
  c.set(3, c.Make({0}));
  c.set(4, c.Make({0}));
  if (c.Int("num_side_inputs", 0) > 0) c.set(5, out);
}

// BatchNormWithGlobalNormalizationGrad(t, m, v, gamma, backprop) -> dx, and a vector for each of
// the others.
void BatchNormGrad(ShapeContext& c) {
  c.set_all(c.input(1));
  c.set(0, c.Merge(c.input(0), c.input(4)));
}

// LRN.
void Image(ShapeContext& c) { c.set(0, c.WithRank(0, 4)); }

// The channels' position in a tensor of any rank, from the attribute data_format.
int ChannelOf(ShapeContext& c, int rank) {
  return c.String("data_format", "NHWC") == "NCHW" ? 1 : rank - 1;
}

void BiasAdd(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2), bias = c.WithRank(1, 1);
  if (!c.known(in) || c.failed()) return;
  const int channel = ChannelOf(c, c.rank(in));
  c.set(0, c.ReplaceDim(in, channel, c.MergeDims(c.dim(in, channel), c.dim(bias, 0))));
}

void BiasAddGrad(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  c.set(0, c.known(in) ? c.Make({c.dim(in, ChannelOf(c, c.rank(in)))}) : c.OfRank(1));
}

// ---- Activations, losses, top k.
void MergeAddends(ShapeContext& c) {
  ShapeId merged = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) merged = c.Merge(merged, c.input(i));
  c.set(0, merged);
}

// LRNGrad(input_grads, input_image, output_image).
void LrnGrad(ShapeContext& c) {
  MergeAddends(c);
  c.refine(0, c.OfRank(4));
}

void UnchangedVector(ShapeContext& c) {
  c.WithRankAtLeast(0, 1);
  c.set(0, c.input(0));
}

// SoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop.
void SoftmaxCrossEntropy(ShapeContext& c) {
  const bool known = c.known(c.input(0)) && c.known(c.input(1));
  ShapeId both = known ? c.Broadcast(c.input(0), c.input(1)) : c.Merge(c.input(0), c.input(1));
  if (!c.known(both)) both = c.OfRank(2);
  if (c.rank(both) != 2) return c.Fail("logits and labels must be matrices");
  c.set(0, c.Make({c.dim(both, 0)}));
  c.set(1, both);
}

// SparseSoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop.
void SparseSoftmaxCrossEntropy(ShapeContext& c) {
  const ShapeId features = c.WithRank(0, 2), labels = c.WithRank(1, 1);
  const int64_t batch = c.MergeDims(c.dim(features, 0), c.dim(labels, 0));
  c.set(0, c.Make({batch}));
  c.set(1, c.Make({batch, c.dim(features, 1)}));
}

// InTopK(predictions, targets).
void InTopK(ShapeContext& c) {
  const ShapeId predictions = c.WithRank(0, 2), targets = c.WithRank(1, 1);
  c.set(0, c.Make({c.MergeDims(c.dim(predictions, 0), c.dim(targets, 0))}));
}

void TopKOf(ShapeContext& c, int64_t k) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  if (!c.known(in) || c.failed()) return;
  const int64_t last = c.dim(in, -1);
  if (k >= 0 && last >= 0 && last < k) {
    return c.Fail(absl::StrCat("the best ", k, " of ", last, " are asked for"));
  }
  c.set_all(c.ReplaceDim(in, -1, std::max(k, kUnknownDim)));
  if (k >= 0) return;
  for (int port : {0, 1}) c.set_bound(port, in);  // All of them.
}

void TopK(ShapeContext& c) { TopKOf(c, c.Int("k", kUnknownDim)); }
void TopKV2(ShapeContext& c) { TopKOf(c, c.ScalarValue(1)); }

void NthElement(ShapeContext& c) { c.set(0, c.Slice(c.WithRankAtLeast(0, 1), 0, -1)); }

// ---- Dimensions by name, which Grappler's layout pass puts before shapes, paddings and axes.
// Their values: tensorflow/core/kernels/data_format_ops.cc and .h.

// For each of `letters` in the attribute src_format, its position among those in dst_format. Empty
// if the formats are not permutations of the same 4 or 5 letters.
DimVector PlacesInDstFormat(ShapeContext& c, absl::string_view letters = "") {
  std::string src(c.String("src_format", "NHWC")), dst(c.String("dst_format", "NCHW"));
  if (src.size() != dst.size() || src.size() < 4 || src.size() > 5) return {};
  for (char dim : src) {
    if (src.find(dim) != src.rfind(dim) || !absl::StrContains(dst, dim)) return {};
  }
  const auto is_other = [letters](char dim) { return !absl::StrContains(letters, dim); };
  if (!letters.empty()) {
    src.erase(std::remove_if(src.begin(), src.end(), is_other), src.end());
    dst.erase(std::remove_if(dst.begin(), dst.end(), is_other), dst.end());
  }
  DimVector places;
  for (char dim : src) places.push_back(static_cast<int64_t>(dst.find(dim)));
  return places;
}

// DataFormatDimMap(x): axes.
void DataFormatDimMap(ShapeContext& c) {
  c.set(0, c.input(0));
  const auto axes = c.Value(0);
  const DimVector places = PlacesInDstFormat(c);
  if (!axes || places.empty()) return;
  const auto rank = static_cast<int64_t>(places.size());
  DimVector mapped;
  for (int64_t axis : *axes) {
    const bool is_axis = axis >= -rank && axis < rank;
    mapped.push_back(is_axis ? places[(axis + rank) % rank] : kUnknownElement);
  }
  c.set_value(0, mapped);
}

// DataFormatVecPermute(x): a number, or two in a row, for each dimension, or for each in space.
void DataFormatVecPermute(ShapeContext& c) {
  const ShapeId in = c.input(0);
  c.set(0, in);
  const auto items = c.Value(0);
  DimVector places = PlacesInDstFormat(c);
  const auto dims = static_cast<int64_t>(places.size());
  if (dims > 0 && c.dim(in, 0) == dims - 2) places = PlacesInDstFormat(c, dims == 4 ? "HW" : "DHW");
  const int rank = c.rank(in);
  if (!items || rank < 1 || rank > 2 || (rank == 2 && c.dim(in, 1) != 2)) return;
  if (places.empty() || c.dim(in, 0) != static_cast<int64_t>(places.size())) return;
  if (items->size() != places.size() * rank) return;
  DimVector permuted(items->size());
  for (size_t i = 0; i < items->size(); ++i) {
    permuted[places[i / rank] * rank + i % rank] = (*items)[i];
  }
  c.set_value(0, permuted);
}

constexpr ShapeRule kNnRules[] = {
    // Convolutions.
    {"Conv2D", Conv2D},
    {"Conv2DBackpropFilter", Conv2DBackpropFilter},
    {"Conv2DBackpropInput", Conv2DBackpropInput},
    {"Conv3D", Conv3D},
    {"Conv3DBackpropFilter", ShapeOfSecond},
    {"Conv3DBackpropFilterV2", Conv3DBackpropFilterV2},
    {"Conv3DBackpropInput", Unchanged},
    {"Conv3DBackpropInputV2", Conv3DBackpropInputV2},
    {"DepthwiseConv2dNative", DepthwiseConv2d},
    {"DepthwiseConv2dNativeBackpropFilter", Conv2DBackpropFilter},
    {"DepthwiseConv2dNativeBackpropInput", DepthwiseBackpropInput},
    {"Dilation2D", Dilation2D},
    {"Dilation2DBackpropFilter", ShapeOfSecond},
    {"Dilation2DBackpropInput", Unchanged},
    {"ExtractImagePatches", ExtractImagePatches},
    {"ExtractVolumePatches", ExtractVolumePatches},
    {"_FusedConv2D", FusedConv2D},
    {"_FusedConv3D", Conv3D},
    {"_FusedDepthwiseConv2dNative", DepthwiseConv2d},
    // Pooling.
    {"AvgPool", AvgPool},
    {"AvgPool3D", Pool3D},
    {"AvgPool3DGrad", PoolGradFromShape3D},
    {"AvgPoolGrad", PoolGradFromShape2D},
    {"FractionalAvgPool", FractionalPool},
    {"FractionalAvgPoolGrad", PoolGradFromShape2D},
    {"FractionalMaxPool", FractionalPool},
    {"FractionalMaxPoolGrad", MaxPoolGrad2D},
    {"MaxPool", MaxPool},
    {"MaxPool3D", Pool3D},
    {"MaxPool3DGrad", MaxPoolGrad3D},
    {"MaxPool3DGradGrad", MaxPoolGradGrad3D},
    {"MaxPoolGrad", MaxPoolGrad2D},
    {"MaxPoolGradGrad", MaxPoolGradGrad2D},
    {"MaxPoolGradGradV2", MaxPoolGradGrad2D},
    {"MaxPoolGradV2", MaxPoolGrad2D},
    {"MaxPoolGradWithArgmax", MaxPoolGrad2D},
    {"MaxPoolV2", MaxPoolV2},
    {"MaxPoolWithArgmax", MaxPool},
    // Normalization.
    {"BatchNormWithGlobalNormalization", Unchanged},
    {"BatchNormWithGlobalNormalizationGrad", BatchNormGrad},
    {"BiasAdd", BiasAdd},
    {"BiasAddGrad", BiasAddGrad},
    {"BiasAddV1", BiasAdd},
    {"FusedBatchNorm", FusedBatchNorm},
    {"FusedBatchNormGrad", FusedBatchNormGrad},
    {"FusedBatchNormGradV2", FusedBatchNormGrad},
    {"FusedBatchNormGradV3", FusedBatchNormGrad},
    {"FusedBatchNormV2", FusedBatchNorm},
    {"FusedBatchNormV3", FusedBatchNorm},
    {"LRN", Image},
    {"LRNGrad", LrnGrad},
    {"_FusedBatchNormEx", FusedBatchNorm},
    {"_FusedBatchNormGradEx", FusedBatchNormGrad},
    // Activations.
    {"DataFormatDimMap", DataFormatDimMap},
    {"DataFormatVecPermute", DataFormatVecPermute},
    {"Elu", Unchanged},
    {"EluGrad", MergeAddends},
    {"LeakyRelu", Unchanged},
    {"LeakyReluGrad", MergeAddends},
    {"LogSoftmax", UnchangedVector},
    {"Relu", Unchanged},
    {"Relu6", Unchanged},
    {"Relu6Grad", MergeAddends},
    {"ReluGrad", MergeAddends},
    {"Selu", Unchanged},
    {"SeluGrad", MergeAddends},
    {"Softmax", UnchangedVector},
    {"Softplus", Unchanged},
    {"SoftplusGrad", MergeAddends},
    {"Softsign", Unchanged},
    {"SoftsignGrad", MergeAddends},
    // Losses, top k.
    {"InTopK", InTopK},
    {"InTopKV2", InTopK},
    {"L2Loss", Scalars},
    {"NthElement", NthElement},
    {"SoftmaxCrossEntropyWithLogits", SoftmaxCrossEntropy},
    {"SparseSoftmaxCrossEntropyWithLogits", SparseSoftmaxCrossEntropy},
    {"TopK", TopK},
    {"TopKV2", TopKV2},
};

}  // namespace

absl::Span<const ShapeRule> NnShapeRules() { return kNnRules; }

}  // namespace spillway::core
