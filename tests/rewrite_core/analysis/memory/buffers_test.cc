#include "rewrite_core/analysis/memory/buffers.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestGraph;
using testing::ValueOrDie;

struct Found {
  explicit Found(const std::string& text, const v1::Step& options = {})
      : graph(text),
        topology(ValueOrDie(Topology::Build(*graph, {}), "topology")),
        shapes(ValueOrDie(Shapes::Infer(*graph, topology, options, {}), "shapes")),
        placement(ValueOrDie(Placement::Find(*graph, topology, shapes, {}), "placement")),
        buffers(ValueOrDie(Buffers::Find(*graph, topology, shapes, placement, {}, {}, nullptr, {}),
                           "buffers")) {}

  bool Share(absl::string_view a, absl::string_view b) const {
    const int32_t buffer = buffers.buffer_of(graph.Output(a));
    return buffer != kNoBuffer && buffer == buffers.buffer_of(graph.Output(b));
  }
  const Buffers::Buffer& Of(absl::string_view tensor) const {
    return buffers.buffers()[buffers.buffer_of(graph.Output(tensor))];
  }

  TestGraph graph;
  Topology topology;
  Shapes shapes;
  Placement placement;
  Buffers buffers;
};

constexpr char kX[] = "x = Abs() {T=float32, _output_shapes=[(4,16)]}\n";

TEST(BuffersTest, ForwardingOpsShareTheirInputsBuffer) {
  const Found f(std::string(kX) +
                "flag = Abs() {T=bool, _output_shapes=[()]}\n"
                "dims = Const() {dtype=int32, _output_shapes=[(1)]}\n"
                "id = Identity(x) {T=float32, _output_shapes=[(4,16)]}\n"
                "r = Reshape(id, dims) {T=float32, _output_shapes=[(64)]}\n"
                "e = ExpandDims(r, dims) {T=float32, _output_shapes=[(1,64)]}\n"
                "q = Squeeze(e) {T=float32, _output_shapes=[(64)]}\n"
                "stop = StopGradient(q) {T=float32, _output_shapes=[(64)]}\n"
                "prevent = PreventGradient(stop) {T=float32, _output_shapes=[(64)]}\n"
                "check = CheckNumerics(prevent) {T=float32, _output_shapes=[(64)]}\n"
                "sw = Switch(check, flag) {T=float32, _output_shapes=[(64),(64)]}\n"
                "m = Merge(sw, sw:1) {N=2, T=float32, _output_shapes=[(64),()]}\n"
                "relu = Relu(x) {T=float32, _output_shapes=[(4,16)]}\n"
                "n = IdentityN(x, relu) {T=[float32,float32], _output_shapes=[(4,16),(4,16)]}");
  for (const char* t : {"id", "r", "e", "q", "stop", "prevent", "check", "sw", "sw:1", "m", "n"}) {
    EXPECT_TRUE(f.Share("x", t)) << t;
  }
  EXPECT_FALSE(f.Share("x", "relu"));
  EXPECT_TRUE(f.Share("relu", "n:1"));
  EXPECT_FALSE(f.Share("x", "m:1"));
  EXPECT_EQ(f.Of("x").bytes, 256);
  EXPECT_EQ(f.Of("m").first, f.graph.Output("x"));
}

TEST(BuffersTest, OpsForwardOnlyWhereThereIsNothingToDo) {
  const Found f(
      "x = Abs() {T=float32, _output_shapes=[(4,1,16)]}\n"
      "dims = Const() {dtype=int32, _output_shapes=[(1)]}\n"
      "same = Sum(x, dims) {T=float32, _output_shapes=[(4,16)]}\n"
      "less = Sum(x, dims) {T=float32, _output_shapes=[(4,1)]}\n"
      "cast = Cast(x) {SrcT=float32, DstT=float32, _output_shapes=[(4,1,16)]}\n"
      // The same number of bytes, but of another type.
      "recast = Cast(x) {SrcT=float32, DstT=uint32, _output_shapes=[(4,1,16)]}\n"
      "once = Tile(x, dims) {T=float32, _output_shapes=[(4,1,16)]}\n"
      "twice = Tile(x, dims) {T=float32, _output_shapes=[(4,2,16)]}\n"
      "open = Tile(x, dims) {T=float32, _output_shapes=[(4,?,16)]}\n"
      // Rows of 64 bytes are shared, rows of 4 are not.
      "rows = Unpack(x) {T=float32, num=4, axis=0, _output_shapes=[(1,16),(1,16),(1,16),(1,16)]}\n"
      "thin = Abs() {T=float32, _output_shapes=[(4,1)]}\n"
      "thin_rows = Unpack(thin) {T=float32, num=4, axis=0, _output_shapes=[(1),(1),(1),(1)]}\n"
      "one = AddN(x) {N=1, T=float32, _output_shapes=[(4,1,16)]}\n"
      "two = AddN(x, x) {N=2, T=float32, _output_shapes=[(4,1,16)]}\n"
      "columns = Slice(x, dims, dims) {T=float32, _output_shapes=[(4,1,8)]}\n");
  EXPECT_TRUE(f.Share("x", "same"));
  EXPECT_FALSE(f.Share("x", "less"));
  EXPECT_TRUE(f.Share("x", "cast"));
  EXPECT_FALSE(f.Share("x", "recast"));
  EXPECT_TRUE(f.Share("x", "once"));
  EXPECT_FALSE(f.Share("x", "twice"));
  EXPECT_FALSE(f.Share("x", "open"));
  EXPECT_TRUE(f.Share("x", "rows:3"));
  EXPECT_FALSE(f.Share("thin", "thin_rows"));
  EXPECT_FALSE(f.Share("x", "columns"));
  EXPECT_TRUE(f.Share("x", "one"));
  EXPECT_FALSE(f.Share("x", "two"));
}

TEST(BuffersTest, AnIdentityOnTheHostHasABufferOfItsOwn) {
  const Found f(std::string(kX) +
                "out = Identity(x) @/cpu:0 {T=float32, _output_shapes=[(4,16)]}\n"
                "in = Identity(out) @/cpu:0 {T=float32, _output_shapes=[(4,16)]}\n"
                "back = Relu(in) {T=float32, _output_shapes=[(4,16)]}");
  EXPECT_FALSE(f.Share("x", "out"));
  EXPECT_TRUE(f.Share("out", "in"));
  EXPECT_EQ(f.Of("out").place, kHostPlace);
  EXPECT_EQ(f.buffers.alias_input(f.graph.Output("out")), 0);
}

// 5 * 3 floats, on the GPU with the ops that read and update them; an iterator's handle is not a
// variable, and a variable of int32 takes no GPU memory.
TEST(BuffersTest, CapturedVariablesAreResident) {
  const Found f(
      "h = Placeholder() {dtype=resource, shape=()}\n"
      "named = Identity(h) {T=resource}\n"
      "r = ReadVariableOp(named) {dtype=float32, _output_shapes=[(5,3)]}\n"
      "table = Placeholder() {dtype=resource, shape=()}\n"
      "ids = Placeholder() {dtype=int32, shape=(7)}\n"
      "rows = ResourceGather(table, ids) {dtype=float32, Tindices=int32, _output_shapes=[(7,4)]}\n"
      "steps = Placeholder() {dtype=resource, shape=()}\n"
      "count = ReadVariableOp(steps) {dtype=int32, _output_shapes=[()]}\n"
      "it = Placeholder() {dtype=resource, shape=()}\n"
      "next = IteratorGetNext(it) {output_types=[float32], output_shapes=[(2)]}\n");
  EXPECT_EQ(f.Of("h").storage, Storage::kVariable);
  EXPECT_EQ(f.Of("h").bytes, 60);
  EXPECT_EQ(f.Of("h").place, 0);
  EXPECT_TRUE(f.Share("h", "r"));
  EXPECT_EQ(f.placement.node(f.graph["r"]), 0);
  // One of the table's rows is known, but not their number.
  EXPECT_EQ(f.Of("table").storage, Storage::kVariable);
  EXPECT_EQ(f.Of("table").bytes, kUnknownSize);
  EXPECT_EQ(f.placement.node(f.graph["rows"]), 0);
  EXPECT_EQ(f.Of("rows").bytes, 112);
  EXPECT_EQ(f.placement.node(f.graph["steps"]), kHostPlace);
  EXPECT_EQ(f.placement.node(f.graph["count"]), kHostPlace);
  EXPECT_EQ(f.buffers.buffer_of(f.graph.Output("it")), kNoBuffer);
}

TEST(BuffersTest, VariablesAndTheirReadsAreOneResidentBuffer) {
  const Found f(
      "v = VariableV2() {dtype=float32, shape=(10,10), _output_shapes=[(10,10)]}\n"
      "read = Identity(v) {T=float32, _output_shapes=[(10,10)]}\n"
      "g = Abs() {T=float32, _output_shapes=[(10,10)]}\n"
      "set = Assign(v, g) {T=float32, _output_shapes=[(10,10)]}\n"
      "h = VarHandleOp() {dtype=float32, shape=(5)}\n"
      "h2 = Identity(h) {T=resource}\n"
      "value = ReadVariableOp(h2) {dtype=float32, _output_shapes=[(5)]}\n"
      "c = Const() {dtype=float32, _output_shapes=[(7)]}\n"
      "table = HashTableV2() {key_dtype=int64, value_dtype=int64}");
  EXPECT_TRUE(f.Share("v", "read"));
  EXPECT_TRUE(f.Share("v", "set"));
  EXPECT_FALSE(f.Share("v", "g"));
  EXPECT_EQ(f.Of("v").storage, Storage::kVariable);
  EXPECT_EQ(f.Of("v").bytes, 400);
  EXPECT_EQ(f.Of("v").place, 0);
  EXPECT_TRUE(f.Share("h", "value"));
  EXPECT_EQ(f.Of("h").storage, Storage::kVariable);
  EXPECT_EQ(f.Of("h").bytes, 20);
  EXPECT_EQ(f.Of("h").place, 0);
  EXPECT_EQ(f.Of("c").storage, Storage::kConstant);
  EXPECT_EQ(f.Of("g").storage, Storage::kAllocated);
  EXPECT_EQ(f.buffers.buffer_of(f.graph.Output("table")), kNoBuffer);
}

TEST(BuffersTest, InALoopTheMergeSharesWhatEnters) {
  const Found f(
      "x = Abs() {T=float32, _output_shapes=[(64)]}\n"
      "enter = Enter(x) {T=float32, frame_name=\"f\", _output_shapes=[(64)]}\n"
      "m = Merge(enter, next) {N=2, T=float32, _output_shapes=[(64),()]}\n"
      "flag = Abs(m) {T=bool, _output_shapes=[()]}\n"
      "cond = LoopCond(flag)\n"
      "sw = Switch(m, cond) {T=float32, _output_shapes=[(64),(64)]}\n"
      "body = Relu(sw:1) {T=float32, _output_shapes=[(64)]}\n"
      "next = NextIteration(body) {T=float32, _output_shapes=[(64)]}\n"
      "exit = Exit(sw) {T=float32, _output_shapes=[(64)]}");
  for (const char* t : {"enter", "m", "sw", "sw:1", "exit"}) EXPECT_TRUE(f.Share("x", t)) << t;
  EXPECT_FALSE(f.Share("x", "body"));
  EXPECT_TRUE(f.Share("body", "next"));
}

TEST(BuffersTest, OnlyElementwiseOpsTakeMemoryOver) {
  const Found f(std::string("x = Abs() {T=float32}\n") +
                "relu = Relu(x) {T=float32}\nadd = AddV2(x, x) {T=float32}\n"
                "n = AddN(x, x, x) {N=3, T=float32}\nmm = MatMul(x, x) {T=float32}\n"
                "bias = BiasAdd(x, x) {T=float32}\npool = MaxPool(x) {T=float32}\n"
                "c = Conv2D(x, x) {T=float32}\nsel = Select(x, x, x) {T=float32}\n"
                "loss = SoftmaxCrossEntropyWithLogits(x, x) {T=float32}");
  const auto mask = [&](absl::string_view t) {
    return f.buffers.reusable_inputs(f.graph.Output(t));
  };
  EXPECT_EQ(mask("relu"), 0b1);
  EXPECT_EQ(mask("add"), 0b11);
  EXPECT_EQ(mask("n"), Buffers::kAnyInput);
  EXPECT_EQ(mask("bias"), 0b1);
  EXPECT_EQ(mask("sel"), 0b110);
  EXPECT_EQ(mask("loss:0"), 0);
  EXPECT_EQ(mask("loss:1"), 0b1);
  for (const char* t : {"mm", "pool", "c"}) EXPECT_EQ(mask(t), 0) << t;
}

TEST(BuffersTest, KernelsAreLaunchedByWhatComputesOnTheDevice) {
  const Found f(std::string(kX) +
                "id = Identity(x) {T=float32, _output_shapes=[(4,16)]}\n"
                "shape = Shape(x) {T=float32}\n"
                "v = VariableV2() {dtype=float32, shape=(4,16)}\n"
                "set = Assign(v, x) {T=float32}\n"
                "h = VarHandleOp() {dtype=float32, shape=(4,16)}\n"
                "up = ResourceApplyGradientDescent(h, x, x) {T=float32}\n"
                "n = NoOp()");
  const auto launches = [&](absl::string_view n) { return f.buffers.LaunchesKernel(f.graph[n]); };
  EXPECT_TRUE(launches("x"));
  EXPECT_TRUE(launches("set"));
  EXPECT_TRUE(launches("up"));
  for (const char* n : {"id", "shape", "v", "h", "n"}) EXPECT_FALSE(launches(n)) << n;
}

// Output 5 is cuDNN's reserve space, of unknown size: zero, or a bit for each element.
TEST(BuffersTest, TheReserveSpaceOfBatchNormalizationIsNoUnknownSize) {
  const Found f(
      "x = Placeholder() {dtype=float32, shape=(8,4,4,16)}\n"
      "s = Placeholder() {dtype=float32, shape=(16)}\n"
      "bn = FusedBatchNormV3(x, s, s, s, s) {T=float32, U=float32, data_format=\"NHWC\"}\n"
      "g = FusedBatchNormGradV3(bn, x, s, bn:3, bn:4, bn:5) {T=float32, U=float32}\n"
      "own = MyOwnOp(bn:5) {_output_shapes=[(*)]}");
  EXPECT_EQ(f.Of("bn:5").bytes, 0);
  EXPECT_EQ(f.Of("bn").bytes, 8 * 4 * 4 * 16 * 4);
  EXPECT_EQ(f.Of("bn:4").bytes, 16 * 4);
  EXPECT_EQ(f.Of("own").bytes, kUnknownSize);
}

}  // namespace
}  // namespace spillway::core
