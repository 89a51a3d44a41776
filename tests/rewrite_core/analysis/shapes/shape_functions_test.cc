// Shape functions with arithmetic of their own, by hand: each case is a graph whose node `n` is
// checked, with the shapes that the documentation of its op gives.
// shapes_truth_test.cc and tests/tensorflow/shape_functions.py compare many more with TensorFlow's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestGraph;

struct ShapeCase {
  std::string name;
  // `x`, `y` and `z` are placeholders of these shapes; `v` is a vector with the value of the last.
  std::string x, y, z, v;
  std::string node;
  std::string shapes;  // For all outputs of the node.
};

// Also used for messages.
void PrintTo(const ShapeCase& shape_case, std::ostream* out) { *out << shape_case.node; }

std::string Text(const ShapeView& shape) {
  if (!shape.known_rank) return "?";
  return absl::StrCat("[",
                      absl::StrJoin(shape.dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(out, dim < 0 ? "?" : absl::StrCat(dim));
                                    }),
                      "]");
}

class ShapeFunctionTest : public ::testing::TestWithParam<ShapeCase> {};

TEST_P(ShapeFunctionTest, IsAsDocumented) {
  const ShapeCase& c = GetParam();
  std::string text;
  const auto placeholder = [&](absl::string_view name, const std::string& shape) {
    absl::StrAppend(&text, name,
                    " = Placeholder() {dtype=float32, shape=", shape.empty() ? "(*)" : shape,
                    "}\n");
  };
  placeholder("x", c.x);
  placeholder("y", c.y);
  placeholder("z", c.z);
  placeholder("of_that_shape", c.v);
  absl::StrAppend(&text, "v = Shape(of_that_shape) {T=float32, out_type=int32}\nn = ", c.node,
                  "\n");
  const TestGraph graph(text);
  const StopToken stop;
  const auto topology = testing::ValueOrDie(Topology::Build(*graph, stop), "topology");
  const auto shapes = Shapes::Infer(*graph, topology, {}, stop);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  std::vector<std::string> found;
  const NodeId node = graph["n"];
  for (int port = 0; port < shapes->num_outputs(node); ++port) {
    found.push_back(Text(shapes->shape({node, port})));
  }
  EXPECT_EQ(absl::StrJoin(found, " "), c.shapes) << text;
}

// A SAME window gives ceil(size / stride), a VALID one floor((size - window) / stride) + 1.
INSTANTIATE_TEST_SUITE_P(
    Windows, ShapeFunctionTest,
    ::testing::Values(
        ShapeCase{"Conv3DSame", "(2,9,10,11,3)", "(3,3,3,3,8)", "", "",
                  "Conv3D(x, y) {T=float32, strides=[1,2,2,2,1], padding=\"SAME\"}", "[2,5,5,6,8]"},
        ShapeCase{"Conv3DValidDilated", "(2,9,10,11,3)", "(3,3,3,3,8)", "", "",
                  "Conv3D(x, y) {T=float32, strides=[1,1,1,1,1], dilations=[1,2,2,2,1], "
                  "padding=\"VALID\"}",
                  "[2,5,6,7,8]"},
        // A fused op of Grappler has the outputs of its first op; its arguments do not matter.
        ShapeCase{"FusedConv2D", "(2,9,10,3)", "(3,3,3,8)", "(8)", "",
                  "_FusedConv2D(x, y, z) {T=float32, TArgs=[float32], num_args=1, "
                  "strides=[1,2,2,1], padding=\"SAME\"}",
                  "[2,5,5,8]"},
        ShapeCase{"FusedConv2DOther", "(2,9,10,3)", "(8,3,3,3)", "(8)", "",
                  "_FusedConv2D(x, y, z) {T=float32, TArgs=[float32], num_args=1, "
                  "strides=[1,2,2,1], padding=\"SAME\", filter_format=\"OIHW\"}",
                  "[?,?,?,?]"},
        ShapeCase{"FusedConv3D", "(2,9,10,11,3)", "(3,3,3,3,8)", "(8)", "",
                  "_FusedConv3D(x, y, z) {T=float32, num_args=1, strides=[1,2,2,2,1], "
                  "padding=\"SAME\"}",
                  "[2,5,5,6,8]"},
        ShapeCase{"FusedDepthwise", "(?,8,8,3)", "(3,3,3,2)", "(6)", "",
                  "_FusedDepthwiseConv2dNative(x, y, z) {T=float32, num_args=1, "
                  "strides=[1,1,1,1], padding=\"VALID\"}",
                  "[?,6,6,6]"},
        ShapeCase{"FusedMatMul", "(4,?)", "(7,4)", "(7)", "",
                  "_FusedMatMul(x, y, z) {T=float32, num_args=1, transpose_a=true, "
                  "transpose_b=true}",
                  "[?,7]"},
        ShapeCase{"FusedBatchNorm", "(2,9,9,3)", "(3)", "", "",
                  "_FusedBatchNormEx(x, y, y, y, y, x) {T=float32, U=float32, num_side_inputs=1}",
                  "[2,9,9,3] [3] [3] [3] [3] ?"},
        ShapeCase{"FusedBatchNormGrad", "(2,9,9,3)", "(3)", "", "",
                  "_FusedBatchNormGradEx(x, x, y, y, y, z, y, x) {T=float32, U=float32, "
                  "num_side_inputs=1}",
                  "[2,9,9,3] [3] [3] [0] [0] [2,9,9,3]"},
        // floor(7 / 1.5) = 4, floor(9 / 1.5) = 6: ratios 1, 1.5, 1.5, 1.
        ShapeCase{"Fractional", "(2,7,9,3)", "", "", "",
                  "FractionalAvgPool(x) {T=float32, pooling_ratio=[1f,1.5f,1.5f,1f]}",
                  "[2,4,6,3] [4] [6]"}),
    testing::CaseName());

INSTANTIATE_TEST_SUITE_P(
    Images, ShapeFunctionTest,
    ::testing::Values(
        ShapeCase{"Resize", "(?,8,8,3)", "", "", "(20,30)", "ResizeBilinear(x, v) {T=float32}",
                  "[?,20,30,3]"},
        ShapeCase{"ResizeHalfKnown", "(4,8,8,3)", "", "", "(20,?)", "ResizeArea(x, v) {T=float32}",
                  "[4,20,?,3]"},
        ShapeCase{"ResizeGrad", "(4,20,30,3)", "(4,8,8,3)", "", "",
                  "ResizeBicubicGrad(x, y) {T=float32}", "[4,8,8,3]"},
        ShapeCase{"CropAndResize", "(2,8,8,3)", "(9,4)", "(9)", "(7,5)",
                  "CropAndResize(x, y, z, v) {T=float32}", "[9,7,5,3]"},
        // The window is (row, column, rows, columns).
        ShapeCase{"DecodeAndCrop", "()", "", "", "(1,2,30,40)",
                  "DecodeAndCropJpeg(x, v) {channels=3}", "[30,40,3]"},
        ShapeCase{"DecodeAnyChannels", "()", "", "", "", "DecodePng(x) {channels=0}", "[?,?,?]"},
        ShapeCase{"EncodePng", "(5,8,8,3)", "", "", "", "EncodePng(x) {T=uint8}", "[5]"}),
    testing::CaseName());

INSTANTIATE_TEST_SUITE_P(
    Recurrent, ShapeFunctionTest,
    ::testing::Values(
        // 24 biases are those of 4 gates with 6 cells each.
        ShapeCase{"BlockLstm", "(9,4,5)", "(4,6)", "(24)", "",
                  "BlockLSTMV2(y, x, y, y, y, z, z, z, z) {T=float32}",
                  "[9,4,6] [9,4,6] [9,4,6] [9,4,6] [9,4,6] [9,4,6] [9,4,6]"},
        ShapeCase{"CellGrad", "(4,5)", "(4,6)", "", "", "LSTMBlockCellGrad(x, y) {T=float32}",
                  "[4,6] [4,24] [6] [6] [6]"},
        // Both directions side by side; only an LSTM has cells.
        ShapeCase{"CudnnGru", "(9,4,5)", "(2,4,6)", "", "",
                  "CudnnRNN(x, y, y, z) {T=float32, rnn_mode=\"gru\", "
                  "direction=\"bidirectional\"}",
                  "[9,4,12] [2,4,6] [] ?"},
        // Two paths: indices, values and shapes of each, then the probabilities.
        ShapeCase{"CtcBeams", "(50,4,12)", "(4)", "", "",
                  "CTCBeamSearchDecoder(x, y) {T=float32, beam_width=10, top_paths=2}",
                  "[?,2] [?,2] [?] [?] [2] [2] [4,2]"}),
    testing::CaseName());

INSTANTIATE_TEST_SUITE_P(
    Sparse, ShapeFunctionTest,
    ::testing::Values(
        // [5, 6] x [6, 7]; transposed, [6, 5] x [5, 7].
        ShapeCase{"MatMul", "(?,2)", "(?)", "(6,7)", "(5,6)",
                  "SparseTensorDenseMatMul(x, y, v, z) {T=float32}", "[5,7]"},
        ShapeCase{"MatMulAdjoint", "(?,2)", "(?)", "(5,7)", "(5,6)",
                  "SparseTensorDenseMatMul(x, y, v, z) {T=float32, adjoint_a=true}", "[6,7]"},
        ShapeCase{"ToDense", "(?,2)", "(?)", "", "(5,6)", "SparseToDense(x, v, y, y) {T=float32}",
                  "[5,6]"},
        ShapeCase{"Concat", "(4,2)", "(4)", "(2)", "",
                  "SparseConcat(x, x, y, y, z, z) {N=2, concat_dim=0, T=float32}", "[8,2] [8] [2]"},
        ShapeCase{"ReduceSum", "(?,3)", "(?)", "", "(4,5,6)",
                  "SparseReduceSum(x, y, v, axes) {T=float32, keep_dims=true}\n"
                  "axis = Placeholder() {dtype=float32, shape=(1)}\n"
                  "axes = Shape(axis) {T=float32, out_type=int32}",
                  "[4,1,6]"},
        ShapeCase{"Candidates", "(64,1)", "", "", "",
                  "LogUniformCandidateSampler(x) {num_true=1, num_sampled=50, unique=true, "
                  "range_max=5000}",
                  "[50] [64,1] [50]"}),
    testing::CaseName());

INSTANTIATE_TEST_SUITE_P(
    ListsAndData, ShapeFunctionTest,
    ::testing::Values(
        // Elements may differ, so an element's unknown dimension says nothing about the others.
        ShapeCase{"TensorArrayOfAnything", "(6)", "", "", "",
                  "TensorArrayReadV3(array, x, array:1) {dtype=float32}\n"
                  "array = TensorArrayV3(y) {dtype=float32, element_shape=(?,3)}",
                  "?"},
        ShapeCase{"DequeueMany", "", "", "", "",
                  "QueueDequeueManyV2(queue, count) {component_types=[float32,int32]}\n"
                  "vector = Placeholder() {dtype=float32, shape=(16)}\n"
                  "count = Size(vector) {T=float32, out_type=int32}\n"
                  "queue = FIFOQueueV2() {component_types=[float32,int32], shapes=[(8,8,3),()]}",
                  "[16,8,8,3] [16]"},
        ShapeCase{"TableOfScalars", "(?,4)", "", "", "",
                  "LookupTableFindV2(table, x, y) {Tin=float32, Tout=int64}\n"
                  "table = HashTableV2() {key_dtype=float32, value_dtype=int64}",
                  "[?,4]"},
        // 7 examples: a sparse feature (indices, values, shape) and two dense ones.
        ShapeCase{"ParseExample", "(7)", "", "", "",
                  "ParseExample(x, y, z, z, z, y, y) {Nsparse=1, Ndense=2, "
                  "sparse_types=[int64], Tdense=[float32,float32], dense_shapes=[(2,3),(?,4)]}",
                  "[?,2] [?] [2] [7,2,3] [7,?,4]"}),
    testing::CaseName());

// Diagonals of a 4 x 6 matrix: the main one has 4 elements, the third above it has 3, and a band is
// as long as its longest diagonal.
INSTANTIATE_TEST_SUITE_P(
    Diagonals, ShapeFunctionTest,
    ::testing::Values(ShapeCase{"Third", "(2,4,6)", "", "", "(3)",
                                "MatrixDiagPartV3(x, v, y) {T=float32}", "[2,3]"},
                      ShapeCase{"Band", "(2,4,6)", "", "", "(1,3)",
                                "MatrixDiagPartV3(x, v, y) {T=float32}", "[2,3,4]"}),
    testing::CaseName());

// Shapes computed from matrices of shapes. `both` stacks [3,5] and [4,5].
// With axis 0 [[3,5],[4,5]], with axis 1 [[3,4],[5,5]].
std::string Both(int axis) {
  return absl::StrCat(
      "y_shape = Shape(y) {T=float32, out_type=int32}\n"
      "z_shape = Shape(z) {T=float32, out_type=int32}\n"
      "both = Pack(y_shape, z_shape) {N=2, T=int32, axis=",
      axis, "}\n");
}
// A vector or, from its number of elements, a scalar.
std::string Vector(absl::string_view name, absl::string_view items) {
  return absl::StrCat("of_", name, " = Placeholder() {dtype=float32, shape=(", items, ")}\n", name,
                      " = Shape(of_", name, ") {T=float32, out_type=int32}\n");
}
std::string Number(absl::string_view name, int value) {
  return absl::StrCat("of_", name, " = Placeholder() {dtype=float32, shape=(", value, ")}\n", name,
                      " = Size(of_", name, ") {T=float32, out_type=int32}\n");
}

INSTANTIATE_TEST_SUITE_P(
    Matrices, ShapeFunctionTest,
    ::testing::Values(
        // The gradient of a concat of many tensors: the sizes are a row of [[3,4],[5,5]].
        ShapeCase{"ConcatGradient", "(7,5)", "(3,5)", "(4,5)", "",
                  absl::StrCat("SplitV(x, sizes, axis) {T=float32, num_split=2}\n", Both(1),
                               Vector("begin", "0,0"), Vector("count", "1,2"), Number("axis", 0),
                               "row = Slice(both, begin, count) {T=int32, Index=int32}\n"
                               "sizes = Squeeze(row) {T=int32, squeeze_dims=[0]}"),
                  "[3,5] [4,5]"},
        ShapeCase{"InnerSlice", "(5,5)", "(3,5)", "(4,5)", "(1)",
                  absl::StrCat("Split(axis, x) {T=float32, num_split=5}\n", Both(0),
                               Vector("begin", "1,0"), Vector("count", "1,1"),
                               "row = Slice(both, begin, count) {T=int32, Index=int32}\n"
                               "four = Squeeze(row) {T=int32}\n",
                               Number("three", 3), "axis = Sub(four, three) {T=int32}"),
                  "[5,1] [5,1] [5,1] [5,1] [5,1]"},
        // The gradient of a tile: [[3,5],[4,5]] turned and flat is 3,4,5,5.
        ShapeCase{"TileGradient", "(300)", "(3,5)", "(4,5)", "(4)",
                  absl::StrCat("Reshape(x, flat) {T=float32}\n", Both(0), Vector("order", "1,0"),
                               "turned = Transpose(both, order) {T=int32}\n"
                               "flat = Reshape(turned, v) {T=int32}"),
                  "[3,4,5,5]"},
        ShapeCase{"Unpacked", "(20)", "(3,5)", "(4,5)", "",
                  absl::StrCat("Reshape(x, columns:1) {T=float32}\n", Both(1),
                               "columns = Unpack(both) {T=int32, num=2, axis=1}"),
                  "[4,5]"},
        ShapeCase{"SplitColumns", "(20)", "(3,5)", "(4,5)", "(2)",
                  absl::StrCat("Reshape(x, second) {T=float32}\n", Both(1), Number("one", 1),
                               "parts = Split(one, both) {T=int32, num_split=2}\n"
                               "second = Reshape(parts:1, v) {T=int32}"),
                  "[4,5]"},
        // [[3,5,3,4],[4,5,5,5]], row by row.
        ShapeCase{"Joined", "(90000)", "(3,5)", "(4,5)", "(8)",
                  absl::StrCat("Reshape(x, flat) {T=float32}\n", Both(0), Number("one", 1),
                               "columns = Pack(y_shape, z_shape) {N=2, T=int32, axis=1}\n"
                               "joined = ConcatV2(both, columns, one) {N=2, T=int32}\n"
                               "flat = Reshape(joined, v) {T=int32}"),
                  "[3,5,3,4,4,5,5,5]"},
        // Half of a stacked shape is unknown.
        ShapeCase{"HalfKnown", "(?,5)", "(3,5)", "(?,5)", "",
                  absl::StrCat("SplitV(x, sizes, axis) {T=float32, num_split=2}\n", Both(1),
                               Vector("begin", "0,0"), Vector("count", "1,2"), Number("axis", 0),
                               "row = Slice(both, begin, count) {T=int32, Index=int32}\n"
                               "sizes = Squeeze(row) {T=int32, squeeze_dims=[0]}"),
                  "[3,5] [?,5]"},
        // 2^40 rows of no elements, and as many outputs as there are: nothing to go through.
        ShapeCase{"EmptyRows", "", "", "", "",
                  "ConcatV2(rows, rows, one) {N=2, T=int32}\n"
                  "rows = Placeholder() {dtype=int32, shape=(1099511627776,0)}\n" +
                      Number("one", 1),
                  "[1099511627776,0]"}),
    testing::CaseName());

// The nodes that Grappler's layout pass puts before shapes, paddings and axes. Values are those of
// TensorFlow 2.15.1, which refuses the cases without one.
std::string Permuted(absl::string_view src, absl::string_view dst, absl::string_view of = "v") {
  return absl::StrCat("Reshape(x, there) {T=float32}\nthere = DataFormatVecPermute(", of,
                      ") {T=int32, src_format=\"", src, "\", dst_format=\"", dst, "\"}");
}
// A sum over the axis that `axis` becomes, which the result then lacks.
std::string Mapped(int axis, absl::string_view src, absl::string_view dst) {
  return absl::StrCat(
      "Sum(x, there) {T=float32, Tidx=int32, keep_dims=false}\n"
      "there = DataFormatDimMap(axis) {T=int32, src_format=\"",
      src, "\", dst_format=\"", dst, "\"}\n", Number("of_axis", 10 + axis), Number("ten", 10),
      "axis = Sub(of_axis, ten) {T=int32}");
}
// [v, v + 1] for each element of `v`, flat behind the permutation.
std::string PermutedPairs(absl::string_view src, absl::string_view dst, int elements) {
  return absl::StrCat("Reshape(x, flat) {T=float32}\n", Number("one", 1),
                      "more = Add(v, one) {T=int32}\n"
                      "pairs = Pack(v, more) {N=2, T=int32, axis=1}\n"
                      "there = DataFormatVecPermute(pairs) {T=int32, src_format=\"",
                      src, "\", dst_format=\"", dst, "\"}\n",
                      "flat = Reshape(there, all) {T=int32}\n",
                      Vector("all", absl::StrCat(elements)));
}

INSTANTIATE_TEST_SUITE_P(
    DataFormats, ShapeFunctionTest,
    ::testing::Values(
        ShapeCase{"Four", "(?)", "", "", "(10,20,30,40)", Permuted("NHWC", "NCHW"),
                  "[10,40,20,30]"},
        ShapeCase{"FourBack", "(?)", "", "", "(10,20,30,40)", Permuted("NCHW", "NHWC"),
                  "[10,30,40,20]"},
        ShapeCase{"Five", "(?)", "", "", "(10,20,30,40,50)", Permuted("NDHWC", "NCDHW"),
                  "[10,50,20,30,40]"},
        ShapeCase{"HalfKnown", "(?)", "", "", "(10,?,30,40)", Permuted("NHWC", "NCHW"),
                  "[10,40,?,30]"},
        // Height and width stay in order, unless the format turns them.
        ShapeCase{"Space", "(?)", "", "", "(10,20)", Permuted("NHWC", "NCHW"), "[10,20]"},
        ShapeCase{"TurnedSpace", "(?)", "", "", "(10,20)", Permuted("NHWC", "CWHN"), "[20,10]"},
        ShapeCase{"Space3D", "(?)", "", "", "(10,20,30)", Permuted("NDHWC", "WHNDC"), "[30,20,10]"},
        ShapeCase{"Pairs", "(?)", "", "", "(1,3,5,7)", PermutedPairs("NHWC", "NCHW", 8),
                  "[1,2,7,8,3,4,5,6]"},
        ShapeCase{"PairsOfFive", "(?)", "", "", "(1,3,5,7,9)", PermutedPairs("NCDHW", "NDHWC", 10),
                  "[1,2,5,6,7,8,9,10,3,4]"},
        ShapeCase{"PairsOfSpace", "(?)", "", "", "(1,3)", PermutedPairs("NHWC", "NWHC", 4),
                  "[3,4,1,2]"},
        // No values: the rank alone is known.
        ShapeCase{"OtherLengths", "(?)", "", "", "(1,2,3,4)", Permuted("NHWC", "NCDHW"),
                  "[?,?,?,?]"},
        ShapeCase{"Twice", "(?)", "", "", "(1,2,3,4)", Permuted("NHWC", "NHHC"), "[?,?,?,?]"},
        ShapeCase{"TwiceBefore", "(?)", "", "", "(1,2,3,4)", Permuted("NHHC", "NHWC"), "[?,?,?,?]"},
        ShapeCase{"NoFormat", "(?)", "", "", "(1,2,3,4)", Permuted("", ""), "[?,?,?,?]"},
        ShapeCase{"ThreeLetters", "(?)", "", "", "(1,2,3)", Permuted("NHW", "NWH"), "[?,?,?]"},
        ShapeCase{"SixLetters", "(?)", "", "", "(1,2,3,4,5,6)", Permuted("NHWCXY", "NHWCYX"),
                  "[?,?,?,?,?,?]"},
        ShapeCase{"NoSpace", "(?)", "", "", "(1,2)", Permuted("ABCD", "DCBA"), "[?,?]"},
        ShapeCase{"ThreeOfFour", "(?)", "", "", "(1,2,3)", Permuted("NHWC", "NCHW"), "[?,?,?]"},
        ShapeCase{"FiveOfFour", "(?)", "", "", "(1,2,3,4,5)", Permuted("NHWC", "NCHW"),
                  "[?,?,?,?,?]"},
        ShapeCase{"Number", "(?)", "", "", "",
                  Permuted("NHWC", "NCHW", "number") + "\n" + Number("number", 4), "?"},
        // Axes of (20,30,40,50), of which the one that is meant is gone.
        ShapeCase{"Axis", "(20,30,40,50)", "", "", "", Mapped(3, "NHWC", "NCHW"), "[20,40,50]"},
        ShapeCase{"AxisFromTheEnd", "(20,30,40,50)", "", "", "", Mapped(-3, "NHWC", "NCHW"),
                  "[20,30,50]"},
        ShapeCase{"FirstAxis", "(20,30,40,50)", "", "", "", Mapped(-4, "NHWC", "HWNC"),
                  "[20,30,50]"},
        ShapeCase{"AxisOfFive", "(2,3,4,5,6)", "", "", "", Mapped(4, "NDHWC", "NCDHW"),
                  "[2,4,5,6]"},
        ShapeCase{"AxisOfFiveFromTheEnd", "(2,3,4,5,6)", "", "", "", Mapped(-2, "NDHWC", "NCDHW"),
                  "[2,3,4,5]"},
        ShapeCase{"AxisTooLarge", "(20,30,40,50)", "", "", "", Mapped(4, "NHWC", "NCHW"),
                  "[?,?,?]"},
        ShapeCase{"AxisTooSmall", "(20,30,40,50)", "", "", "", Mapped(-5, "NHWC", "NCHW"),
                  "[?,?,?]"},
        ShapeCase{"AxisOfNoFormat", "(20,30,40,50)", "", "", "", Mapped(1, "NHWC", "NHWD"),
                  "[?,?,?]"}),
    testing::CaseName());

}  // namespace
}  // namespace spillway::core
