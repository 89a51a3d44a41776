#include "rewrite_core/analysis/machine/placement.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestGraph;
using testing::ValueOrDie;

struct Placed {
  explicit Placed(const std::string& text, const v1::Step& options = {})
      : graph(text),
        topology(ValueOrDie(Topology::Build(*graph, {}), "topology")),
        shapes(ValueOrDie(Shapes::Infer(*graph, topology, options, {}), "shapes")),
        placement(ValueOrDie(Placement::Find(*graph, topology, shapes, {}), "placement")) {}

  Place OutputPlace(absl::string_view tensor) const {
    return placement.output(graph.Output(tensor));
  }

  TestGraph graph;
  Topology topology;
  Shapes shapes;
  Placement placement;
};

TEST(PlacementTest, DeviceStringsOfOneGpuAreOne) {
  const Placed f(
      "a = Abs() @/device:GPU:0 {T=float32}\n"
      "b = Abs() @/gpu:0 {T=float32}\n"
      "c = Abs() @/gpu:1 {T=float32}\n"
      "d = Abs() {T=float32}\n"  // TensorFlow places it on the first GPU.
      "e = Abs() @/cpu:0 {T=float32}");
  ASSERT_EQ(f.placement.devices().size(), 2);
  EXPECT_EQ(f.placement.devices()[0], "/device:GPU:0");
  EXPECT_EQ(f.placement.devices()[1], "/gpu:1");
  EXPECT_EQ(f.placement.node(f.graph["a"]), 0);
  EXPECT_EQ(f.placement.node(f.graph["b"]), 0);
  EXPECT_EQ(f.placement.node(f.graph["c"]), 1);
  EXPECT_EQ(f.placement.node(f.graph["d"]), 0);
  EXPECT_EQ(f.placement.node(f.graph["e"]), kHostPlace);
  EXPECT_EQ(f.placement.Resolve("/gpu:1"), 1);
  EXPECT_EQ(f.placement.Resolve("/device:GPU:1"), 1);
  EXPECT_EQ(f.placement.Resolve("/device:CPU:0"), kHostPlace);
}

TEST(PlacementTest, WithoutDeviceTheFirstGpuOfItsTaskEvenIfNamedLater) {
  const Placed f(
      "a = Abs() @/job:w/task:1 {T=float32}\n"
      "b = Abs() @/job:w/task:0/device:GPU:0 {T=float32}\n"
      "c = Abs() @/job:w/task:1/device:GPU:1 {T=float32}\n"
      "d = Abs() @/job:w/task:1/device:GPU:0 {T=float32}");
  EXPECT_EQ(f.placement.node(f.graph["a"]), f.placement.node(f.graph["d"]));
  EXPECT_NE(f.placement.node(f.graph["a"]), f.placement.node(f.graph["b"]));
  EXPECT_NE(f.placement.node(f.graph["a"]), f.placement.node(f.graph["c"]));
  EXPECT_EQ(f.placement.devices().size(), 3);
  EXPECT_EQ(f.placement.devices()[0], "/job:w/task:1/device:GPU:0");
}

TEST(PlacementTest, AGraphWithoutAnyGpuHasOneWithoutName) {
  const Placed f("a = Abs() {T=float32}\nb = Abs() @/cpu:0 {T=float32}");
  ASSERT_EQ(f.placement.devices().size(), 1);
  EXPECT_EQ(f.placement.devices()[0], "");
  EXPECT_EQ(f.placement.node(f.graph["a"]), 0);
  EXPECT_EQ(f.placement.node(f.graph["b"]), kHostPlace);
}

TEST(PlacementTest, WhatHasNoGpuKernelIsOnTheHost) {
  const Placed f(
      "feed = Placeholder() {dtype=float32, shape=(2)}\n"
      "it = IteratorV2() @/gpu:0 {output_types=[float32], output_shapes=[(2)]}\n"
      "next = IteratorGetNext(it) @/gpu:0 {output_types=[float32], output_shapes=[(2)]}\n"
      "text = StringJoin() @/gpu:0 {N=0}\n"
      "steps = VariableV2() {dtype=int32, shape=()}\n"
      "read = Identity(steps) {T=int32}\n"
      "w = VariableV2() {dtype=float32, shape=(3)}\n"
      "handle = VarHandleOp() {dtype=int32, shape=()}\n"
      "count = ReadVariableOp(handle) {dtype=int32}\n");
  for (const char* node : {"feed", "it", "next", "text", "steps", "read", "handle", "count"}) {
    EXPECT_EQ(f.placement.node(f.graph[node]), kHostPlace) << node;
  }
  EXPECT_EQ(f.placement.node(f.graph["w"]), 0);
}

// Partition graphs of TensorFlow 2.15 have the same, both in sessions and in functions.
TEST(PlacementTest, ReadsAndUpdatesRunWhereTheVariableIs) {
  const Placed f(
      "x = Abs() @/gpu:0 {T=float32}\n"
      "near = Placeholder() @/cpu:0 {dtype=resource}\n"
      "far = VarHandleOp() @/gpu:1 {dtype=float32, shape=(2)}\n"
      "held = VariableV2() @/cpu:0 {dtype=float32, shape=(2)}\n"
      "read = ReadVariableOp(near) @/gpu:0 {dtype=float32}\n"
      "rows = ResourceGather(near, x) @/gpu:0 {dtype=float32, Tindices=int64}\n"
      "update = AssignSubVariableOp(near, x) @/gpu:0 {dtype=float32}\n"
      "add = AssignSub(held, x) @/gpu:0 {T=float32}\n"
      "far_read = ReadVariableOp(far) {dtype=float32}\n"
      "passed = Identity(far) {T=resource}\n"
      "far_update = AssignSubVariableOp(passed, x) @/cpu:0 {dtype=float32}\n"
      "copy = Identity(held) @/gpu:0 {T=float32}\n"  // Of the value: it has no reference.
      "call = PartitionedCall(near) {f=\"g\", Tin=[resource], Tout=[float32]}\n");
  for (const char* node : {"near", "read", "rows", "update", "held", "add"}) {
    EXPECT_EQ(f.placement.node(f.graph[node]), kHostPlace) << node;
  }
  EXPECT_EQ(f.placement.node(f.graph["copy"]), f.placement.Resolve("/gpu:0"));
  EXPECT_EQ(f.placement.node(f.graph["call"]), f.placement.Resolve("/gpu:0"));
  for (const char* node : {"far", "far_read", "passed", "far_update"}) {
    EXPECT_EQ(f.placement.node(f.graph[node]), f.placement.Resolve("/gpu:1")) << node;
  }
}

TEST(PlacementTest, ParameterServersHaveCpusUnlessTheGraphNamesAGpuOfTheirs) {
  const std::string text =
      "v = VarHandleOp() @/job:ps/task:0 {dtype=float32, shape=(2)}\n"
      "x = Abs() @/job:worker/task:0/gpu:0 {T=float32}\n"
      "read = ReadVariableOp(v) @/job:worker/task:0/gpu:0 {dtype=float32}\n"
      "free = Abs() @/job:chief/task:0 {T=float32}\n";
  const Placed f(text);
  EXPECT_EQ(f.placement.node(f.graph["v"]), kHostPlace);
  EXPECT_EQ(f.placement.node(f.graph["read"]), kHostPlace);
  EXPECT_NE(f.placement.node(f.graph["free"]), kHostPlace);
  const Placed with_gpu(text + "y = Abs() @/job:ps/task:0/gpu:0 {T=float32}\n");
  EXPECT_EQ(with_gpu.placement.node(with_gpu.graph["v"]),
            with_gpu.placement.Resolve("/job:ps/task:0/gpu:0"));
}

TEST(PlacementTest, Int32AndShapesLieInHostMemory) {
  const Placed f(std::string("x = Abs() {T=float32, _output_shapes=[(4,16)]}\n") +
                 "shape = Shape(x) {T=float32, out_type=int64}\n"
                 "dims = Const() {dtype=int32, _output_shapes=[(2)]}\n"
                 "labels = Cast(x) {SrcT=float32, DstT=int32, _output_shapes=[(4,16)]}\n"
                 "flag = Abs() {T=bool, _output_shapes=[()]}\n"
                 "sw = Switch(x, flag) {T=float32}\n"
                 "m = Merge(sw, sw:1) {N=2, T=float32}\n"
                 "take = GatherV2(x, labels, dims) {Tparams=float32, Tindices=int32, Taxis=int32}\n"
                 "v = VarHandleOp() {dtype=float32, shape=(3)}");
  EXPECT_EQ(f.OutputPlace("x"), 0);
  EXPECT_EQ(f.OutputPlace("shape"), kHostPlace);
  EXPECT_EQ(f.OutputPlace("dims"), kHostPlace);
  EXPECT_EQ(f.OutputPlace("labels"), 0);  // Cast computes them on the device.
  EXPECT_EQ(f.OutputPlace("flag"), 0);
  EXPECT_EQ(f.OutputPlace("m"), 0);
  EXPECT_EQ(f.OutputPlace("m:1"), kHostPlace);
  EXPECT_EQ(f.OutputPlace("v"), kNoMemory);
  const Placement& p = f.placement;
  EXPECT_EQ(p.input(f.graph["sw"], 1, f.graph.Output("flag")), kHostPlace);
  EXPECT_EQ(p.input(f.graph["sw"], 0, f.graph.Output("x")), 0);
  EXPECT_EQ(p.input(f.graph["take"], 1, f.graph.Output("labels")), 0);
  EXPECT_EQ(p.input(f.graph["take"], 2, f.graph.Output("dims")), kHostPlace);
}

TEST(PlacementTest, WhatIsFedIsOnTheHostWhateverItsOp) {
  v1::Step step;
  step.add_feeds()->set_name("fed");
  const Placed f("fed = Abs() {T=float32}\nfree = Abs() {T=float32}", step);
  EXPECT_EQ(f.placement.node(f.graph["fed"]), kHostPlace);
  EXPECT_EQ(f.placement.node(f.graph["free"]), 0);
}

// A device string that no node has still names one of the graph's GPUs, or none.
TEST(PlacementTest, ResolvesOtherSpellings) {
  const Placed f("a = Abs() @/job:w/task:1/device:GPU:3 {T=float32}");
  EXPECT_EQ(f.placement.Resolve("/job:w/replica:0/task:1/gpu:3"), 0);
  EXPECT_EQ(f.placement.Resolve("/job:w/task:1/device:CPU:0"), kHostPlace);
}

}  // namespace
}  // namespace spillway::core
