// Quantized tensors: each is three tensors, the values and their minimum and maximum as scalars.
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// Output 0 has the first input's shape, followed by two scalars.
void Quantized(ShapeContext& c) {
  c.set_all(kScalar);
  c.set(0, c.input(0));
}

// QuantizeV2(input, min_range, max_range), and gradients (gradients, input, min, max): along an
// axis, minimum and maximum are vectors.
void QuantizeV2(ShapeContext& c) {
  // The gradient's first two inputs have the same shape.
  const ShapeId in = c.num_inputs() > 3 ? c.Merge(c.input(0), c.input(1)) : c.input(0);
  const int64_t axis = c.Int("axis", -1);
  ShapeId range = kScalar;
  if (axis != -1) {
    const int at = c.Axis(axis, c.rank(in));
    range = c.Make({at < 0 ? kUnknownDim : c.dim(in, at)});
  }
  c.set_all(range);
  c.set(0, in);
  if (c.num_inputs() <= 3) return;
  // The gradients of minimum and maximum.
  range = c.Merge(range, c.Merge(c.input(2), c.input(3)));
  for (int i = 1; i < c.num_outputs(); ++i) c.set(i, range);
}

void QuantizedImages(ShapeContext& c) {
  c.set_all(kScalar);
  c.set(0, c.WithRank(0, 4));
}

// QuantizedAdd(x, y, min_x, ...), QuantizedMul.
void QuantizedBinary(ShapeContext& c) {
  c.set_all(kScalar);
  BroadcastBinary(c);
}

// QuantizedMatMul(a, b, ...) and its fused variants.
void QuantizedMatMul(ShapeContext& c) {
  const ShapeId a = c.WithRank(0, 2), b = c.WithRank(1, 2);
  const bool ta = c.Bool("transpose_a"), tb = c.Bool("transpose_b");
  c.MergeDims(c.dim(a, ta ? 0 : 1), c.dim(b, tb ? 1 : 0));
  c.set_all(kScalar);
  c.set(0, c.Make({c.dim(a, ta ? 1 : 0), c.dim(b, tb ? 0 : 1)}));
}

// QuantizedConcat, QuantizedReshape: only the scalars.
void OnlyRange(ShapeContext& c) {
  for (int i = 1; i < c.num_outputs(); ++i) c.set(i, kScalar);
}

// FakeQuantWithMinMaxVarsPerChannelGradient(gradients, inputs, min, max).
void PerChannelGrad(ShapeContext& c) {
  const ShapeId in = c.Merge(c.WithRankAtLeast(0, 1), c.input(1));
  const int64_t channels = c.MergeDims(
      c.dim(in, -1), c.MergeDims(c.dim(c.WithRank(2, 1), 0), c.dim(c.WithRank(3, 1), 0)));
  c.set_all(c.Make({channels}));
  c.set(0, in);
}

constexpr ShapeRule kQuantizedRules[] = {
    {"FakeQuantWithMinMaxVarsGradient", QuantizeV2},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", PerChannelGrad},
    {"QuantizeAndDequantizeV4Grad", QuantizeV2},
    {"QuantizeDownAndShrinkRange", Quantized},
    {"QuantizeV2", QuantizeV2},
    {"QuantizedAdd", QuantizedBinary},
    {"QuantizedBatchNormWithGlobalNormalization", QuantizedImages},
    {"QuantizedBiasAdd", Quantized},
    {"QuantizedConcat", OnlyRange},
    {"QuantizedConcatV2", OnlyRange},
    {"QuantizedInstanceNorm", Quantized},
    {"QuantizedMatMul", QuantizedMatMul},
    {"QuantizedMatMulWithBias", QuantizedMatMul},
    {"QuantizedMatMulWithBiasAndDequantize", QuantizedMatMul},
    {"QuantizedMatMulWithBiasAndRelu", QuantizedMatMul},
    {"QuantizedMatMulWithBiasAndReluAndRequantize", QuantizedMatMul},
    {"QuantizedMatMulWithBiasAndRequantize", QuantizedMatMul},
    {"QuantizedMul", QuantizedBinary},
    {"QuantizedRelu", Quantized},
    {"QuantizedRelu6", Quantized},
    {"QuantizedReluX", Quantized},
    {"QuantizedReshape", OnlyRange},
    {"RequantizationRange", Scalars},
    {"RequantizationRangePerChannel", Scalars},
    {"Requantize", Quantized},
    {"RequantizePerChannel", Quantized},
};

}  // namespace

absl::Span<const ShapeRule> QuantizedShapeRules() { return kQuantizedRules; }

}  // namespace spillway::core
