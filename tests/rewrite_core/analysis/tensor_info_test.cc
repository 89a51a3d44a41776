#include "rewrite_core/analysis/tensor_info.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::IsInvalid;
using testing::IsOk;
using testing::TestGraph;

v1::RewriteOptions Feeding(const std::string& name, const std::vector<int64_t>& dims) {
  v1::RewriteOptions options;
  v1::FeedShape* feed = options.add_feeds();
  feed->set_name(name);
  for (int64_t dim : dims) feed->add_dims(dim);
  return options;
}

v1::RewriteOptions Batch(int64_t size) {
  v1::RewriteOptions options;
  options.set_batch_size(size);
  return options;
}

struct SizeCase {
  std::string name;
  std::string node;  // Its definition; the tensor is its output 0.
  v1::RewriteOptions options;
  int64_t bytes;  // kUnknownSize: unknown, for this reason:
  v1::SizeUnknown why = v1::SIZE_UNKNOWN_UNSPECIFIED;
};

class SizeTest : public ::testing::TestWithParam<SizeCase> {};

TEST_P(SizeTest, IsAsExpected) {
  const TestGraph graph("x = Const() {dtype=float32}\nn = " + GetParam().node);
  const auto infos = TensorInfos::Create(*graph, GetParam().options);
  ASSERT_THAT(infos, IsOk());
  const auto outputs = infos->Outputs(graph.Node("n"), {0});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ((*outputs)[0].size_bytes, GetParam().bytes);
  EXPECT_EQ((*outputs)[0].why_unknown, GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(
    TensorInfo, SizeTest,
    ::testing::Values(
        // 2 * 3 * 5 elements of 4, 2, 8 and 1 bytes.
        SizeCase{"Float", "Relu(x) {T=float32, _output_shapes=[(2,3,5)]}", {}, 120},
        SizeCase{"Half", "Relu(x) {T=float16, _output_shapes=[(2,3,5)]}", {}, 60},
        SizeCase{"Int64", "Relu(x) {T=int64, _output_shapes=[(2,3,5)]}", {}, 240},
        SizeCase{"Bool", "LogicalNot(x) {_output_shapes=[(2,3,5)]}", {}, 30},
        SizeCase{"Scalar", "Relu(x) {T=float32, _output_shapes=[()]}", {}, 4},
        SizeCase{"Empty", "Relu(x) {T=float32, _output_shapes=[(2,0,5)]}", {}, 0},
        // 0 elements, however large the other dimensions are.
        SizeCase{"EmptyAndHuge",
                 "Relu(x) {T=float32, "
                 "_output_shapes=[(4611686018427387904,4611686018427387904,0)]}",
                 {},
                 0},
        // 2^60 floats are 2^62 bytes, which fits; one dimension more does not (see below).
        SizeCase{"Largest",
                 "Relu(x) {T=float32, _output_shapes=[(1152921504606846976)]}",
                 {},
                 int64_t{1} << 62},
        // Reasons.
        SizeCase{"NoShape", "Relu(x) {T=float32}", {}, kUnknownSize, v1::SIZE_UNKNOWN_NO_SHAPE},
        SizeCase{"TooFewShapes",
                 "Relu(x) {T=float32, _output_shapes=[]}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_NO_SHAPE},
        SizeCase{"UnknownRank",
                 "Relu(x) {T=float32, _output_shapes=[(*)]}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_RANK},
        SizeCase{"UnknownDim",
                 "Relu(x) {T=float32, _output_shapes=[(3,?)]}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_DIM},
        SizeCase{"UnknownType",
                 "Relu(x) {_output_shapes=[(2)]}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_DTYPE},
        SizeCase{"NoWidth",
                 "AsString(x) {_output_shapes=[(2)]}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_DTYPE},
        SizeCase{"Reference",
                 "VariableV2() {dtype=float32, _output_shapes=[(2)]}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_DTYPE},
        // The batch size stands for an unknown first dimension, and for no other.
        SizeCase{"Batch", "Relu(x) {T=float32, _output_shapes=[(?,5)]}", Batch(7), 140},
        SizeCase{"NoBatch",
                 "Relu(x) {T=float32, _output_shapes=[(?,5)]}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_DIM},
        SizeCase{"BatchOfKnown", "Relu(x) {T=float32, _output_shapes=[(2,5)]}", Batch(7), 40},
        SizeCase{"BatchInTheMiddle", "Relu(x) {T=float32, _output_shapes=[(2,?)]}", Batch(7),
                 kUnknownSize, v1::SIZE_UNKNOWN_DIM},
        SizeCase{"BatchAndAnother", "Relu(x) {T=float32, _output_shapes=[(?,?)]}", Batch(7),
                 kUnknownSize, v1::SIZE_UNKNOWN_DIM},
        SizeCase{"BatchOfUnknownRank", "Relu(x) {T=float32, _output_shapes=[(*)]}", Batch(7),
                 kUnknownSize, v1::SIZE_UNKNOWN_RANK},
        // Feeds go before what the graph says.
        SizeCase{"Feed", "Placeholder() {dtype=float32}", Feeding("n", {6, 2}), 48},
        SizeCase{"FeedByTensor", "Placeholder() {dtype=float32}", Feeding("n:0", {6, 2}), 48},
        SizeCase{"FeedOfAScalar", "Placeholder() {dtype=float32}", Feeding("n", {}), 4},
        SizeCase{"FeedOverShape", "Relu(x) {T=float32, _output_shapes=[(2,3,5)]}",
                 Feeding("n", {10}), 40},
        SizeCase{"FeedOfAnother", "Relu(x) {T=float32, _output_shapes=[(2,3,5)]}",
                 Feeding("x", {10}), 120},
        SizeCase{"FeedOfZero", "Placeholder() {dtype=float32}", Feeding("n", {0, 3}), 0},
        // A Placeholder's own shape; a scalar's meant "unknown" up to producer 23.
        SizeCase{"Placeholder", "Placeholder() {dtype=float32, shape=(4,4)}", {}, 64},
        SizeCase{"PlaceholderBatch", "Placeholder() {dtype=float32, shape=(?,4)}", Batch(2), 32},
        SizeCase{"PlaceholderScalar",
                 "Placeholder() {dtype=float32, shape=()}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_NO_SHAPE},
        SizeCase{"PlaceholderWithShapes",
                 "Placeholder() {dtype=float32, shape=(4,4), _output_shapes=[(2,2)]}",
                 {},
                 16},
        // The attribute `shape` means something else on other ops.
        SizeCase{"ShapeOfAnotherOp",
                 "RandomStandardNormal(x) {dtype=float32, shape=(4,4)}",
                 {},
                 kUnknownSize,
                 v1::SIZE_UNKNOWN_NO_SHAPE}),
    testing::CaseName());

TEST(TensorInfoTest, EachOutputHasItsOwn) {
  const TestGraph graph(R"(
      x = Const() {dtype=float32}
      n = FusedBatchNormV3(x, x, x, x, x) {T=float16, U=float32, _output_shapes=[(8,2), (2), (*)]}
  )");
  const auto infos = TensorInfos::Create(*graph, Feeding("n:1", {100}));
  ASSERT_THAT(infos, IsOk());
  const auto outputs = infos->Outputs(graph.Node("n"), {0, 1, 2, 3});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ((*outputs)[0].size_bytes, 32);   // 8 * 2 halves, from the shape.
  EXPECT_EQ((*outputs)[1].size_bytes, 400);  // 100 floats, as fed.
  EXPECT_EQ((*outputs)[2].why_unknown, v1::SIZE_UNKNOWN_RANK);
  EXPECT_EQ((*outputs)[3].why_unknown, v1::SIZE_UNKNOWN_NO_SHAPE);
  // Ports may be asked for one by one.
  const auto some = infos->Outputs(graph.Node("n"), {1, 3});
  ASSERT_THAT(some, IsOk());
  ASSERT_EQ(some->size(), 2u);
  EXPECT_EQ((*some)[0].size_bytes, 400);
  EXPECT_EQ((*some)[1].why_unknown, v1::SIZE_UNKNOWN_NO_SHAPE);
  EXPECT_TRUE(infos->IsFed(graph.Node("n")));
  EXPECT_FALSE(infos->IsFed(graph.Node("x")));
}

TEST(TensorInfoTest, AnOverflowNamesNodeOutputAndShape) {
  const TestGraph graph(R"(
      x = Const() {dtype=float32}
      small = Relu(x) {T=float32, _output_shapes=[(1152921504606846976)]}
      big/one = Relu(x) {T=float32, _output_shapes=[(2305843009213693952)]}
      product = Relu(x) {T=bool, _output_shapes=[(4294967296,4294967296)]}
      by_batch = Relu(x) {T=float64, _output_shapes=[(?,2147483647,2147483647)]}
  )");
  const auto infos = TensorInfos::Create(*graph, Batch(2));
  ASSERT_THAT(infos, IsOk());
  EXPECT_THAT(infos->Outputs(graph.Node("small"), {0}), IsOk());
  const auto big = infos->Outputs(graph.Node("big/one"), {0});
  EXPECT_THAT(big, IsInvalid(v1::ERROR_REASON_BAD_ATTRIBUTE, "output 0 of node 'big/one'"));
  EXPECT_EQ(testing::ErrorDetailOf(big, "node"), "big/one");
  EXPECT_EQ(testing::ErrorDetailOf(big, "value"), "2305843009213693952");
  EXPECT_THAT(infos->Outputs(graph.Node("product"), {0}),
              IsInvalid(v1::ERROR_REASON_BAD_ATTRIBUTE, "[4294967296,4294967296]"));
  EXPECT_THAT(infos->Outputs(graph.Node("by_batch"), {0}),
              IsInvalid(v1::ERROR_REASON_BAD_ATTRIBUTE, "[2,2147483647,2147483647]"));
}

TEST(TensorInfoTest, CheckedBytes) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(CheckedBytes({}, 4), 4);
  EXPECT_EQ(CheckedBytes({3, 5}, 8), 120);
  EXPECT_EQ(CheckedBytes({kMax}, 1), kMax);
  EXPECT_EQ(CheckedBytes({kMax}, 2), absl::nullopt);
  EXPECT_EQ(CheckedBytes({kMax, kMax, 0}, 8), 0);
  EXPECT_EQ(CheckedBytes({int64_t{1} << 32, int64_t{1} << 31}, 1), absl::nullopt);
}

struct BadCase {
  std::string name;
  v1::RewriteOptions options;
  std::string message;
  std::string option;
};

class BadFeedTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadFeedTest, IsRefused) {
  const TestGraph graph("x = Placeholder() {dtype=float32}");
  const auto infos = TensorInfos::Create(*graph, GetParam().options);
  EXPECT_THAT(infos, IsInvalid(v1::ERROR_REASON_BAD_OPTION, GetParam().message));
  EXPECT_EQ(testing::ErrorDetailOf(infos, "option"), GetParam().option);
}

v1::RewriteOptions FeedingTwice(const std::string& a, const std::string& b) {
  v1::RewriteOptions options = Feeding(a, {1});
  options.add_feeds()->set_name(b);
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    TensorInfo, BadFeedTest,
    ::testing::Values(
        BadCase{"UnknownNode", Feeding("y", {1}), "'y' names no node", "feeds"},
        BadCase{"EmptyName", Feeding("", {1}), "'' names no node", "feeds"},
        BadCase{"NoPort", Feeding("x:", {1}), "'x:' is not of the form", "feeds"},
        BadCase{"BadPort", Feeding("x:a", {1}), "'x:a' is not of the form", "feeds"},
        BadCase{"NegativePort", Feeding("x:-1", {1}), "'x:-1' is not of the form", "feeds"},
        // A Placeholder has one output.
        BadCase{"NoSuchPort", Feeding("x:1", {1}), "'x:1'", "feeds"},
        BadCase{"Control", Feeding("^x", {1}), "'^x' names no node", "feeds"},
        BadCase{"NegativeDim", Feeding("x", {2, -1}), "dimension -1", "feeds"},
        BadCase{"HugeDim", Feeding("x", {int64_t{1} << 31}), "dimension 2147483648", "feeds"},
        BadCase{"Twice", FeedingTwice("x", "x"), "'x' is given twice", "feeds"},
        BadCase{"TwiceInTwoSpellings", FeedingTwice("x", "x:0"), "'x:0' is given twice", "feeds"},
        BadCase{"BatchZero", Batch(0), "batch_size is 0", "batch_size"},
        BadCase{"BatchNegative", Batch(-3), "batch_size is -3", "batch_size"},
        BadCase{"BatchHuge", Batch(int64_t{1} << 31), "batch_size is 2147483648", "batch_size"}),
    testing::CaseName());

TEST(TensorInfoTest, TheLargestFeedAndBatchAreAccepted) {
  const TestGraph graph("x = Placeholder() {dtype=float32}");
  EXPECT_THAT(TensorInfos::Create(*graph, Feeding("x", {2147483647})), IsOk());
  EXPECT_THAT(TensorInfos::Create(*graph, Batch(2147483647)), IsOk());
  EXPECT_THAT(TensorInfos::Create(*graph, Batch(1)), IsOk());
}

}  // namespace
}  // namespace spillway::core
