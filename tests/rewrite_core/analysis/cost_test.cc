#include "rewrite_core/analysis/cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/core_test_util.h"
#include "tests/testing/function_graph.h"

namespace spillway::core {
namespace {

using testing::CaseName;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::TestGraph;
using testing::ValueOrDie;

// Numbers that are easy to work with by hand: an operation takes 1 ns at efficiency 1; convolutions
// reach 1/2 and matrix products 1/4. A byte takes 1 ns at mem_eff 1; kernels reach 1/10. A launch
// takes 1000 ns.
Hardware EasyHardware() {
  Hardware hardware;
  hardware.peak_flops = 1e9;
  hardware.eff_conv = 0.5;
  hardware.eff_matmul = 0.25;
  hardware.mem_bytes_per_s = 1e9;
  hardware.mem_eff = 0.1;
  hardware.launch_s = 1e-6;
  hardware.d2h_bytes_per_s = 2e9;
  hardware.h2d_bytes_per_s = 4e9;
  hardware.copy_latency_s = 1e-6;
  return hardware;
}

absl::StatusOr<Costs> Estimate(const TestGraph& graph, const Hardware& hardware,
                               const v1::Step& step, const Profile* profile = nullptr) {
  const Topology topology = ValueOrDie(Topology::Build(*graph, {}), "topology");
  const Shapes shapes = ValueOrDie(Shapes::Infer(*graph, topology, {}, {}), "shapes");
  const Placement placement =
      ValueOrDie(Placement::Find(*graph, topology, shapes, {}), "placement");
  const Buffers buffers = ValueOrDie(
      Buffers::Find(*graph, topology, shapes, placement, {}, {}, nullptr, {}), "buffers");
  return Costs::Estimate(*graph, shapes, placement, buffers, hardware, {}, step, profile, {});
}

// Without the kernels' memory besides outputs.
absl::StatusOr<Costs> Estimate(const TestGraph& graph, const Hardware& hardware,
                               int64_t workspace = 0) {
  v1::Step step;
  step.set_kernel_memory(v1::KERNEL_MEMORY_OFF);
  step.set_convolution_workspace_bytes(workspace);
  return Estimate(graph, hardware, step);
}

// A source of any shape: a custom op, of which only its stated shape is known.
std::string Source(const std::string& name, const std::string& shape) {
  return name + " = Abs() {T=float32, _output_shapes=[" + shape + "]}\n";
}

struct CostCase {
  std::string name;
  std::string graph;  // The cost of its node `n`.
  double flops;
  double bytes;
};
class CostTest : public ::testing::TestWithParam<CostCase> {};

TEST_P(CostTest, CountsOperationsAndBytes) {
  const TestGraph graph(GetParam().graph);
  const Costs costs = ValueOrDie(Estimate(graph, EasyHardware()), "costs");
  const NodeCost& cost = costs[graph["n"]];
  EXPECT_TRUE(cost.is_known);
  EXPECT_EQ(cost.flops, GetParam().flops);
  EXPECT_EQ(cost.memory_bytes, GetParam().bytes);
}

// The textbook's convolution: for each output element, one multiply-add (two operations) for each
// of the kernel's taps and each input channel. Here: 2 images of 8x8 with 3 channels, a kernel of
// 3x3 to 5 channels, output 2x8x8x5.
constexpr double kConvFlops = 2.0 * (2 * 8 * 8 * 5) * (3 * 3 * 3);
constexpr double kImages = 4 * 2 * 8 * 8 * 3, kFilter = 4 * 3 * 3 * 3 * 5,
                 kMaps = 4 * 2 * 8 * 8 * 5;

INSTANTIATE_TEST_SUITE_P(
    Cost, CostTest,
    ::testing::Values(
        CostCase{"Conv2DNhwc",
                 Source("x", "(2,8,8,3)") + Source("w", "(3,3,3,5)") +
                     "n = Conv2D(x, w) {T=float32, _output_shapes=[(2,8,8,5)], "
                     "data_format=\"NHWC\", padding=\"SAME\", strides=[1,1,1,1]}",
                 kConvFlops, kImages + kFilter + kMaps},
        CostCase{"Conv2DNchw",
                 Source("x", "(2,3,8,8)") + Source("w", "(3,3,3,5)") +
                     "n = Conv2D(x, w) {T=float32, _output_shapes=[(2,5,8,8)], "
                     "data_format=\"NCHW\", padding=\"SAME\", strides=[1,1,1,1]}",
                 kConvFlops, kImages + kFilter + kMaps},
        // With strides, only the output counts: 2x4x4x5 elements.
        CostCase{"Conv2DStrides",
                 Source("x", "(2,8,8,3)") + Source("w", "(3,3,3,5)") +
                     "n = Conv2D(x, w) {T=float32, _output_shapes=[(2,4,4,5)], "
                     "data_format=\"NHWC\", padding=\"SAME\", strides=[1,2,2,1]}",
                 2.0 * (2 * 4 * 4 * 5) * (3 * 3 * 3), kImages + kFilter + kMaps / 4},
        // The gradients take as many operations as the forward pass. The sizes are parameters, read
        // on the host.
        CostCase{"Conv2DBackpropInput",
                 "s = Const() {dtype=int32, _output_shapes=[(4)]}\n" + Source("w", "(3,3,3,5)") +
                     Source("g", "(2,8,8,5)") +
                     "n = Conv2DBackpropInput(s, w, g) {T=float32, _output_shapes=[(2,8,8,3)], "
                     "data_format=\"NHWC\", padding=\"SAME\", strides=[1,1,1,1]}",
                 kConvFlops, kFilter + kMaps + kImages},
        CostCase{"Conv2DBackpropFilter",
                 "s = Const() {dtype=int32, _output_shapes=[(4)]}\n" + Source("x", "(2,8,8,3)") +
                     Source("g", "(2,8,8,5)") +
                     "n = Conv2DBackpropFilter(x, s, g) {T=float32, _output_shapes=[(3,3,3,5)], "
                     "data_format=\"NHWC\", padding=\"SAME\", strides=[1,1,1,1]}",
                 kConvFlops, kFilter + kMaps + kImages},
        // 1 volume of 4x4x4, 2 channels, kernel 3x3x3 to 7 channels.
        CostCase{"Conv3D",
                 Source("x", "(1,4,4,4,2)") + Source("w", "(3,3,3,2,7)") +
                     "n = Conv3D(x, w) {T=float32, _output_shapes=[(1,4,4,4,7)], "
                     "data_format=\"NDHWC\", padding=\"SAME\", strides=[1,1,1,1,1]}",
                 2.0 * (64 * 7) * (27 * 2), 4.0 * (64 * 2 + 27 * 2 * 7 + 64 * 7)},
        // Each output channel comes from one input channel: 3x3 taps, for all channels.
        CostCase{"Depthwise",
                 Source("x", "(2,8,8,3)") + Source("w", "(3,3,3,2)") +
                     "n = DepthwiseConv2dNative(x, w) {T=float32, _output_shapes=[(2,8,8,6)], "
                     "data_format=\"NHWC\", padding=\"SAME\", strides=[1,1,1,1]}",
                 2.0 * (2 * 8 * 8 * 6) * 9, kImages + 4.0 * 3 * 3 * 3 * 2 + 4.0 * 2 * 8 * 8 * 6},
        // [2,3] x [3,5]: 2*2*3*5.
        CostCase{"MatMul",
                 Source("a", "(2,3)") + Source("b", "(3,5)") +
                     "n = MatMul(a, b) {T=float32, _output_shapes=[(2,5)]}",
                 60, 4.0 * (6 + 15 + 10)},
        CostCase{"MatMulTransposed",
                 Source("a", "(3,2)") + Source("b", "(5,3)") +
                     "n = MatMul(a, b) {T=float32, transpose_a=true, transpose_b=true, "
                     "_output_shapes=[(2,5)]}",
                 60, 4.0 * (6 + 15 + 10)},
        CostCase{"BatchMatMul",
                 Source("a", "(7,4,2,3)") + Source("b", "(7,4,3,5)") +
                     "n = BatchMatMulV2(a, b) {T=float32, _output_shapes=[(7,4,2,5)]}",
                 28 * 60, 4.0 * 28 * (6 + 15 + 10)},
        // The second operand is used for all 28 matrices.
        CostCase{"BatchMatMulBroadcast",
                 Source("a", "(7,4,2,3)") + Source("b", "(3,5)") +
                     "n = BatchMatMulV2(a, b) {T=float32, _output_shapes=[(7,4,2,5)]}",
                 28 * 60, 4.0 * (28 * 6 + 15 + 28 * 10)},
        CostCase{"Einsum",
                 Source("a", "(7,2,3)") + Source("b", "(3,5)") +
                     "n = Einsum(a, b) {N=2, T=float32, equation=\"bij,jk->bik\", "
                     "_output_shapes=[(7,2,5)]}",
                 7 * 60, 4.0 * (7 * 6 + 15 + 7 * 10)},
        CostCase{"EinsumEllipsis",
                 Source("a", "(7,4,2,3)") + Source("b", "(3,5)") +
                     "n = Einsum(a, b) {N=2, T=float32, equation=\"...ij,jk->...ik\", "
                     "_output_shapes=[(7,4,2,5)]}",
                 28 * 60, 4.0 * (28 * 6 + 15 + 28 * 10)},
        // Inputs and outputs, each once.
        CostCase{"Relu", Source("x", "(100)") + "n = Relu(x) {T=float32, _output_shapes=[(100)]}",
                 0, 800},
        CostCase{"Add",
                 Source("x", "(100)") + Source("y", "(1)") +
                     "n = AddV2(x, y) {T=float32, _output_shapes=[(100)]}",
                 0, 400 + 4 + 400},
        // x twice, y once, four vectors of 3 in, four out; the reserve space does not count.
        CostCase{"FusedBatchNorm",
                 Source("x", "(2,8,8,3)") + Source("s", "(3)") +
                     "n = FusedBatchNormV3(x, s, s, s, s) {T=float32, U=float32, "
                     "_output_shapes=[(2,8,8,3),(3),(3),(3),(3),(*)]}",
                 0, 3 * kImages + 8 * 12},
        // y_backprop and x twice, x_backprop once; three vectors of 3 in, two out, two empty.
        CostCase{"FusedBatchNormGrad",
                 Source("x", "(2,8,8,3)") + Source("s", "(3)") +
                     "r = Abs() {T=float32, _output_shapes=[(*)]}\n"
                     "n = FusedBatchNormGradV3(x, x, s, s, s, r) {T=float32, U=float32, "
                     "_output_shapes=[(2,8,8,3),(3),(3),(0),(0)]}",
                 0, 5 * kImages + 5 * 12},
        CostCase{"Softmax",
                 Source("x", "(10,10)") + "n = Softmax(x) {T=float32, _output_shapes=[(10,10)]}", 0,
                 4 * 400},
        // Momentum: variable and slot read and written, gradient read: five times 400.
        CostCase{"ApplyMomentum",
                 "v = VariableV2() {dtype=float32, shape=(100)}\n"
                 "m = VariableV2() {dtype=float32, shape=(100)}\n" +
                     Source("g", "(100)") + Source("lr", "()") +
                     "n = ApplyMomentum(v, m, lr, g, lr) {T=float32, _output_shapes=[(100)]}",
                 0, 5 * 400},
        CostCase{"ResourceApplyAdam",
                 "v = VarHandleOp() {dtype=float32, shape=(100)}\n" + Source("g", "(100)") +
                     Source("b", "()") +
                     "n = ResourceApplyAdam(v, v, v, b, b, b, b, b, b, g) {T=float32}",
                 0, 7 * 400},
        // Of a table of 4 MB, it reads only the 5 rows of 10 floats that it gathers.
        CostCase{"Gather",
                 Source("t", "(100000,10)") +
                     "i = Abs() {T=int64, _output_shapes=[(5)]}\n"
                     "a = Const() {dtype=int32, _output_shapes=[()]}\n"
                     "n = GatherV2(t, i, a) {Tparams=float32, Tindices=int64, Taxis=int32, "
                     "_output_shapes=[(5,10)]}",
                 0, 2 * 200 + 40},
        CostCase{"Empty", Source("x", "(0,5)") + "n = Relu(x) {T=float32, _output_shapes=[(0,5)]}",
                 0, 0}),
    CaseName());

TEST(CostTimeTest, IsTheLongerOfComputingAndMoving) {
  // 60 operations at 1/4 of 1e9/s: 240 ns. 124 bytes at 1/10 of 1e9/s: 1240 ns. Launch 1000 ns.
  const TestGraph graph(Source("a", "(2,3)") + Source("b", "(3,5)") +
                        "n = MatMul(a, b) {T=float32, _output_shapes=[(2,5)]}");
  EXPECT_EQ(ValueOrDie(Estimate(graph, EasyHardware()), "costs")[graph["n"]].duration_ns, 2240);
  Hardware fast_memory = EasyHardware();
  fast_memory.mem_bytes_per_s = 1e12;
  EXPECT_EQ(ValueOrDie(Estimate(graph, fast_memory), "costs")[graph["n"]].duration_ns, 1240);
}

TEST(CostTimeTest, ConvolutionsHaveAnEfficiencyOfTheirOwn) {
  Hardware hardware = EasyHardware();
  hardware.mem_bytes_per_s = 1e15;
  const TestGraph graph(Source("x", "(2,8,8,3)") + Source("w", "(3,3,3,5)") +
                        "n = Conv2D(x, w) {T=float32, _output_shapes=[(2,8,8,5)], "
                        "data_format=\"NHWC\", padding=\"SAME\", strides=[1,1,1,1]}");
  const Costs costs = ValueOrDie(Estimate(graph, hardware, 12345), "costs");
  EXPECT_EQ(costs[graph["n"]].duration_ns, 1000 + 2 * static_cast<int64_t>(kConvFlops));
  EXPECT_EQ(costs[graph["n"]].workspace_bytes, 12345);
  EXPECT_EQ(costs[graph["x"]].workspace_bytes, 0);
}

TEST(CostTimeTest, WhatLaunchesNothingTakesNoTime) {
  const TestGraph graph(Source("x", "(2,8)") +
                        "i = Identity(x) {T=float32, _output_shapes=[(2,8)]}\n"
                        "s = Const() {dtype=int32, _output_shapes=[(1)]}\n"
                        "r = Reshape(i, s) {T=float32, _output_shapes=[(16)]}\n"
                        "v = VarHandleOp() {dtype=float32, shape=(3)}\n"
                        "read = ReadVariableOp(v) {dtype=float32, _output_shapes=[(3)]}\n"
                        "shape = Shape(x) {T=float32, _output_shapes=[(2)]}\n"
                        "sum = AddV2(shape, shape) {T=int32, _output_shapes=[(2)]}\n"
                        "no = NoOp(^r)\n"
                        "cpu = Relu(x) @/cpu:0 {T=float32, _output_shapes=[(2,8)]}\n");
  const Costs costs = ValueOrDie(Estimate(graph, EasyHardware()), "costs");
  for (const char* node : {"i", "s", "r", "v", "read", "shape", "sum", "no", "cpu"}) {
    EXPECT_EQ(costs[graph[node]].duration_ns, 0) << node;
    EXPECT_TRUE(costs[graph[node]].is_known) << node;
  }
  EXPECT_GT(costs[graph["x"]].duration_ns, 1000);
}

TEST(CostTimeTest, UnknownSizesAreALaunchAndAreMarked) {
  const TestGraph graph(Source("x", "(?,8)") +
                        "n = Relu(x) {T=float32, _output_shapes=[(?,8)]}\n"
                        "m = MatMul(x, x) {T=float32, _output_shapes=[(?,8)]}\n"
                        "custom = HorovodAllreduce(x) {T=float32}\n"
                        "call = StatefulPartitionedCall(x) {Tin=[float32], Tout=[float32], "
                        "_output_shapes=[(4)]}");
  const Costs costs = ValueOrDie(Estimate(graph, EasyHardware()), "costs");
  for (const char* node : {"n", "m", "call"}) {
    EXPECT_EQ(costs[graph[node]].duration_ns, 1000) << node;
    EXPECT_FALSE(costs[graph[node]].is_known) << node;
    EXPECT_EQ(costs[graph[node]].flops, 0) << node;
  }
}

// As Keras 2 computes a grouped convolution: a call that XLA compiles, of one op.
TEST(CallCostTest, ACallOfOneOpCostsWhatTheOpCosts) {
  const std::string conv = "{T=float32, strides=[1,1,1,1], padding=\"SAME\"";
  const std::string shape = ", _output_shapes=[(2,8,8,5)]";
  const TestGraph graph = TestGraph::FromBytes(testing::GraphWithFunctions(
      Source("x", "(2,8,8,3)") + Source("k", "(3,3,3,5)") + "plain = Conv2D(x, k) " + conv + shape +
          "}\ncall = StatefulPartitionedCall(x, k) {Tin=[float32,float32], Tout=[float32], "
          "f=\"conv\", _XlaMustCompile=true" +
          shape + "}\nby_name = conv(x, k) {_output_shapes=[(2,8,8,5)]}",
      {testing::Function("conv", "x:float32 k:float32", "y:float32",
                         "c = Conv2D(x, k) " + conv + "}\nsame = Identity(c:output:0) {T=float32}",
                         {"y=same:output:0"})}));
  const Costs costs = ValueOrDie(Estimate(graph, EasyHardware(), 123), "costs");
  const NodeCost& plain = costs[graph["plain"]];
  EXPECT_EQ(plain.flops, kConvFlops);
  for (const char* node : {"call", "by_name"}) {
    const NodeCost& call = costs[graph[node]];
    EXPECT_TRUE(call.is_known) << node;
    EXPECT_FALSE(call.is_call) << node;
    EXPECT_EQ(call.flops, plain.flops) << node;
    EXPECT_EQ(call.memory_bytes, plain.memory_bytes) << node;
    EXPECT_EQ(call.duration_ns, plain.duration_ns) << node;
    EXPECT_EQ(call.workspace_bytes, 123) << node;
  }
}

// The cost of the node `call`, of a function of a tensor of 1,000 bytes.
NodeCost CostOfBody(const std::string& body, const std::string& result, int64_t workspace = 0) {
  const TestGraph graph = TestGraph::FromBytes(testing::GraphWithFunctions(
      Source("x", "(250)") +
          "call = StatefulPartitionedCall(x) {Tin=[float32], Tout=[float32], f=\"f\", "
          "_output_shapes=[(250)]}",
      {testing::Function("f", "x:float32", "y:float32", body, {"y=" + result})}));
  return ValueOrDie(Estimate(graph, EasyHardware(), workspace), "costs")[graph["call"]];
}

// A launch takes 1000 ns, and 1000 bytes 10,000.
TEST(CallCostTest, TimesAddUpAndMemoryIsHeldUntilItsLastReader) {
  // The outputs of Relu and Exp are live together; Neg's takes over Exp's buffer; the result is the
  // caller's.
  const NodeCost chain = CostOfBody(
      "a = Relu(x) {T=float32}\nb = Exp(a:activations:0) {T=float32}\n"
      "c = Neg(b:y:0) {T=float32}\nd = Mul(c:y:0, a:activations:0) {T=float32}",
      "d:z:0");
  EXPECT_TRUE(chain.is_known);
  EXPECT_EQ(chain.workspace_bytes, 2000);
  EXPECT_EQ(chain.duration_ns, 3 * (1000 + 20'000) + (1000 + 30'000));
  // Unused outputs are freed at once; a buffer read later is not taken over.
  const NodeCost fan = CostOfBody(
      "a = Relu(x) {T=float32}\nunread = Exp(x) {T=float32}\n"
      "b = Neg(a:activations:0) {T=float32}\nc = Mul(b:y:0, a:activations:0) {T=float32}",
      "c:z:0");
  EXPECT_EQ(fan.workspace_bytes, 2000);
  // An argument is the caller's, too.
  EXPECT_EQ(CostOfBody("a = Relu(x) {T=float32}", "x").workspace_bytes, 1000);
  EXPECT_EQ(CostOfBody("", "x").duration_ns, 0);
}

TEST(CallCostTest, WhatIsUnknownInABodyMakesTheCallUnknown) {
  const struct {
    const char* name;
    const char* body;
    const char* result;
  } kCases[] = {
      {"size", "a = Foo(x)\nb = Relu(a:y:0) {T=float32}", "b:activations:0"},
      {"call", "a = StatefulPartitionedCall(x) {Tin=[float32], Tout=[float32]}", "a:output:0"},
      {"itself", "a = f(x)", "a:y:0"},
      {"variable", "v = VarHandleOp() {dtype=float32, shape=(3)}\na = Relu(x) {T=float32}",
       "a:activations:0"},
      {"loop", "e = Enter(x) {T=float32, frame_name=\"w\"}\na = Exit(e:output:0) {T=float32}",
       "a:output:0"},
      {"result", "a = Relu(x) {T=float32}", "b:y:0"},
  };
  for (const auto& c : kCases) {
    const NodeCost cost = CostOfBody(c.body, c.result);
    EXPECT_TRUE(cost.is_call) << c.name;
    EXPECT_FALSE(cost.is_known) << c.name;
    EXPECT_EQ(cost.workspace_bytes, 0) << c.name;
  }
}

TEST(CostTimeTest, HugeShapesAndSlowMachinesDoNotOverflow) {
  const TestGraph graph(Source("a", "(1073741824,1073741824)") +
                        "n = MatMul(a, a) {T=float32, "
                        "_output_shapes=[(1073741824,1073741824)]}");
  Hardware hardware = EasyHardware();
  hardware.mem_bytes_per_s = 1e-300;
  EXPECT_EQ(ValueOrDie(Estimate(graph, hardware), "costs")[graph["n"]].duration_ns, kMaxDurationNs);
}

TEST(CostTimeTest, RefusesAWorkspaceOutOfRange) {
  const TestGraph graph("n = NoOp()");
  for (int64_t bytes : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    const absl::Status status = Estimate(graph, EasyHardware(), bytes).status();
    EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION);
    EXPECT_THAT(std::string(status.message()), HasSubstr("convolution_workspace_bytes"));
  }
}

TEST(KernelMemoryTest, WorkspacesHaveALimit) {
  constexpr int64_t kMib = 1048576;
  v1::Step step;
  EXPECT_THAT(WorkspaceLimits(step), ElementsAre(256 * kMib, 128 * kMib, 64 * kMib));
  step.set_convolution_workspace_limit_bytes(3 * kMib);
  EXPECT_THAT(CheckKernelMemory(step), IsOk());
  EXPECT_THAT(WorkspaceLimits(step), ElementsAre(3 * kMib));
  for (int64_t bytes : {int64_t{-1}, kMib - 1, (int64_t{1} << 50) + kMib,
                        std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    step.set_convolution_workspace_limit_bytes(bytes);
    const absl::Status status = CheckKernelMemory(step);
    EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION) << bytes;
    EXPECT_THAT(std::string(status.message()), HasSubstr("convolution_workspace_limit_bytes"));
  }
  for (int64_t none : {int64_t{0}, int64_t{1} << 50}) {
    step.set_convolution_workspace_limit_bytes(none);
    EXPECT_THAT(CheckKernelMemory(step), IsOk());
    EXPECT_EQ(WorkspaceLimits(step).empty(), none == 0);
  }
  step.set_convolution_workspace_bytes(1);  // Convolutions must have it.
  EXPECT_EQ(GetErrorReason(CheckKernelMemory(step)), v1::ERROR_REASON_CONFLICTING_OPTIONS);
  EXPECT_THAT(std::string(CheckKernelMemory(step).message()), HasSubstr("leave one of them out"));
  step.clear_convolution_workspace_limit_bytes();
  EXPECT_THAT(WorkspaceLimits(step), ::testing::IsEmpty());
  step.Clear();
  step.set_kernel_memory(v1::KERNEL_MEMORY_OFF);
  EXPECT_THAT(WorkspaceLimits(step), ::testing::IsEmpty());
  step.set_convolution_workspace_limit_bytes(0);
  EXPECT_THAT(CheckKernelMemory(step), IsOk());
  step.set_convolution_workspace_limit_bytes(kMib);
  EXPECT_EQ(GetErrorReason(CheckKernelMemory(step)), v1::ERROR_REASON_CONFLICTING_OPTIONS);
}

// Each class of kernels at half the rate that it has by default, alone: only the nodes of the class
// take twice their time, less the launch.
TEST(KernelClassTest, OnlyTheKernelsOfAClassTakeItsEfficiency) {
  const auto conv = [](const std::string& name, const std::string& inputs, const std::string& shape,
                       const std::string& format, const std::string& type) {
    return absl::StrCat(name, " = Conv2D(", inputs, ") {T=", type, ", _output_shapes=[", shape,
                        "], padding=\"SAME\", strides=[1,1,1,1], data_format=\"", format, "\"}\n");
  };
  const auto matmul = [](const std::string& name, const std::string& op, const std::string& inputs,
                         const std::string& shape, const std::string& type) {
    return absl::StrCat(name, " = ", op, "(", inputs, ") {T=", type, ", _output_shapes=[", shape,
                        "]}\n");
  };
  const auto half = [](const std::string& name, const std::string& shape) {
    return name + " = Abs() {T=float16, _output_shapes=[" + shape + "]}\n";
  };
  const TestGraph graph(
      Source("x", "(64,96)") + Source("row", "(96)") + Source("one", "()") +
      Source("images", "(2,8,8,96)") + Source("first", "(2,96,8,8)") + Source("s", "(96)") +
      Source("w", "(3,3,96,64)") + Source("wd", "(3,3,96,1)") + Source("a", "(512,256)") +
      Source("b", "(256,512)") + Source("thin", "(256,64)") + Source("as", "(4,512,256)") +
      Source("bs", "(4,256,512)") + half("ha", "(512,256)") + half("hb", "(256,64)") +
      half("himages", "(2,8,8,96)") + half("hfirst", "(2,96,8,8)") + half("hw", "(3,3,96,64)") +
      "axis = Const() {dtype=int32, value=0x420400000000}\n"
      "relu = Relu(x) {T=float32}\n"
      "same = Add(x, x) {T=float32}\n"
      "scaled = Mul(x, one) {T=float32}\n"
      "rows = Add(x, row) {T=float32}\n"
      "sum = Sum(x, axis) {T=float32, Tidx=int32, keep_dims=false, _output_shapes=[(96)]}\n"
      "soft = Softmax(x) {T=float32}\n"
      "bn = FusedBatchNormV3(images, s, s, s, s) {T=float32, U=float32, "
      "_output_shapes=[(2,8,8,96),(96),(96),(96),(96),(*)]}\n"
      "turned = Transpose(x, perm) {T=float32, Tperm=int32, _output_shapes=[(96,64)]}\n"
      "perm = Const() {dtype=int32, _output_shapes=[(2)]}\n"
      "pool = MaxPool(images) {T=float32, _output_shapes=[(2,4,4,96)]}\n"
      "rowids = Const() {dtype=int32, _output_shapes=[(32)]}\n"
      "gathered = GatherV2(x, rowids, axis) {Tparams=float32, Tindices=int32, Taxis=int32, "
      "_output_shapes=[(32,96)]}\n" +
      conv("nhwc", "images, w", "(2,8,8,64)", "NHWC", "float32") +
      conv("nchw", "first, w", "(2,64,8,8)", "NCHW", "float32") +
      conv("hnhwc", "himages, hw", "(2,8,8,64)", "NHWC", "float16") +
      conv("hnchw", "hfirst, hw", "(2,64,8,8)", "NCHW", "float16") +
      "depthwise = DepthwiseConv2dNative(images, wd) {T=float32, _output_shapes=[(2,8,8,96)], "
      "padding=\"SAME\", strides=[1,1,1,1]}\n" +
      matmul("big", "MatMul", "a, b", "(512,512)", "float32") +
      matmul("narrow", "MatMul", "a, thin", "(512,64)", "float32") +
      matmul("batch", "BatchMatMulV2", "as, bs", "(4,512,512)", "float32") +
      matmul("halves", "MatMul", "ha, hb", "(512,64)", "float16"));
  Hardware hardware = EasyHardware();
  hardware.mem_bytes_per_s = 1e12;  // So that operations, if any, decide.
  const Costs before = ValueOrDie(Estimate(graph, hardware), "costs");
  const std::vector<std::pair<KernelClass, std::vector<std::string>>> kCases = {
      {KernelClass::kElementwise, {"relu", "same", "scaled"}},
      {KernelClass::kBroadcast, {"rows"}},
      {KernelClass::kReduction, {"sum", "soft"}},
      {KernelClass::kNormalization, {"bn"}},
      {KernelClass::kTranspose, {"turned"}},
      {KernelClass::kPooling, {"pool"}},
      {KernelClass::kGather, {"gathered"}},
      {KernelClass::kConvolutionNchw, {"nchw"}},
      {KernelClass::kConvolutionNhwc, {"nhwc"}},
      {KernelClass::kHalfConvolutionNchw, {"hnchw"}},
      {KernelClass::kHalfConvolutionNhwc, {"hnhwc"}},
      {KernelClass::kDepthwiseConvolution, {"depthwise"}},
      {KernelClass::kMatmul, {"big"}},
      {KernelClass::kNarrowMatmul, {"narrow"}},
      {KernelClass::kBatchMatmul, {"batch"}},
      {KernelClass::kHalfMatmul, {"halves"}}};
  ASSERT_EQ(kCases.size(), kKernelClasses);
  for (const auto& [kernels, nodes] : kCases) {
    SCOPED_TRACE(nodes[0]);
    const size_t number = static_cast<size_t>(kernels);
    const double otherwise = number < static_cast<size_t>(KernelClass::kConvolutionNchw) ? 0.1
                             : number < static_cast<size_t>(KernelClass::kMatmul)        ? 0.5
                                                                                         : 0.25;
    Hardware slower = hardware;
    slower.efficiencies[number] = otherwise / 2;
    const Costs after = ValueOrDie(Estimate(graph, slower), "costs");
    for (const auto& [_, others] : kCases) {
      for (const std::string& node : others) {
        const int64_t busy = before[graph[node]].duration_ns - 1000;
        EXPECT_GT(busy, 1000 / 16) << node;
        EXPECT_NEAR(after[graph[node]].duration_ns - 1000, others == nodes ? 2 * busy : busy,
                    others == nodes ? 1 : 0)
            << node;
      }
    }
  }
  // By hand: 2 * 512 * 256 * 512 operations at 1e9 a second and a share of 0.25.
  EXPECT_EQ(before[graph["big"]].duration_ns, 1000 + 4 * 134'217'728);
  // The sources are read and written: 64 * 96 floats each way at 1e12 bytes a second, a tenth of
  // it.
  EXPECT_EQ(before[graph["relu"]].duration_ns, 1000 + 492);
}

TEST(KernelClassTest, CopiesInAnotherLayoutAreTransposes) {
  Hardware hardware = EasyHardware();
  EXPECT_EQ(TransposeNanoseconds(hardware, 1000), 1000 + 20000);
  hardware.efficiencies[static_cast<size_t>(KernelClass::kTranspose)] = 0.05;
  EXPECT_EQ(TransposeNanoseconds(hardware, 1000), 1000 + 40000);
  // A batch normalization in NHWC moves 3 times its tensor, and its copies 4 times.
  const TestGraph graph(Source("x", "(2,8,8,96)") + Source("s", "(96)") +
                        "bn = FusedBatchNormV3(x, s, s, s, s) {T=float32, U=float32, "
                        "_output_shapes=[(2,8,8,96),(96),(96),(96),(96),(*)]}\n");
  constexpr int64_t kTensor = int64_t{4} * 2 * 8 * 8 * 96, kSmall = int64_t{4} * 96 * 8;
  EXPECT_EQ(ValueOrDie(Estimate(graph, hardware, v1::Step()), "costs")[graph["bn"]].duration_ns,
            1000 + 10 * (3 * kTensor + kSmall) + 20 * 4 * kTensor);
}

// About the input and the output of a convolution in NCHW; none in NHWC, which needs tensor cores,
// nor for cuBLAS's products.
TEST(KernelMemoryTest, ConvolutionsWantWorkspaces) {
  const auto conv = [](const std::string& name, const std::string& inputs, const std::string& shape,
                       const std::string& format) {
    return absl::StrCat(name, " = Conv2D(", inputs, ") {T=float32, _output_shapes=[", shape,
                        "], padding=\"SAME\", strides=[1,1,1,1], data_format=\"", format, "\"}\n");
  };
  const TestGraph graph(
      Source("x", "(2,8,8,3)") + Source("c", "(2,3,8,8)") + Source("w", "(3,3,3,5)") +
      Source("p", "(1,1,3,5)") + conv("last", "x, w", "(2,8,8,5)", "NHWC") +
      conv("first", "c, w", "(2,5,8,8)", "NCHW") + conv("point", "x, p", "(2,8,8,5)", "NHWC"));
  constexpr int64_t kBoth = int64_t{2} * 8 * 8 * (3 + 5) * 4;
  Hardware hardware = EasyHardware();
  const auto wanted = [&](const char* node, const v1::Step& step) {
    return ValueOrDie(Estimate(graph, hardware, step), "costs").wanted_bytes(graph[node]);
  };
  hardware.compute_capability = 7;  // Converts to NCHW.
  EXPECT_EQ(wanted("last", {}), kBoth);
  EXPECT_EQ(wanted("first", {}), kBoth);
  EXPECT_EQ(wanted("point", {}), 0);
  v1::Step step;
  step.set_convolution_workspace_bytes(1);
  EXPECT_EQ(wanted("first", step), 0);
  hardware.compute_capability = 8;
  EXPECT_EQ(wanted("last", {}), 0);
  EXPECT_EQ(wanted("first", {}), kBoth);
}

TEST(KernelMemoryTest, TemporariesTakeMemoryAndTimeIfTheyCount) {
  // A batch normalization in NHWC reads x twice and writes y; with its copies it moves 7 times the
  // tensor. A convolution needs the longer of its arithmetic and its bytes, and the time of its
  // copies.
  const TestGraph graph(
      Source("x", "(2,8,8,3)") + Source("s", "(3)") + Source("w", "(3,3,3,5)") +
      "bn = FusedBatchNormV3(x, s, s, s, s) {T=float32, U=float32, "
      "_output_shapes=[(2,8,8,3),(3),(3),(3),(3),(*)]}\n"
      "grad = FusedBatchNormGradV3(x, x, s, s, s, s) {T=float32, U=float32, "
      "_output_shapes=[(2,8,8,3),(3),(3),(0),(0)]}\n"
      "conv = Conv2D(x, w) {T=float32, _output_shapes=[(2,8,8,5)], padding=\"SAME\", "
      "strides=[1,1,1,1]}");
  v1::Step off, counted;
  counted.set_convolution_workspace_bytes(1000);
  off = counted;
  off.set_kernel_memory(v1::KERNEL_MEMORY_OFF);
  const Costs without = ValueOrDie(Estimate(graph, EasyHardware(), off), "costs");
  const Costs with = ValueOrDie(Estimate(graph, EasyHardware(), counted), "costs");
  EXPECT_EQ(with[graph["bn"]].workspace_bytes, 2 * kImages);
  EXPECT_EQ(with[graph["bn"]].memory_bytes, 7 * kImages + 8 * 12);
  EXPECT_EQ(with[graph["grad"]].workspace_bytes, 3 * kImages);
  EXPECT_EQ(with[graph["grad"]].memory_bytes, 11 * kImages + 5 * 12);
  EXPECT_EQ(with[graph["conv"]].workspace_bytes, 1000 + kImages + kFilter + kMaps);
  // A byte takes 10 ns.
  const double copied = 2 * (kImages + kFilter + kMaps);
  EXPECT_EQ(with[graph["conv"]].duration_ns,
            without[graph["conv"]].duration_ns + static_cast<int64_t>(10 * copied));
  EXPECT_EQ(with[graph["bn"]].duration_ns,
            without[graph["bn"]].duration_ns + static_cast<int64_t>(10 * 4 * kImages));

  EXPECT_EQ(without[graph["bn"]].workspace_bytes, 0);
  EXPECT_EQ(without[graph["conv"]].workspace_bytes, 1000);
  EXPECT_EQ(without[graph["bn"]].memory_bytes, 3 * kImages + 8 * 12);
}

TEST(KernelMemoryTest, CountsUnlessOff) {
  v1::Step step;
  EXPECT_TRUE(CountsTemporaries(step));
  step.set_kernel_memory(v1::KERNEL_MEMORY_AUTO);
  EXPECT_TRUE(CountsTemporaries(step));
  step.set_kernel_memory(v1::KERNEL_MEMORY_OFF);
  EXPECT_FALSE(CountsTemporaries(step));
  step.set_kernel_memory(static_cast<v1::KernelMemory>(3));
  const absl::Status status = CheckKernelMemory(step);
  EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_UNKNOWN_OPTION);
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel_memory is 3"));
}

TEST(NanosecondsTest, RoundsAndClamps) {
  EXPECT_EQ(ToNanoseconds(1.4e-9), 1);
  EXPECT_EQ(ToNanoseconds(1.6e-9), 2);
  EXPECT_EQ(ToNanoseconds(-1), 0);
  EXPECT_EQ(ToNanoseconds(1e6), kMaxDurationNs);
  EXPECT_EQ(ToNanoseconds(std::nan("")), kMaxDurationNs);
}

TEST(NanosecondsTest, ACopyIsItsLatencyAndItsBytes) {
  const Hardware hardware = EasyHardware();
  EXPECT_EQ(CopyNanoseconds(hardware, 2e9, 8000), 1000 + 4000);
  EXPECT_EQ(CopyNanoseconds(hardware, 2e9, 0), 1000);
  EXPECT_EQ(CopyNanoseconds(hardware, 2e9, kUnknownSize), 1000);
}

// 512 x 1024 floats are 2 MiB. At 2 GB/s a byte takes half a nanosecond.
constexpr int64_t kHostMiB = 1 << 20;

int64_t HostNs(const TestGraph& graph, const char* node) {
  Hardware hardware = EasyHardware();
  hardware.host_mem_bytes_per_s = 2e9;
  const Costs costs = ValueOrDie(Estimate(graph, hardware, v1::Step()), "costs");
  const NodeCost& cost = costs[graph[node]];
  EXPECT_EQ(cost.on_host_engine, cost.duration_ns > 0) << node;
  EXPECT_TRUE(cost.is_known) << node;
  return cost.duration_ns;
}

TEST(HostCostTest, OperationsTakeTheirBytesFromOneMebibyteOn) {
  const TestGraph graph(
      "w = VarHandleOp() @/cpu:0 {dtype=float32, shape=(512,1024)}\n"
      "read = ReadVariableOp(w) @/gpu:0 {dtype=float32}\n"
      "square = Square(read) @/cpu:0 {T=float32}\n"
      "g = Abs() @/gpu:0 {T=float32, _output_shapes=[(512,1024)]}\n"
      "lr = Const() {dtype=float32, _output_shapes=[()]}\n"
      "step = ResourceApplyGradientDescent(w, lr, g) @/gpu:0 {T=float32}\n"
      "half = Abs() @/gpu:0 {T=float32, _output_shapes=[(128,1024)]}\n"
      "below = Abs() @/gpu:0 {T=float32, _output_shapes=[(127,1024)]}\n"
      "at = Neg(half) @/cpu:0 {T=float32}\n"
      "under = Neg(below) @/cpu:0 {T=float32}\n"
      "open = Abs() @/gpu:0 {T=float32}\n"
      "unknown = Neg(open) @/cpu:0 {T=float32}\n");
  EXPECT_EQ(HostNs(graph, "read"), 0);  // A name for the variable's memory.
  EXPECT_EQ(HostNs(graph, "square"), 4 * kHostMiB / 2);
  EXPECT_EQ(HostNs(graph, "step"), 3 * 2 * kHostMiB / 2);  // Two read, one written.
  EXPECT_EQ(HostNs(graph, "at"), kHostMiB / 2);
  EXPECT_EQ(HostNs(graph, "under"), 0);
  EXPECT_EQ(HostNs(graph, "unknown"), 0);
}

TEST(HostCostTest, InputPipelinesAndSwapsTakeNone) {
  const TestGraph graph(
      "x = Placeholder() {dtype=float32, shape=(512,1024)}\n"
      "scaled = Neg(x) @/cpu:0 {T=float32}\n"
      "next = IteratorGetNext(it) {output_types=[float32], output_shapes=[(512,1024)]}\n"
      "it = IteratorV2() {output_types=[float32], output_shapes=[(512,1024)]}\n"
      "cast = Sub(next, scaled) @/cpu:0 {T=float32, _output_shapes=[(512,1024)]}\n"
      "act = Relu(cast) @/gpu:0 {T=float32}\n"
      "out = Identity(act) @/cpu:0 {T=float32}\n"
      "in = Identity(out) @/cpu:0 {T=float32}\n"
      "mixed = Sub(in, cast) @/cpu:0 {T=float32, _output_shapes=[(512,1024)]}\n");
  for (const char* node : {"x", "scaled", "next", "cast", "out", "in"}) {
    EXPECT_EQ(HostNs(graph, node), 0) << node;
  }
  EXPECT_EQ(HostNs(graph, "mixed"), 3 * 2 * kHostMiB / 2);
}

}  // namespace
}  // namespace spillway::core
