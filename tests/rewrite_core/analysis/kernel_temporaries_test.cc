#include "rewrite_core/analysis/kernel_temporaries.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::CaseName;
using testing::TestFacts;

Hardware Gpu(double compute_capability, bool tf32 = true) {
  Hardware hardware;
  hardware.compute_capability = compute_capability;
  hardware.tf32 = tf32;
  return hardware;
}

// A source of any shape: a custom op, of which only its stated shape is known.
std::string SourceNode(const std::string& name, const std::string& shape,
                       const std::string& type = "float32") {
  return absl::StrCat(name, " = Abs() {T=", type, ", _output_shapes=[", shape, "]}\n");
}

// Of the node `n`.
KernelTemporaries::Use UseOf(const std::string& graph, const Hardware& hardware,
                             std::string* reason = nullptr) {
  const TestFacts test(graph);
  const GrapplerLayout layout;  // Nothing is converted.
  const KernelTemporaries kernels(*test.graph, test.facts.shapes().bounds(), hardware, layout);
  const KernelTemporaries::Use use = kernels.Of(test.graph["n"]);
  if (reason != nullptr) *reason = kernels.Reason(test.graph["n"], use);
  return use;
}

// 2 images of 8x8 in 3 channels, kernels of 3x3 to 5 channels: 384, 135 and 640 elements.
constexpr int64_t kDataBytes = 384, kFilterBytes = 135, kMapBytes = 640;
constexpr char kSame[] = "padding=\"SAME\", strides=[1,1,1,1]";

std::string Images(const std::string& type = "float32") {
  return SourceNode("x", "(2,8,8,3)", type);
}
std::string Weights(const std::string& type = "float32") {
  return SourceNode("w", "(3,3,3,5)", type);
}
std::string Gradient(const std::string& type = "float32") {
  return SourceNode("g", "(2,8,8,5)", type);
}
std::string Forward(const std::string& attrs, const std::string& type = "float32") {
  return absl::StrCat(Images(type), Weights(type), "n = Conv2D(x, w) {T=", type, ", ", attrs, "}");
}
constexpr char kSizes[] = "s = Const() {dtype=int32, _output_shapes=[(4)]}\n";
std::string OfInput(const std::string& attrs) {
  return absl::StrCat(kSizes, Weights(), Gradient(),
                      "n = Conv2DBackpropInput(s, w, g) {T=float32, ", attrs,
                      ", _output_shapes=[(2,8,8,3)]}");
}
std::string OfFilter(const std::string& attrs) {
  return absl::StrCat(kSizes, Images(), Gradient(),
                      "n = Conv2DBackpropFilter(x, s, g) {T=float32, ", attrs,
                      ", _output_shapes=[(3,3,3,5)]}");
}
std::string BatchNorm(const std::string& attrs, const std::string& type = "float32") {
  return absl::StrCat(Images(type), SourceNode("s", "(3)"),
                      "n = FusedBatchNormV3(x, s, s, s, s) {T=", type, ", U=float32, ", attrs, "}");
}
std::string BatchNormGrad(const std::string& attrs) {
  return absl::StrCat(Images(), SourceNode("s", "(3)"),
                      "n = FusedBatchNormGradV3(x, x, s, s, s, s) {T=float32, U=float32, ", attrs,
                      "}");
}
// Of two axes, from 0 to 9.
std::string Axes(int first, int second) {
  return absl::StrCat("a = Const() {dtype=int32, value=0x420c08031204120208023a020", first, "0",
                      second, "}\n");
}
std::string Sum(const std::string& shape, const std::string& axes) {
  return SourceNode("x", shape) + axes + "n = Sum(x, a) {T=float32, Tidx=int32}";
}

struct UseCase {
  std::string name;
  std::string graph;
  Hardware hardware;
  int64_t bytes;
  double moved_bytes;
};

class KernelTemporariesTest : public ::testing::TestWithParam<UseCase> {};

TEST_P(KernelTemporariesTest, IsWhatTheKernelAllocates) {
  const KernelTemporaries::Use use = UseOf(GetParam().graph, GetParam().hardware);
  EXPECT_EQ(use.bytes, GetParam().bytes);
  EXPECT_EQ(use.moved_bytes, GetParam().moved_bytes);
}

const std::string kNhwc = "data_format=\"NHWC\"", kNchw = "data_format=\"NCHW\"";
const std::string kNhwcSame = absl::StrCat(kNhwc, ", ", kSame);

INSTANTIATE_TEST_SUITE_P(
    BatchNorm, KernelTemporariesTest,
    ::testing::Values(
        // x and y in NCHW: each is read and written once more.
        UseCase{"Forward", BatchNorm(kNhwc), Gpu(7), 2 * 4 * kDataBytes, 4 * 4 * kDataBytes},
        UseCase{"ByDefault", BatchNorm("epsilon=0.1f"), Gpu(7), 2 * 4 * kDataBytes,
                4 * 4 * kDataBytes},
        // On any GPU, in any type.
        UseCase{"Hopper", BatchNorm(kNhwc), Gpu(9), 2 * 4 * kDataBytes, 4 * 4 * kDataBytes},
        UseCase{"Half", BatchNorm(kNhwc, "float16"), Gpu(9), 2 * 2 * kDataBytes,
                4 * 2 * kDataBytes},
        UseCase{"Gradient", BatchNormGrad(kNhwc), Gpu(7), 3 * 4 * kDataBytes, 6 * 4 * kDataBytes},
        UseCase{"ForwardNchw",
                SourceNode("x", "(2,3,8,8)") + SourceNode("s", "(3)") +
                    "n = FusedBatchNormV3(x, s, s, s, s) {T=float32, U=float32, " + kNchw + "}",
                Gpu(7), 0, 0},
        UseCase{"Inference", BatchNorm(kNhwc + ", is_training=false"), Gpu(7), 0, 0},
        UseCase{"GradientOfInference", BatchNormGrad(kNhwc + ", is_training=false"), Gpu(7), 0, 0},
        UseCase{"NoLayout", BatchNorm("data_format=\"NHCW\""), Gpu(7), 0, 0}),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Convolutions, KernelTemporariesTest,
    ::testing::Values(
        // Where cuDNN convolves in NHWC, the filter alone is transformed.
        UseCase{"Tf32", Forward(kNhwcSame), Gpu(8), 4 * kFilterBytes, 8 * kFilterBytes},
        UseCase{"WithoutTf32", Forward(kNhwcSame), Gpu(8, false),
                4 * (kDataBytes + kFilterBytes + kMapBytes),
                8 * (kDataBytes + kFilterBytes + kMapBytes)},
        UseCase{"BelowAmpere", Forward(kNhwcSame), Gpu(7.5),
                4 * (kDataBytes + kFilterBytes + kMapBytes),
                8 * (kDataBytes + kFilterBytes + kMapBytes)},
        UseCase{"HalfOnVolta", Forward(kNhwcSame, "float16"), Gpu(7), 2 * kFilterBytes,
                4 * kFilterBytes},
        UseCase{"HalfOnPascal", Forward(kNhwcSame, "float16"), Gpu(6),
                2 * (kDataBytes + kFilterBytes + kMapBytes),
                4 * (kDataBytes + kFilterBytes + kMapBytes)},
        UseCase{"Bfloat16", Forward(kNhwcSame, "bfloat16"), Gpu(8), 2 * kFilterBytes,
                4 * kFilterBytes},
        // As float32, which three copies of twice the size make of it.
        UseCase{"Bfloat16OnVolta", Forward(kNhwcSame, "bfloat16"), Gpu(7),
                2 * 4 * (kDataBytes + kFilterBytes + kMapBytes),
                14 * (kDataBytes + kFilterBytes + kMapBytes)},
        UseCase{"Double", Forward(kNhwcSame, "float64"), Gpu(9),
                8 * (kDataBytes + kFilterBytes + kMapBytes),
                16 * (kDataBytes + kFilterBytes + kMapBytes)},
        UseCase{"OfIntegers", Forward(kNhwcSame, "int32"), Gpu(7), 0, 0},
        UseCase{"Nchw",
                SourceNode("x", "(2,3,8,8)") + Weights() + "n = Conv2D(x, w) {T=float32, " + kNchw +
                    ", " + kSame + "}",
                Gpu(7), 4 * kFilterBytes, 8 * kFilterBytes},
        UseCase{"OfInput", OfInput(kNhwcSame), Gpu(7), 4 * (kFilterBytes + kMapBytes + kDataBytes),
                8 * (kFilterBytes + kMapBytes + kDataBytes)},
        // The result is computed into memory of its own, which then replaces the output.
        UseCase{"OfInputTf32", OfInput(kNhwcSame), Gpu(8), 4 * (kFilterBytes + kDataBytes),
                8 * kFilterBytes},
        UseCase{"OfFilter", OfFilter(kNhwcSame), Gpu(7),
                4 * (kFilterBytes + kMapBytes + kDataBytes),
                8 * (kFilterBytes + kMapBytes + kDataBytes)},
        UseCase{"OfFilterTf32", OfFilter(kNhwcSame), Gpu(8), 4 * kFilterBytes, 8 * kFilterBytes},
        // A matrix product of 128 pixels.
        UseCase{"Point",
                Images() + SourceNode("w", "(1,1,3,5)") + "n = Conv2D(x, w) {T=float32, " +
                    kNhwcSame + "}",
                Gpu(7), 0, 0},
        UseCase{"PointWithStride",
                Images() + SourceNode("w", "(1,1,3,5)") +
                    "n = Conv2D(x, w) {T=float32, padding=\"VALID\", strides=[1,2,2,1]}",
                Gpu(8), 4 * 15, 8 * 15},
        UseCase{"PointOfGroups",
                SourceNode("x", "(2,8,8,4)") + SourceNode("w", "(1,1,2,6)") +
                    "n = Conv2D(x, w) {T=float32, " + kNhwcSame + "}",
                Gpu(8), 4 * 12, 8 * 12},
        UseCase{"Whole",
                Images() + SourceNode("w", "(8,8,3,5)") +
                    "n = Conv2D(x, w) {T=float32, padding=\"VALID\", strides=[1,1,1,1]}",
                Gpu(7), 0, 0},
        // 8 pixels in strides of 2 need one pixel of padding, at the end: a copy of 9x9. In
        // NCHW it is copied again, and freed before the filter (135) and the result (160) are.
        UseCase{"Uneven", Forward(kNhwc + ", padding=\"SAME\", strides=[1,2,2,1]"), Gpu(8),
                4 * (2 * 81 * 3 + kFilterBytes), 4 * (kDataBytes + 2 * 81 * 3 + 2 * kFilterBytes)},
        UseCase{"UnevenBelowAmpere", Forward(kNhwc + ", padding=\"SAME\", strides=[1,2,2,1]"),
                Gpu(7), 4 * 2 * (2 * 81 * 3),
                4 * (kDataBytes + 3 * 486 + 2 * kFilterBytes + 2 * 160)},
        UseCase{"Explicit",
                Forward(kNhwc + ", padding=\"EXPLICIT\", explicit_paddings=[0,0,1,3,1,1,0,0], "
                                "strides=[1,1,1,1]"),
                Gpu(8), 4 * (2 * 10 * 8 * 3 + kFilterBytes),
                4 * (kDataBytes + 480 + 2 * kFilterBytes)},
        // One channel has one layout.
        UseCase{"OneChannel",
                SourceNode("x", "(2,8,8,1)") + SourceNode("w", "(3,3,1,5)") +
                    "n = Conv2D(x, w) {T=float32, " + kNhwcSame + "}",
                Gpu(7), 4 * (45 + kMapBytes), 8 * (45 + kMapBytes)},
        UseCase{"InThreeDimensions",
                SourceNode("x", "(1,4,4,4,2)") + SourceNode("w", "(3,3,3,2,7)") +
                    "n = Conv3D(x, w) {T=float32, data_format=\"NDHWC\", padding=\"SAME\", "
                    "strides=[1,1,1,1,1]}",
                Gpu(7), 4 * (128 + 378 + 448), 8 * (128 + 378 + 448)},
        UseCase{"Empty",
                SourceNode("x", "(0,8,8,3)") + Weights() + "n = Conv2D(x, w) {T=float32, " +
                    kNhwcSame + "}",
                Gpu(7), 0, 0},
        UseCase{"OtherLayout", Forward("data_format=\"NCHW_VECT_C\", " + std::string(kSame)),
                Gpu(7), 0, 0}),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Others, KernelTemporariesTest,
    ::testing::Values(
        // TensorFlow's own kernel.
        UseCase{"Depthwise",
                Images() + SourceNode("w", "(3,3,3,1)") +
                    "n = DepthwiseConv2dNative(x, w) {T=float32, " + kNhwcSame + "}",
                Gpu(7), 0, 0},
        // cuDNN's: the gradient is computed into memory of its own.
        UseCase{"DepthwiseOfHalf",
                std::string(kSizes) + SourceNode("w", "(3,3,3,1)", "float16") +
                    SourceNode("g", "(2,8,8,3)", "float16") +
                    "n = DepthwiseConv2dNativeBackpropInput(s, w, g) {T=float16, " + kNhwcSame +
                    ", _output_shapes=[(2,8,8,3)]}",
                Gpu(7), 2 * (27 + kDataBytes), 4 * 27},
        UseCase{"DepthwiseOfHalfTimesTwo",
                Images("float16") + SourceNode("w", "(3,3,3,2)", "float16") +
                    "n = DepthwiseConv2dNative(x, w) {T=float16, " + kNhwcSame + "}",
                Gpu(7), 0, 0},
        UseCase{"AveragePoolGradient",
                std::string(kSizes) + SourceNode("g", "(2,3,4,4)") +
                    "n = AvgPoolGrad(s, g) {T=float32, ksize=[1,1,2,2], strides=[1,1,2,2], "
                    "padding=\"VALID\", data_format=\"NCHW\", _output_shapes=[(2,3,8,8)]}",
                Gpu(7), 4 * (384 + 96), 0},
        UseCase{"AveragePoolGradientNhwc",
                std::string(kSizes) + SourceNode("g", "(2,4,4,3)") +
                    "n = AvgPoolGrad(s, g) {T=float32, ksize=[1,2,2,1], strides=[1,2,2,1], "
                    "padding=\"VALID\", _output_shapes=[(2,8,8,3)]}",
                Gpu(7), 0, 0},
        // Kept and reduced dimensions take turns four times.
        UseCase{"Reduction", Sum("(2,3,5,7)", Axes(1, 3)), Gpu(7), 840, 1680},
        UseCase{"ReductionOfThreeParts", Sum("(2,3,5,7)", Axes(1, 2)), Gpu(7), 0, 0},
        UseCase{"ReductionAcrossOne", Sum("(2,3,1,7)", Axes(1, 3)), Gpu(7), 0, 0},
        // It may be any.
        UseCase{"ReductionOfUnknownAxes",
                SourceNode("x", "(2,3,5,7)") + SourceNode("a", "(2)", "int32") +
                    "n = Sum(x, a) {T=float32, Tidx=int32, _output_shapes=[(?,?)]}",
                Gpu(7), 840, 1680},
        UseCase{"MaxPoolGradient",
                Images() + SourceNode("y", "(2,4,4,3)") +
                    "n = MaxPoolGrad(x, y, y) {T=float32, ksize=[1,2,2,1], strides=[1,2,2,1], "
                    "padding=\"VALID\"}",
                Gpu(7), 0, 0},
        UseCase{
            "MatMul",
            SourceNode("a", "(2,3)") + SourceNode("b", "(3,5)") + "n = MatMul(a, b) {T=float32}",
            Gpu(7), 0, 0}),
    CaseName());

TEST(KernelTemporariesOfUnknownTest, AreNone) {
  for (const std::string& graph :
       {SourceNode("x", "(?,8,8,3)") + Weights() + "n = Conv2D(x, w) {T=float32, " + kNhwcSame +
            "}",
        SourceNode("x", "(*)") + Weights() + "n = Conv2D(x, w) {T=float32, " + kNhwcSame + "}",
        SourceNode("x", "(?,8,8,3)") + SourceNode("s", "(3)") +
            "n = FusedBatchNormV3(x, s, s, s, s) {T=float32, U=float32}",
        Sum("(?,3,5,7)", Axes(1, 3)), std::string("n = Conv2D() {T=float32}"),
        std::string("n = FusedBatchNormGradV3() {}"),
        std::string("n = AvgPoolGrad() {data_format=\"NCHW\"}"), std::string("n = Sum() {}"),
        Images() + Weights() + "n = Conv2D(x, w) {padding=\"SAME\"}",
        Images() + Weights() + "n = Conv2D(^x, ^w) {T=float32, " + kNhwcSame + "}"}) {
    EXPECT_EQ(UseOf(graph, Gpu(7)).bytes, 0) << graph;
  }
}

TEST(KernelTemporariesOfUnknownTest, HugeOrSenselessNumbersAreBounded) {
  const std::string huge = "(32768,32768,32768,32768)";
  for (const std::string& graph :
       {SourceNode("x", huge) + SourceNode("w", huge) +
            "n = Conv2D(x, w) {T=float32, padding=\"SAME\", strides=[1,1,1,1], "
            "_output_shapes=[" +
            huge + "]}",
        SourceNode("x", huge) + SourceNode("s", "(3)") +
            "n = FusedBatchNormV3(x, s, s, s, s) {T=float32, U=float32}"}) {
    EXPECT_EQ(UseOf(graph, Gpu(7)).bytes, kMaxTemporaryBytes) << graph;
  }
  // Strides and paddings that are none pad nothing.
  EXPECT_EQ(
      UseOf(Forward("padding=\"SAME\", strides=[0,0,0,0], _output_shapes=[(2,8,8,5)]"), Gpu(8))
          .bytes,
      4 * kFilterBytes);
  EXPECT_EQ(UseOf(Forward("padding=\"EXPLICIT\", strides=[1,1,1,1], "
                          "explicit_paddings=[0,0,-1,9223372036854775807,0,0,0,0], "
                          "_output_shapes=[(2,8,8,5)]"),
                  Gpu(8))
                .bytes,
            4 * kFilterBytes);
}

TEST(KernelTemporariesReasonTest, NamesLayoutTypeAndCopies) {
  std::string reason;
  UseOf(BatchNormGrad(kNhwc), Gpu(7), &reason);
  EXPECT_EQ(reason, "FusedBatchNormGradV3 of NHWC float32 copies 3 tensors of 1.50 KiB");
  UseOf(Forward(kNhwcSame), Gpu(7), &reason);
  EXPECT_EQ(reason, "Conv2D of NHWC float32 copies tensors of 1.50 KiB, 540 B and 2.50 KiB");
  UseOf(Sum("(2,3,5,7)", Axes(1, 3)), Gpu(7), &reason);
  EXPECT_EQ(reason, "Sum of float32 copies 1 tensor of 840 B");
}

}  // namespace
}  // namespace spillway::core
