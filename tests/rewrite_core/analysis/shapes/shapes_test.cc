#include "rewrite_core/analysis/shapes/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testing/const_text.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::IsInvalid;
using testing::IsOk;
using testing::TestGraph;
using testing::ValueOrDie;

v1::Step Feeding(const std::string& name, const std::vector<int64_t>& dims) {
  v1::Step options;
  v1::Feed* feed = options.add_feeds();
  feed->set_name(name);
  for (int64_t dim : dims) feed->add_dims(dim);
  return options;
}

v1::Step Batch(int64_t size) {
  v1::Step options;
  options.set_batch_size(size);
  return options;
}

absl::StatusOr<Shapes> Infer(const TestGraph& graph, const v1::Step& options = {}) {
  const StopToken stop;
  const auto topology = testing::ValueOrDie(Topology::Build(*graph, stop), "topology");
  return Shapes::Infer(*graph, topology, options, stop);
}

// In bytes, or why it is unknown.
struct Size {
  Size(int64_t size) : bytes(size) {}
  Size(v1::SizeUnknown reason) : why(reason) {}

  int64_t bytes = kUnknownSize;
  v1::SizeUnknown why = v1::SIZE_UNKNOWN_UNSPECIFIED;
};

struct SizeCase {
  std::string name;
  std::string node;  // Its definition; the tensor is its output 0.
  Size size;
  v1::Step options = {};
};

class SizeTest : public ::testing::TestWithParam<SizeCase> {};

TEST_P(SizeTest, IsAsExpected) {
  const TestGraph graph("x = Const() {dtype=float32}\nn = " + GetParam().node);
  const auto shapes = Infer(graph, GetParam().options);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(shapes->size_bytes(graph.Output("n")), GetParam().size.bytes);
  EXPECT_EQ(v1::SizeUnknown_Name(shapes->why_unknown(graph.Output("n"))),
            v1::SizeUnknown_Name(GetParam().size.why));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SizeTest,
    ::testing::Values(
        // 2 * 3 * 5 elements of 4, 2, 8 and 1 bytes.
        SizeCase{"Float", "Relu(x) {T=float32, _output_shapes=[(2,3,5)]}", 120},
        SizeCase{"Half", "Relu(x) {T=float16, _output_shapes=[(2,3,5)]}", 60},
        SizeCase{"Int64", "Relu(x) {T=int64, _output_shapes=[(2,3,5)]}", 240},
        SizeCase{"Bool", "LogicalNot(x) {_output_shapes=[(2,3,5)]}", 30},
        SizeCase{"Scalar", "Relu(x) {T=float32, _output_shapes=[()]}", 4},
        SizeCase{"Empty", "Relu(x) {T=float32, _output_shapes=[(2,0,5)]}", 0},
        // 0 elements, however large the other dimensions are.
        SizeCase{"EmptyAndHuge",
                 "Relu(x) {T=float32, "
                 "_output_shapes=[(4611686018427387904,4611686018427387904,0)]}",
                 0},
        // 2^60 floats are 2^62 bytes, which fits; one dimension more does not (see below).
        SizeCase{"Largest", "Relu(x) {T=float32, _output_shapes=[(1152921504606846976)]}",
                 int64_t{1} << 62},
        // Reasons.
        SizeCase{"NoShape", "Relu(x) {T=float32}", v1::SIZE_UNKNOWN_NO_SHAPE},
        SizeCase{"TooFewShapes", "Relu(x) {T=float32, _output_shapes=[]}",
                 v1::SIZE_UNKNOWN_NO_SHAPE},
        SizeCase{"UnknownRank", "Relu(x) {T=float32, _output_shapes=[(*)]}", v1::SIZE_UNKNOWN_RANK},
        SizeCase{"UnknownDim", "Relu(x) {T=float32, _output_shapes=[(3,?)]}", v1::SIZE_UNKNOWN_DIM},
        SizeCase{"UnknownType", "Relu(x) {_output_shapes=[(2)]}", v1::SIZE_UNKNOWN_DTYPE},
        SizeCase{"NoWidth", "AsString(x) {_output_shapes=[(2)]}", v1::SIZE_UNKNOWN_DTYPE},
        SizeCase{"Reference", "VariableV2() {dtype=float32, _output_shapes=[(2)]}",
                 v1::SIZE_UNKNOWN_DTYPE},
        // The batch size stands for an unknown first dimension of a source, and for no other
        // unknown dimension.
        SizeCase{"Batch", "Placeholder() {dtype=float32, _output_shapes=[(?,5)]}", 140, Batch(7)},
        SizeCase{"NoBatch", "Placeholder() {dtype=float32, _output_shapes=[(?,5)]}",
                 v1::SIZE_UNKNOWN_DIM},
        SizeCase{"BatchOfKnown", "Placeholder() {dtype=float32, _output_shapes=[(2,5)]}", 40,
                 Batch(7)},
        SizeCase{"BatchInTheMiddle", "Placeholder() {dtype=float32, _output_shapes=[(2,?)]}",
                 v1::SIZE_UNKNOWN_DIM, Batch(7)},
        SizeCase{"BatchAndAnother", "Placeholder() {dtype=float32, _output_shapes=[(?,?)]}",
                 v1::SIZE_UNKNOWN_DIM, Batch(7)},
        SizeCase{"BatchOfUnknownRank", "Placeholder() {dtype=float32, _output_shapes=[(*)]}",
                 v1::SIZE_UNKNOWN_RANK, Batch(7)},
        // A computed tensor may hold more than the batch there, for example rows of all examples.
        SizeCase{"BatchOfAComputedTensor", "Relu(x) {T=float32, _output_shapes=[(?,5)]}",
                 v1::SIZE_UNKNOWN_DIM, Batch(7)},
        // Feeds override the graph.
        SizeCase{"Feed", "Placeholder() {dtype=float32}", 48, Feeding("n", {6, 2})},
        SizeCase{"FeedByTensor", "Placeholder() {dtype=float32}", 48, Feeding("n:0", {6, 2})},
        SizeCase{"FeedOfAScalar", "Placeholder() {dtype=float32}", 4, Feeding("n", {})},
        SizeCase{"FeedOverAnOpenShape", "Relu(x) {T=float32, _output_shapes=[(?,3,5)]}", 600,
                 Feeding("n", {10, 3, 5})},
        SizeCase{"FeedOverTheBatch", "Placeholder() {dtype=float32, shape=(?,4)}", 48,
                 [] {
                   v1::Step options = Feeding("n", {3, 4});
                   options.set_batch_size(100);
                   return options;
                 }()},
        SizeCase{"FeedOfAnother", "Relu(x) {T=float32, _output_shapes=[(2,3,5)]}", 120,
                 Feeding("x", {10})},
        SizeCase{"FeedOfZero", "Placeholder() {dtype=float32}", 0, Feeding("n", {0, 3})},
        // A Placeholder's own shape; a scalar shape meant "unknown" up to producer 23.
        SizeCase{"Placeholder", "Placeholder() {dtype=float32, shape=(4,4)}", 64},
        SizeCase{"PlaceholderBatch", "Placeholder() {dtype=float32, shape=(?,4)}", 32, Batch(2)},
        SizeCase{"PlaceholderScalar", "Placeholder() {dtype=float32, shape=()}",
                 v1::SIZE_UNKNOWN_NO_SHAPE},
        SizeCase{"PlaceholderWithShapes",
                 "Placeholder() {dtype=float32, shape=(4,4), _output_shapes=[(2,2)]}", 16},
        // The attribute `shape` means something else on other ops.
        SizeCase{"ShapeOfAnotherOp", "RandomStandardNormal(x) {dtype=float32, shape=(4,4)}",
                 v1::SIZE_UNKNOWN_NO_SHAPE}),
    testing::CaseName());

TEST(ShapesTest, EachOutputHasItsOwn) {
  const TestGraph graph(R"(
      x = Const() {dtype=float32}
      n = IdentityN(x, x, x, x) {T=[float16,float32,float32,float32], _output_shapes=[(8,2), (?), (*)]}
  )");
  const auto shapes = Infer(graph, Feeding("n:1", {100}));
  ASSERT_THAT(shapes, IsOk());
  const NodeId n = graph.Node("n");
  EXPECT_EQ(shapes->num_outputs(n), 4);
  EXPECT_EQ(shapes->size_bytes({n, 0}), 32);   // 8 * 2 halves, from the shape.
  EXPECT_EQ(shapes->size_bytes({n, 1}), 400);  // 100 floats, as fed.
  EXPECT_EQ(shapes->why_unknown({n, 2}), v1::SIZE_UNKNOWN_RANK);
  EXPECT_EQ(shapes->why_unknown({n, 3}), v1::SIZE_UNKNOWN_NO_SHAPE);
  // An invalid port is unknown.
  EXPECT_EQ(shapes->why_unknown({n, 4}), v1::SIZE_UNKNOWN_NO_SHAPE);
  EXPECT_EQ(shapes->why_unknown({n, kControl}), v1::SIZE_UNKNOWN_NO_SHAPE);
  EXPECT_TRUE(shapes->IsFed(n));
  EXPECT_FALSE(shapes->IsFed(graph.Node("x")));
}

// A reference has no bytes; its variable does.
TEST(ShapesTest, BytesOfVariables) {
  const TestGraph graph("v = VariableV2() {dtype=float32, shape=(3,5)}");
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(shapes->size_bytes(graph.Output("v")), kUnknownSize);
  EXPECT_EQ(shapes->buffer_bytes(graph.Output("v")), 60);
}

TEST(ShapesTest, AnOverflowNamesNodeOutputAndShape) {
  const auto infer = [](const std::string& node) {
    return Infer(TestGraph("x = Const() {dtype=float32}\n" + node), Batch(2));
  };
  EXPECT_THAT(infer("small = Relu(x) {T=float32, _output_shapes=[(1152921504606846976)]}"), IsOk());
  const auto big = infer("big/one = Relu(x) {T=float32, _output_shapes=[(2305843009213693952)]}");
  EXPECT_THAT(big, IsInvalid(v1::ERROR_REASON_BAD_ATTRIBUTE, "output 0 of node 'big/one'"));
  EXPECT_EQ(testing::ErrorDetailOf(big, "node"), "big/one");
  EXPECT_EQ(testing::ErrorDetailOf(big, "value"), "2305843009213693952");
  EXPECT_THAT(infer("n = Relu(x) {T=bool, _output_shapes=[(4294967296,4294967296)]}"),
              IsInvalid(v1::ERROR_REASON_BAD_ATTRIBUTE, "[4294967296,4294967296]"));
  EXPECT_THAT(infer("n = Placeholder() {dtype=float64, shape=(?,2147483647,2147483647)}"),
              IsInvalid(v1::ERROR_REASON_BAD_ATTRIBUTE, "[2,2147483647,2147483647]"));
}

std::string ViewText(const ShapeView& shape) {
  if (!shape.known_rank) return "?";
  std::string text;
  for (int64_t dim : shape.dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
}

std::string ShapeOf(const Shapes& shapes, Tensor tensor) { return ViewText(shapes.shape(tensor)); }
std::string HandleOf(const Shapes& shapes, Tensor tensor) {
  return ViewText(shapes.handle_shape(tensor));
}

// The batch dimension is followed from the source on, even if it is folded with the sequence.
TEST(ShapesTest, TheBatchIsFollowed) {
  const TestGraph graph(R"(
      x = Placeholder() {dtype=float32, shape=(?,128,768)}
      s = Placeholder() {dtype=int32, shape=(2)}
      flat = Reshape(x, s) {T=float32, _output_shapes=[(?,768)]}
      sum = Relu(x) {T=float32, _output_shapes=[(?,128,768)]}
      custom = MyOp(x) {_output_shapes=[(?,7)]}
  )");
  const auto shapes = Infer(graph, Batch(64));
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("sum")), "[64,128,768]");
  // 64 * 128 rows, not 64: the value of s is unknown, but the number of elements is not.
  EXPECT_NE(ShapeOf(*shapes, graph.Output("flat")), "[64,768]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("custom")), "[-1,7]");
}

// A loop variable that keeps its shape, and one that grows along an unknown axis.
TEST(ShapesTest, LoopsComeToAFixedPoint) {
  const TestGraph graph(R"(
      x = Placeholder() {dtype=float32, shape=(2,5)}
      d = Placeholder() {dtype=int32, shape=()}
      p = Placeholder() {dtype=bool, shape=()}
      a = Enter(x) {T=float32, frame_name="f"}
      b = Enter(x) {T=float32, frame_name="f"}
      c = Enter(d) {T=int32, frame_name="f"}
      q = Enter(p) {T=bool, frame_name="f"}
      ma = Merge(a, na) {T=float32, N=2}
      mb = Merge(b, nb) {T=float32, N=2}
      cond = LoopCond(q)
      sa = Switch(ma, cond) {T=float32}
      sb = Switch(mb, cond) {T=float32}
      same = Relu(sa:1) {T=float32}
      more = Concat(c, sb:1, sb:1) {T=float32, N=2}
      na = NextIteration(same) {T=float32}
      nb = NextIteration(more) {T=float32}
      ea = Exit(sa) {T=float32}
      eb = Exit(sb) {T=float32}
  )");
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("ea")), "[2,5]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("eb")), "[-1,-1]");
}

// Captured variables: the handle gives no shape, but the nodes behind it do.
TEST(ShapesTest, ReadsTellOfACapturedVariable) {
  const TestGraph graph(R"(
      h = Placeholder() {dtype=resource, shape=()}
      named = Identity(h) {T=resource}
      stated = ReadVariableOp(named) {dtype=float32, _output_shapes=[(5,3)]}
      open = ReadVariableOp(h) {dtype=float32}
      iterator = Placeholder() {dtype=resource, shape=()}
      next = IteratorGetNext(iterator) {output_types=[float32], output_shapes=[(2,5)]}
  )");
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("open")), "[5,3]");
  EXPECT_EQ(shapes->captured_variable(graph.Node("h")), kDtFloat32);
  EXPECT_EQ(shapes->captured_variable(graph.Node("iterator")), kDtInvalid);
  EXPECT_EQ(shapes->captured_variable(graph.Node("named")), kDtInvalid);
}

// The indices are of the batch; the node states the rows' length as far as TensorFlow knew it.
TEST(ShapesTest, GathersOfACapturedVariable) {
  const TestGraph graph(R"(
      table = Placeholder() {dtype=resource, shape=()}
      ids = Placeholder() {dtype=int32, shape=(?)}
      rows = ResourceGather(table, ids) {dtype=float32, Tindices=int32, _output_shapes=[(?,64)]}
      pairs = Placeholder() {dtype=int32, shape=(?,7)}
      other = ResourceGather(table, pairs) {dtype=float32, Tindices=int32}
      none = Placeholder() {dtype=resource, shape=()}
      unsaid = ResourceGather(none, pairs) {dtype=float32, Tindices=int32}
      nd = Placeholder() {dtype=resource, shape=()}
      at = Placeholder() {dtype=int32, shape=(?,2)}
      points = ResourceGatherNd(nd, at) {dtype=float32, Tindices=int32, _output_shapes=[(?,9)]}
  )");
  const auto shapes = Infer(graph, Batch(8192));
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("rows")), "[8192,64]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("other")), "[8192,7,64]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("unsaid")), "?");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("points")), "[8192,9]");
  EXPECT_EQ(HandleOf(*shapes, graph.Output("table")), "[-1,64]");
  EXPECT_EQ(HandleOf(*shapes, graph.Output("nd")), "[-1,-1,9]");
  // If the user knows the table's size, a feed can give it.
  v1::Step step = Feeding("table", {1000, 64});
  step.set_batch_size(8192);
  const auto fed = Infer(graph, step);
  ASSERT_THAT(fed, IsOk());
  EXPECT_EQ(HandleOf(*fed, graph.Output("table")), "[1000,64]");
}

// dw = x^T dy has the shape of w, and so have m and v.
TEST(ShapesTest, UpdatesTellOfTheirVariables) {
  const TestGraph graph(R"(
      x = Placeholder() {dtype=float32, shape=(8,5)}
      dy = Placeholder() {dtype=float32, shape=(8,3)}
      dw = MatMul(x, dy) {T=float32, transpose_a=true}
      w = Placeholder() {dtype=resource, shape=()}
      m = Placeholder() {dtype=resource, shape=()}
      v = VarHandleOp() {dtype=float32, shape=(*)}
      s = Const() {dtype=float32}
      up = ResourceApplyAdam(w, m, v, s, s, s, s, s, s, dw) {T=float32}
      rw = ReadVariableOp(w) {dtype=float32}
      rm = ReadVariableOp(m) {dtype=float32}
      rv = ReadVariableOp(v) {dtype=float32}
      sparse = Placeholder() {dtype=resource, shape=()}
      ids = Placeholder() {dtype=int32, shape=(7)}
      dsparse = Placeholder() {dtype=float32, shape=(7,4)}
      up2 = ResourceScatterAdd(sparse, ids, dsparse) {dtype=float32, Tindices=int32}
      twice = Placeholder() {dtype=resource, shape=()}
      a1 = AssignVariableOp(twice, dw) {dtype=float32}
      a2 = AssignVariableOp(twice, dy) {dtype=float32}
      rt = ReadVariableOp(twice) {dtype=float32}
  )");
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("rw")), "[5,3]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("rm")), "[5,3]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("rv")), "[5,3]");
  EXPECT_EQ(HandleOf(*shapes, graph.Output("sparse")), "[-1,4]");
  // Two different shapes give none.
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("rt")), "?");
  EXPECT_EQ(shapes->captured_variable(graph.Node("twice")), kDtFloat32);
}

TEST(ShapesTest, AHandleThatSaysItsVariable) {
  const TestGraph graph(R"(
      h = Placeholder() {dtype=resource, shape=(), _handle_dtypes=[float16], _handle_shapes=[(4,6)]}
      r = ReadVariableOp(h) {dtype=float16}
  )");
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("r")), "[4,6]");
  EXPECT_EQ(shapes->captured_variable(graph.Node("h")), kDtHalf);
}

// A learning rate that a function captures. A handle that a session feeds has no dimensions either,
// for any variable.
TEST(ShapesTest, AFedHandleOfAScalar) {
  const TestGraph graph(R"(
      h = Placeholder() {dtype=resource, shape=()}
      rate = ReadVariableOp(h) {dtype=float32}
      w = Placeholder() {dtype=resource, shape=()}
      stated = ReadVariableOp(w) {dtype=float32, _output_shapes=[(5,3)]}
      open = ReadVariableOp(w) {dtype=float32}
      x = Placeholder() {dtype=float32, shape=(2,5)}
      y = MatMul(x, open) {T=float32}
      said = Placeholder() {dtype=resource, shape=(), _handle_dtypes=[float16], _handle_shapes=[(4)]}
      read = ReadVariableOp(said) {dtype=float16}
  )");
  v1::Step step = Feeding("h", {});
  step.add_feeds()->set_name("w");
  step.add_feeds()->set_name("said");
  const auto shapes = Infer(graph, step);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("rate")), "[]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("open")), "[5,3]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("y")), "[2,3]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("read")), "[4]");
}

TEST(ShapesTest, TheBestOfThoseThatThereAre) {
  const TestGraph graph(R"(
      x = Placeholder() {dtype=float32, shape=(8,240)}
      k = Placeholder() {dtype=int32, shape=()}
      best = TopKV2(x, k) {T=float32}
      values = Relu(best) {T=float32}
      indices = Neg(best:1) {T=int32}
  )");
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("values")), "[8,-1]");
  EXPECT_EQ(ShapeOf(shapes->bounds(), graph.Output("values")), "[8,240]");
  EXPECT_EQ(ShapeOf(shapes->bounds(), graph.Output("indices")), "[8,240]");
}

// As the gradient of UpSampling3D of 32 slices is made: their shapes stacked, of which a row is
// each part's size in the last dimension.
TEST(ShapesTest, PartsAsLongAsWhatWasConcatenated) {
  constexpr int kParts = 64;
  std::vector<std::string> shapes;
  for (int i = 0; i < kParts; ++i) shapes.push_back(absl::StrCat("s:", i));
  const std::string all = absl::StrJoin(shapes, ", ");
  const TestGraph graph(absl::StrCat(
      "x = Placeholder() {dtype=float32, shape=(2,3,4,5,8)}\n"
      "y = Placeholder() {dtype=float32, shape=(2,3,4,5,512)}\n",
      "s = ShapeN(", absl::StrJoin(std::vector<std::string>(kParts, "x"), ", "), ") {N=", kParts,
      ", T=float32, out_type=int32}\n", "p = Pack(", all, ") {N=", kParts, ", T=int32, axis=1}\n",
      testing::ConstText("begin", {2}, {4, 0}), testing::ConstText("size", {2}, {1, -1}),
      testing::ConstText("axis", {}, {4}),
      "row = Slice(p, begin, size) {T=int32, Index=int32}\n"
      "sizes = Squeeze(row) {T=int32}\n"
      "parts = SplitV(y, sizes, axis) {T=float32, Tlen=int32, num_split=",
      kParts, "}\n", "last = Relu(parts:", kParts - 1, ") {T=float32}\n"));
  const auto inferred = Infer(graph);
  ASSERT_THAT(inferred, IsOk());
  EXPECT_EQ(ShapeOf(*inferred, graph.Output("last")), "[2,3,4,5,8]");
}

TEST(ShapesTest, AShapeOfWhichADimensionIsReplaced) {
  const TestGraph graph(absl::StrCat(
      testing::ConstText("dims", {3}, {4, 10, 4}), testing::ConstText("at", {1, 1}, {1}),
      testing::ConstText("by", {1}, {7}), testing::ConstText("beyond", {1, 1}, {3}), R"(
      x = Placeholder() {dtype=float32, shape=(4,1,4)}
      to = TensorScatterUpdate(dims, at, by) {T=int32, Tindices=int32}
      y = BroadcastTo(x, to) {T=float32, Tidx=int32}
      bad = TensorScatterUpdate(dims, beyond, by) {T=int32, Tindices=int32}
      z = BroadcastTo(x, bad) {T=float32, Tidx=int32}
      a = Relu(y) {T=float32}
      b = Relu(z) {T=float32}
  )"));
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("a")), "[4,7,4]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("b")), "[4,-1,4]");  // Only a 1 is broadcast.
}

// The lengths are those that TensorFlow 2.15 gives.
TEST(ShapesTest, RangesOfFloats) {
  const TestGraph graph(absl::StrCat(
      testing::ScalarText("zero", 0), testing::ScalarText("four", 4),
      testing::ScalarText("third", 0.3f, /*as_bytes=*/true), testing::ScalarText("one", 1),
      testing::ConstText("limit", {}, {512}), testing::ConstText("step", {}, {8}), R"(
      f = Placeholder() {dtype=float32, shape=()}
      up_to = Cast(limit) {SrcT=int32, DstT=float32}
      by = Cast(step) {SrcT=int32, DstT=float32}
      casts = Range(four, up_to, by) {Tidx=float32}
      thirds = Range(zero, one, third) {Tidx=float32}
      down = Range(four, zero, minus) {Tidx=float32}
      never = Range(zero, one, zero) {Tidx=float32}
      open = Range(zero, f, one) {Tidx=float32}
      a = Relu(casts) {T=float32}
      b = Relu(thirds) {T=float32}
      c = Relu(down) {T=float32}
      d = Relu(never) {T=float32}
      e = Relu(open) {T=float32}
  )",
      testing::ScalarText("minus", -1.5f)));
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("a")), "[64]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("b")), "[4]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("c")), "[3]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("d")), "[-1]");
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("e")), "[-1]");
  // A constant that is fed may be any.
  const auto fed = Infer(graph, Feeding("one", {}));
  ASSERT_THAT(fed, IsOk());
  EXPECT_EQ(ShapeOf(*fed, graph.Output("b")), "[-1]");
}

TEST(ShapesTest, InputsThatAnOpCannotTake) {
  const auto bad = Infer(TestGraph(R"(
      x = Placeholder() {dtype=float32, shape=(2,5)}
      y = Placeholder() {dtype=float32, shape=(2,5,1)}
      z/product = MatMul(x, y) {T=float32}
  )"));
  EXPECT_THAT(bad, IsInvalid(v1::ERROR_REASON_BAD_INPUT, "node 'z/product'"));
  EXPECT_THAT(bad, IsInvalid(v1::ERROR_REASON_BAD_INPUT, "input 1 has rank 3, but it takes 2"));
  EXPECT_EQ(testing::ErrorDetailOf(bad, "node"), "z/product");
  EXPECT_EQ(testing::ErrorDetailOf(bad, "field"), "input");
  // Behind a Switch it may be the branch that is not taken.
  EXPECT_THAT(Infer(TestGraph(R"(
      x = Placeholder() {dtype=float32, shape=(2,5)}
      y = Placeholder() {dtype=float32, shape=(2,5,1)}
      p = Placeholder() {dtype=bool}
      s = Switch(y, p) {T=float32}
      z = MatMul(x, s) {T=float32}
  )")),
              IsOk());
  // Only by a feed.
  const std::string open = "x = Placeholder() {dtype=float32}\nz = MatMul(x, x) {T=float32}";
  EXPECT_THAT(Infer(TestGraph(open), Feeding("x", {3, 3})), IsOk());
  EXPECT_THAT(Infer(TestGraph(open), Feeding("x", {3, 4})),
              IsInvalid(v1::ERROR_REASON_BAD_INPUT, "4 and 3"));
}

// Vectors that cannot be stacked, nor joined at their inner dimension, have no common value.
TEST(ShapesTest, ValuesThatDoNotFitTogether) {
  const std::string vectors = R"(
      x = Placeholder() {dtype=float32, shape=(1,2,3)}
      y = Placeholder() {dtype=float32, shape=(4,5)}
      a = Shape(x) {T=float32, out_type=int32}
      b = Shape(y) {T=float32, out_type=int32}
  )";
  EXPECT_THAT(Infer(TestGraph(vectors + "p = Pack(a, b, b) {N=3, T=int32}")),
              IsInvalid(v1::ERROR_REASON_BAD_INPUT, "3 and 2"));
  EXPECT_THAT(Infer(TestGraph(vectors + R"(
      none = Placeholder() {dtype=float32, shape=(0)}
      zero = Size(none) {T=float32, out_type=int32}
      a1 = ExpandDims(a, zero) {T=int32}
      b1 = ExpandDims(b, zero) {T=int32}
      c = ConcatV2(a1, b1, b1, zero) {N=3, T=int32}
  )")),
              IsInvalid(v1::ERROR_REASON_BAD_INPUT, "3 and 2"));
}

TEST(ShapesTest, AFeedThatContradictsTheGraph) {
  // The graph's shape, from the Placeholder's own attribute or a stated one.
  for (const char* node : {"n = Placeholder() {dtype=float32, shape=(?,784)}",
                           "n = Placeholder() {dtype=float32, _output_shapes=[(?,784)]}"}) {
    const auto bad = Infer(TestGraph(node), Feeding("n", {100, 28, 28}));
    EXPECT_THAT(bad, IsInvalid(v1::ERROR_REASON_BAD_OPTION, "[100,28,28]"));
    EXPECT_THAT(bad, IsInvalid(v1::ERROR_REASON_BAD_OPTION, "[?,784]"));
    EXPECT_EQ(testing::ErrorDetailOf(bad, "option"), "feeds");
    EXPECT_EQ(testing::ErrorDetailOf(bad, "node"), "n");
    EXPECT_THAT(Infer(TestGraph(node), Feeding("n", {100, 784})), IsOk());
  }
}

// An attribute claims 2^31 - 1 outputs in ten bytes, and the last one is read.
TEST(ShapesTest, OutputsAreNotTakenAtTheirWord) {
  const TestGraph graph(R"(
      a = Placeholder() {dtype=int32, shape=()}
      x = Placeholder() {dtype=float32, shape=(4,6)}
      s = Split(a, x) {T=float32, num_split=2147483647}
      last = Relu(s:2147483646) {T=float32}
  )");
  const auto shapes = Infer(graph);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_LT(shapes->num_outputs(graph.Node("s")), 1000);
  EXPECT_EQ(ShapeOf(*shapes, graph.Output("last")), "?");
}

struct BadShapesCase {
  std::string name;
  v1::Step options;
  std::string message;
  v1::ErrorReason reason = v1::ERROR_REASON_BAD_OPTION;
  std::string option = "feeds";
};

class BadFeedTest : public ::testing::TestWithParam<BadShapesCase> {};

TEST_P(BadFeedTest, IsRefused) {
  const TestGraph graph("x = Placeholder() {dtype=float32}");
  const auto shapes = Infer(graph, GetParam().options);
  EXPECT_THAT(shapes, IsInvalid(GetParam().reason, GetParam().message));
  EXPECT_EQ(testing::ErrorDetailOf(shapes, "option"), GetParam().option);
}

v1::Step FeedingValues(const std::string& name, const std::vector<int64_t>& dims,
                       const std::vector<int64_t>& values) {
  v1::Step options = Feeding(name, dims);
  for (int64_t value : values) options.mutable_feeds(0)->add_values(value);
  return options;
}

v1::Step FeedingTwice(const std::string& a, const std::string& b) {
  v1::Step options = Feeding(a, {1});
  options.add_feeds()->set_name(b);
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BadFeedTest,
    ::testing::Values(
        BadShapesCase{"UnknownNode", Feeding("y", {1}), "'y' names no node",
                      v1::ERROR_REASON_NAME_MATCHES_NOTHING},
        BadShapesCase{"EmptyName", Feeding("", {1}), "'' names no node",
                      v1::ERROR_REASON_NAME_MATCHES_NOTHING},
        BadShapesCase{"NoPort", Feeding("x:", {1}), "'x:' is not of the form"},
        BadShapesCase{"BadPort", Feeding("x:a", {1}), "'x:a' is not of the form"},
        BadShapesCase{"NegativePort", Feeding("x:-1", {1}), "'x:-1' is not of the form"},
        // A Placeholder has one output.
        BadShapesCase{"NoSuchPort", Feeding("x:1", {1}), "'x:1'",
                      v1::ERROR_REASON_NAME_MATCHES_NOTHING},
        BadShapesCase{"Control", Feeding("^x", {1}), "'^x' names no node",
                      v1::ERROR_REASON_NAME_MATCHES_NOTHING},
        BadShapesCase{"NegativeDim", Feeding("x", {2, -1}), "dimension -1"},
        BadShapesCase{"HugeDim", Feeding("x", {int64_t{1} << 31}), "dimension 2147483648"},
        BadShapesCase{"Twice", FeedingTwice("x", "x"), "'x' is given twice"},
        BadShapesCase{"TwiceInTwoSpellings", FeedingTwice("x", "x:0"), "'x:0' is given twice"},
        BadShapesCase{"TooFewValues", FeedingValues("x", {2, 2}, {1, 2, 3}), "has 3 values"},
        BadShapesCase{"ValuesOfNothing", FeedingValues("x", {0}, {1}), "has 1 value, which"},
        BadShapesCase{"TooManyValues", FeedingValues("x", {257}, std::vector<int64_t>(257)),
                      "256 is the most"},
        BadShapesCase{"ValuesOfFloats", FeedingValues("x", {}, {1}), "of type float32"},
        BadShapesCase{"BatchZero", Batch(0), "batch_size is 0", v1::ERROR_REASON_BAD_OPTION,
                      "batch_size"},
        BadShapesCase{"BatchNegative", Batch(-3), "batch_size is -3", v1::ERROR_REASON_BAD_OPTION,
                      "batch_size"},
        BadShapesCase{"BatchHuge", Batch(int64_t{1} << 31), "batch_size is 2147483648",
                      v1::ERROR_REASON_BAD_OPTION, "batch_size"}),
    testing::CaseName());

// ---- Values of feeds ----

TEST(FedValueTest, ShapesFollow) {
  const TestGraph graph(
      "size = Placeholder() {dtype=int32, shape=(2)}\n"
      "x = Placeholder() {dtype=float32, shape=(?)}\n"
      "y = Reshape(x, size) {T=float32, Tshape=int32}");
  const Shapes shapes = ValueOrDie(Infer(graph, FeedingValues("size", {2}, {3, 4})), "shapes");
  EXPECT_THAT(shapes.shape({graph["y"], 0}).dims, ElementsAre(3, 4));
  EXPECT_EQ(shapes.size_bytes({graph["y"], 0}), 3 * 4 * 4);
  EXPECT_THAT(ValueOrDie(Infer(graph, Feeding("size", {2})), "shapes").shape({graph["y"], 0}).dims,
              ElementsAre(kUnknownDim, kUnknownDim));
}

// Fed values count, not the graph's description of the node.
TEST(FedValueTest, AConstantMayBeFed) {
  const std::string text =
      "size = Const() {dtype=int32, value=0x420c08031204120208023a020205}\n"
      "x = Placeholder() {dtype=float32, shape=(?)}\n"
      "y = Reshape(x, size) {T=float32, Tshape=int32}";
  const TestGraph graph(text);
  const auto dims = [&graph](const v1::Step& step) {
    const Shapes shapes = ValueOrDie(Infer(graph, step), "shapes");
    const absl::Span<const int64_t> found = shapes.shape({graph["y"], 0}).dims;
    return std::vector<int64_t>(found.begin(), found.end());
  };
  EXPECT_THAT(dims(FeedingValues("size", {2}, {7, 8})), ElementsAre(7, 8));
  EXPECT_THAT(dims(Feeding("size", {2})), ElementsAre(kUnknownDim, kUnknownDim));
}

TEST(FedValueTest, APredicateIsKnownBehindItToo) {
  const TestGraph graph(
      "training = Placeholder() {dtype=bool, shape=()}\n"
      "other = Placeholder() {dtype=bool, shape=()}\n"
      "same = Identity(training) {T=bool}\n"
      "not = LogicalNot(same)\n"
      "and = LogicalAnd(not, same)\n"
      "or = LogicalOr(not, same)\n"
      "unknown = LogicalAnd(same, other)");
  for (const int64_t fed : {0, 1}) {
    const Shapes shapes = ValueOrDie(Infer(graph, FeedingValues("training", {}, {fed})), "shapes");
    const auto value = [&](const char* node) { return shapes.value({graph[node], 0}); };
    EXPECT_THAT(*value("training"), ElementsAre(fed));
    EXPECT_THAT(*value("same"), ElementsAre(fed));
    EXPECT_THAT(*value("not"), ElementsAre(1 - fed));
    EXPECT_THAT(*value("and"), ElementsAre(0));
    EXPECT_THAT(*value("or"), ElementsAre(1));
    EXPECT_FALSE(value("unknown").has_value());
    EXPECT_FALSE(value("other").has_value());
  }
}

struct RangeCase {
  std::string type;
  std::vector<int64_t> held, not_held;
};

TEST(FedValueTest, MustBeOneThatTheTypeHolds) {
  for (const auto& [type, held, not_held] :
       std::vector<RangeCase>{{"bool", {0, 1}, {-1, 2}},
                              {"int8", {-128, 127}, {-129, 128}},
                              {"uint8", {0, 255}, {-1, 256}},
                              {"int16", {-32768, 32767}, {-32769, 32768}},
                              {"uint16", {0, 65535}, {-1, 65536}},
                              {"int32", {-2147483648, 2147483647}, {-2147483649, 2147483648}},
                              {"uint32", {0, 4294967295}, {-1, 4294967296}},
                              {"int64", {INT64_MIN + 1, INT64_MAX}, {}},
                              {"uint64", {0, INT64_MAX}, {-1}}}) {
    const TestGraph graph("x = Placeholder() {dtype=" + type + "}");
    for (int64_t value : held) {
      EXPECT_THAT(Infer(graph, FeedingValues("x", {}, {value})), IsOk()) << type << " " << value;
    }
    for (int64_t value : not_held) {
      EXPECT_THAT(Infer(graph, FeedingValues("x", {}, {value})),
                  IsInvalid(v1::ERROR_REASON_BAD_OPTION, absl::StrCat("has the value ", value)))
          << type;
    }
  }
}

TEST(ShapesTest, TheLargestFeedAndBatchAreAccepted) {
  const TestGraph graph("x = Placeholder() {dtype=float32}");
  EXPECT_THAT(Infer(graph, Feeding("x", {2147483647})), IsOk());
  EXPECT_THAT(Infer(graph, Batch(2147483647)), IsOk());
  EXPECT_THAT(Infer(graph, Batch(1)), IsOk());
}

// The graph's own batch counts: users giving another should learn it.
TEST(BatchSizeTest, IsIgnoredWhereTheGraphStatesAnother) {
  const TestGraph fixed("x = Placeholder() {dtype=float32, _output_shapes=[(200,4)]}");
  const TestGraph open("x = Placeholder() {dtype=float32, _output_shapes=[(?,4)]}");
  const TestGraph both(
      "x = Placeholder() {dtype=float32, _output_shapes=[(200,4)]}\n"
      "y = Placeholder() {dtype=float32, _output_shapes=[(?,4)]}");
  EXPECT_TRUE(Infer(fixed, Batch(4))->ignores_batch_size());
  EXPECT_FALSE(Infer(fixed, Batch(200))->ignores_batch_size());
  EXPECT_FALSE(Infer(fixed, v1::Step())->ignores_batch_size());
  EXPECT_FALSE(Infer(open, Batch(4))->ignores_batch_size());
  EXPECT_FALSE(Infer(both, Batch(4))->ignores_batch_size());
  v1::Step fed = Feeding("x:0", {8, 4});
  fed.set_batch_size(8);
  EXPECT_FALSE(Infer(open, fed)->ignores_batch_size());
  fed.set_batch_size(9);
  EXPECT_TRUE(Infer(open, fed)->ignores_batch_size());
}

// Images are fed, labels come from the iterator.
TEST(BatchSizeTest, IsThatOfTheOutputsThatAreNotFed) {
  const TestGraph graph(
      "it = IteratorGetNext(h) {output_types=[float32, int64], output_shapes=[(?,4),(?)]}\n"
      "h = IteratorV2() {}");
  v1::Step options = Feeding("it:0", {8, 4});
  options.set_batch_size(8);
  const auto shapes = Infer(graph, options);
  ASSERT_THAT(shapes, IsOk());
  EXPECT_EQ(shapes->size_bytes(graph.Output("it:0")), 8 * 4 * 4);
  EXPECT_EQ(shapes->size_bytes(graph.Output("it:1")), 8 * 8);
}

}  // namespace
}  // namespace spillway::core
