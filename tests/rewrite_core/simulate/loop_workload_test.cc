// The cost of loops in a step: operations as long as all iterations, and lists that keep tensors of
// all iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/simulate/workload_builder.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestStep;
using testing::ValueOrDie;

// A launch takes 1 ns, and nothing else in a kernel takes time.
v1::Step Options(const std::vector<std::string>& targets, int64_t count) {
  v1::Step options;
  v1::Hardware& hardware = *options.mutable_hardware();
  hardware.set_peak_flops(1e300);
  hardware.set_mem_bytes_per_s(1e300);
  hardware.set_launch_s(1e-9);
  for (const std::string& target : targets) options.add_targets(target);
  for (const char* loop : {"f", "b"}) {
    if (count == 0) continue;
    v1::LoopCount& given = *options.add_loop_counts();
    given.set_name(loop);
    given.set_count(count);
  }
  return options;
}

// A tensor of 256 bytes goes through a loop, which keeps a value of each iteration for a second
// loop: `keep` are nodes that write the body's `kept`, and `take` those that make `taken` from it.
std::string TwoLoops(const std::string& outside, const std::string& keep, const std::string& take) {
  const auto loop = [](const std::string& p, const std::string& from, const std::string& body) {
    const std::string frame = absl::StrCat(", frame_name=\"", p, "\"");
    return absl::StrCat(
        p, "e = Enter(", from, ") {T=float32", frame, "}\n",                                  //
        p, "m = Merge(", p, "e, ", p, "n) {N=2, T=float32, _output_shapes=[(8,8),()]}\n",     //
        p, "cond = LoopCond(", p, "c)\n",                                                     //
        p, "c = Const(^", p, "m) @/cpu:0 {dtype=bool, _output_shapes=[()]}\n",                //
        p, "sw = Switch(", p, "m, ", p, "cond) {T=float32, _output_shapes=[(8,8),(8,8)]}\n",  //
        body,                                                                                 //
        p, "x = Exit(", p, "sw) {T=float32, _output_shapes=[(8,8)]}\n");
  };
  return absl::StrCat(
      "x = Abs() {T=float32, _output_shapes=[(8,8)]}\n", outside,
      loop("f", "x",
           absl::StrCat("h = MatMul(fsw:1, fsw:1) {T=float32, _output_shapes=[(8,8)]}\n", keep,
                        "fb = MatMul(h, h) {T=float32, _output_shapes=[(8,8)]}\n"
                        "fn = NextIteration(fb) {T=float32, _output_shapes=[(8,8)]}\n")),
      "middle = MatMul(fx, fx) {T=float32, _output_shapes=[(8,8)]}\n",
      loop("b", "middle",
           absl::StrCat(take,
                        "g = MatMul(bsw:1, taken) {T=float32, _output_shapes=[(8,8)]}\n"
                        "bn = NextIteration(g) {T=float32, _output_shapes=[(8,8)]}\n")));
}

// By a stack, as tf.gradients has it: the value that the body makes,
const std::string kStack =
    "max = Const() {dtype=int32, _output_shapes=[()]}\n"
    "stack = StackV2(max) {elem_type=float32}\n"
    "fstack = Enter(stack) {T=resource, frame_name=\"f\"}\n"
    "bstack = Enter(stack) {T=resource, frame_name=\"b\"}\n";
const std::string kPush = "push = StackPushV2(fstack, h) {T=float32}\n";
const std::string kPop =
    "sync = Identity(bsw:1) {T=float32, _output_shapes=[(8,8)]}\n"
    "taken = StackPopV2(bstack, ^sync) {elem_type=float32}\n";
// or the one that the iteration before made.
const std::string kPushVariable = "push = StackPushV2(fstack, fsw:1) {T=float32}\n";
// By a list in a loop variable, as functional loops have it.
const std::string kList =
    "shape = Const() {dtype=int32, _output_shapes=[()]}\n"
    "list = EmptyTensorList(shape, max) {element_dtype=float32, shape_type=int32}\n"
    "max = Const() {dtype=int32, _output_shapes=[()]}\n"
    "fl = Enter(list) {T=variant, frame_name=\"f\"}\n"
    "flm = Merge(fl, fln) {N=2, T=variant}\n"
    "fls = Switch(flm, fcond) {T=variant}\n"
    "flx = Exit(fls) {T=variant}\n"
    "bl = Enter(flx) {T=variant, frame_name=\"b\"}\n"
    "blm = Merge(bl, bln) {N=2, T=variant}\n"
    "bls = Switch(blm, bcond) {T=variant}\n"
    "bshape = Enter(shape) {T=int32, is_constant=true, frame_name=\"b\"}\n";
const std::string kPushBack =
    "push = TensorListPushBack(fls:1, h) {element_dtype=float32}\n"
    "fln = NextIteration(push) {T=variant}\n";
const std::string kPopBack =
    "pop = TensorListPopBack(bls:1, bshape) {element_dtype=float32}\n"
    "bln = NextIteration(pop) {T=variant}\n"
    "taken = Identity(pop:1) {T=float32, _output_shapes=[(8,8)]}\n";
// By a TensorArray.
const std::string kArray =
    "size = Const() {dtype=int32, _output_shapes=[()]}\n"
    "array = TensorArrayV3(size) {dtype=float32, element_shape=(8,8)}\n"
    "fhandle = Enter(array) {T=resource, frame_name=\"f\"}\n"
    "ff = Enter(array:1) {T=float32, frame_name=\"f\"}\n"
    "ffm = Merge(ff, ffn) {N=2, T=float32}\n"
    "ffs = Switch(ffm, fcond) {T=float32}\n"
    "ffx = Exit(ffs) {T=float32}\n"
    "bhandle = Enter(array) {T=resource, frame_name=\"b\"}\n"
    "bf = Enter(ffx) {T=float32, frame_name=\"b\"}\n"
    "fat = Enter(size) {T=int32, is_constant=true, frame_name=\"f\"}\n"
    "bat = Enter(size) {T=int32, is_constant=true, frame_name=\"b\"}\n";
const std::string kWrite =
    "push = TensorArrayWriteV3(fhandle, fat, h, ffs:1) {T=float32}\n"
    "ffn = NextIteration(push) {T=float32}\n";
const std::string kReadBack = "taken = TensorArrayReadV3(bhandle, bat, bf) {dtype=float32}\n";

const Buffers::Buffer& BufferOf(const TestStep& step, absl::string_view tensor) {
  const Buffers& buffers = step.facts.buffers();
  return buffers.buffers()[buffers.buffer_of(step.graph.Output(tensor))];
}

// Returns the loops at whose ends a buffer is still held, by the names of their NextIterations.
std::vector<std::string> EndsThatHold(const TestStep& step, absl::string_view tensor) {
  const Buffers& buffers = step.facts.buffers();
  std::vector<std::string> ends;
  for (NodeId id(0); id < step.graph->num_nodes(); ++id) {
    for (Tensor held : buffers.held(id)) {
      if (buffers.buffer_of(held) == buffers.buffer_of(step.graph.Output(tensor))) {
        ends.emplace_back(step.graph->name(id));
      }
    }
  }
  return ends;
}

struct KeepCase {
  std::string name, outside, keep, take;
  std::string held;  // The value kept for each iteration.
};

class KeptInLoopsTest : public ::testing::TestWithParam<KeepCase> {};

TEST_P(KeptInLoopsTest, OncePerIteration) {
  const KeepCase& c = GetParam();
  const std::string text = TwoLoops(c.outside, c.keep, c.take);
  const TestStep step(text, Options({"bx", "push"}, 5));
  EXPECT_EQ(step.facts.buffers().buffer_of(step.graph.Output("taken")),
            step.facts.buffers().buffer_of(step.graph.Output(c.held)));
  EXPECT_EQ(BufferOf(step, c.held).copies, 5);
  EXPECT_TRUE(BufferOf(step, c.held).in_list);
  EXPECT_EQ(BufferOf(step, "middle").copies, 1);
  // A loop's results come from its last iteration.
  EXPECT_EQ(step.facts.buffers().buffer_of(step.graph.Output("fx")),
            step.facts.buffers().buffer_of(step.graph.Output("fb")));
  // The second loop takes an element in each iteration, and holds the others until its end. (An
  // array is not a loop variable; its flow is.)
  if (c.name != "TensorArray") {
    EXPECT_THAT(EndsThatHold(step, c.held), ::testing::Contains("bn"));
  }
  WorkloadNotes notes;
  const Workload workload = step.Build(nullptr, &notes);
  EXPECT_EQ(notes.loops, 0);
  EXPECT_TRUE(notes.unknown.nodes.empty());
  int64_t held = 0;
  for (const WorkloadBuffer& buffer : workload.buffers) {
    if (!(buffer.tensor == BufferOf(step, c.held).first)) continue;
    held += buffer.bytes;
    EXPECT_TRUE(buffer.stays);
  }
  EXPECT_EQ(held, 5 * 256);
  for (const WorkloadOp& op : workload.ops) {
    const absl::string_view name = step.graph->name(op.node);
    if (name == "h" || name == "g" || name == "fb") {
      EXPECT_EQ(op.duration_ns, 5) << name;
    } else if (name == "middle") {
      EXPECT_EQ(op.duration_ns, 1);
    }
  }
  // It is live while the middle runs; the body's last tensor is before that.
  const SimulationResult result = ValueOrDie(Simulate(workload, {}, {}), "simulation");
  EXPECT_GE(result.devices[0].peak_bytes, 5 * 256 + 2 * 256);
  EXPECT_EQ(result.step_time_ns, 1 + 5 + 5 + 1 + 5);
}

TEST_P(KeptInLoopsTest, ManyIterationsAreNoMoreOperations) {
  const KeepCase& c = GetParam();
  const std::string text = TwoLoops(c.outside, c.keep, c.take);
  const Workload few = TestStep(text, Options({"bx", "push"}, 10)).Build();
  const Workload many = TestStep(text, Options({"bx", "push"}, 1'000'000'000)).Build();
  EXPECT_EQ(few.ops.size(), many.ops.size());
  const SimulationResult result = ValueOrDie(Simulate(many, {}, {}), "simulation");
  EXPECT_GE(result.devices[0].peak_bytes, 256 * int64_t{1'000'000'000});
}

TEST_P(KeptInLoopsTest, IsUnknownWithoutACount) {
  const KeepCase& c = GetParam();
  const TestStep step(TwoLoops(c.outside, c.keep, c.take), Options({"bx", "push"}, 0));
  WorkloadNotes notes;
  step.Build(nullptr, &notes);
  EXPECT_GT(notes.loops, 0);
  const auto causes = DescribeUnknown(*step.graph, notes.unknown, absl::nullopt);
  ASSERT_EQ(causes.size(), 1);
  EXPECT_EQ(causes[0].cause(), v1::FIT_UNKNOWN_CAUSE_LOOPS);
  EXPECT_EQ(causes[0].count(), 1);
  EXPECT_THAT(causes[0].message(), ::testing::HasSubstr("one such loop is 'f'"));
}

INSTANTIATE_TEST_SUITE_P(Loops, KeptInLoopsTest,
                         ::testing::Values(KeepCase{"Stack", kStack, kPush, kPop, "h"},
                                           KeepCase{"StackOfALoopVariable", kStack, kPushVariable,
                                                    kPop, "fb"},
                                           KeepCase{"TensorList", kList, kPushBack, kPopBack, "h"},
                                           KeepCase{"TensorArray", kArray, kWrite, kReadBack, "h"}),
                         testing::CaseName());

// The memory of a loop that keeps nothing is known although its count is not.
TEST(LoopWorkloadTest, ALoopThatKeepsNothing) {
  const TestStep step(TwoLoops("other = Abs() {T=float32, _output_shapes=[(8,8)]}\n", "",
                               "taken = Enter(other) {T=float32, frame_name=\"b\"}\n"),
                      Options({"bx"}, 0));
  WorkloadNotes notes;
  step.Build(nullptr, &notes);
  EXPECT_GT(notes.loops, 0);
  EXPECT_TRUE(notes.unknown.nodes.empty());
}

// A weight that enters the loop is in memory once, however often it is pushed.
TEST(LoopWorkloadTest, WhatDoesNotChangeIsKeptOnce) {
  const TestStep step(TwoLoops(absl::StrCat(kStack,
                                            "w = Abs() {T=float32, _output_shapes=[(8,8)]}\n"
                                            "fw = Enter(w) {T=float32, is_constant=true, "
                                            "frame_name=\"f\"}\n"),
                               "push = StackPushV2(fstack, fw) {T=float32}\n", kPop),
                      Options({"bx", "push"}, 5));
  EXPECT_EQ(BufferOf(step, "w").copies, 1);
  EXPECT_EQ(step.facts.buffers().buffer_of(step.graph.Output("taken")),
            step.facts.buffers().buffer_of(step.graph.Output("w")));
}

// Rows that are written to an array together are all in memory, also outside of loops.
TEST(LoopWorkloadTest, AnArrayOfRows) {
  const TestStep step(
      "x = Abs() {T=float32, _output_shapes=[(7,64)]}\n"
      "size = Const() {dtype=int32, _output_shapes=[()]}\n"
      "at = Const() {dtype=int32, _output_shapes=[(7)]}\n"
      "array = TensorArrayV3(size) {dtype=float32, element_shape=(64)}\n"
      "flow = TensorArrayScatterV3(array, at, x, array:1) {T=float32}\n"
      "row = TensorArrayReadV3(array, size, flow) {dtype=float32}\n",
      Options({"row"}, 0));
  EXPECT_EQ(BufferOf(step, "flow").bytes, 7 * 64 * 4);
  EXPECT_EQ(step.facts.buffers().bytes(step.graph.Output("flow")), 4);
  EXPECT_EQ(step.facts.buffers().buffer_of(step.graph.Output("row")),
            step.facts.buffers().buffer_of(step.graph.Output("flow")));
}

}  // namespace
}  // namespace spillway::core
