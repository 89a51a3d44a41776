#include "rewrite_core/strategy/order/step_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::TestGpuStep;

// 256 KiB each, so that workspaces and rounding do not matter.
#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"

TEST(StepOrderTest, SlotsUsesAndMemoryOfAChain) {
  const TestGpuStep step(
      "a = MatMul(x, x) " KIB_256
      "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "b = MatMul(a, a) " KIB_256 "c = Identity(b) " KIB_256 "d = MatMul(c, a) " KIB_256);
  const StepOrder& order = step.order;
  EXPECT_LT(step.SlotOf("a"), step.SlotOf("b"));
  EXPECT_LT(step.SlotOf("b"), step.SlotOf("d"));
  EXPECT_EQ(order.latest_before(step.SlotOf("d")), std::max(step.SlotOf("c"), step.SlotOf("b")));
  // a, b (which c forwards) and d.
  std::vector<int64_t> bytes;
  OrderBuffer of_a = kNoOrderBuffer, of_b = kNoOrderBuffer;
  for (OrderBuffer id(0); id < order.num_buffers(); ++id) {
    if (order.made(id) == step.SlotOf("a")) of_a = id;
    if (order.made(id) == step.SlotOf("b")) of_b = id;
  }
  ASSERT_GE(of_a, 0);
  ASSERT_GE(of_b, 0);
  EXPECT_EQ(order.bytes(of_a), 256 << 10);
  std::vector<Slot> uses;
  for (const StepOrder::Use& use : order.uses(of_a)) uses.push_back(use.slot);
  EXPECT_THAT(uses, ElementsAre(step.SlotOf("b"), step.SlotOf("b"), step.SlotOf("d")));
  EXPECT_EQ(order.uses(of_b).back().slot, step.SlotOf("d"));
}

// They follow the buffers that are made on the GPU.
TEST(StepOrderTest, WhatIsCopiedInIsABuffer) {
  const TestGpuStep step(
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "w = Placeholder() @/cpu:0 {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "a = MatMul(x, w) @/gpu:0 " KIB_256 "b = MatMul(a, a) @/gpu:0 " KIB_256
      "c = MatMul(b, w) @/gpu:0 " KIB_256);
  const StepOrder& order = step.order;
  ASSERT_EQ(order.num_all(), order.num_buffers() + 2);  // x is fed from the host, too.
  const OrderBuffer copy = order.Find(step.graph.Output("w"));
  EXPECT_TRUE(order.is_copied_in(copy));
  EXPECT_FALSE(order.is_copied_in(order.Find(step.graph.Output("a"))));
  EXPECT_EQ(order.bytes(copy), 256 << 10);
  std::vector<Slot> uses;
  for (const StepOrder::Use& use : order.uses(copy)) uses.push_back(use.slot);
  EXPECT_THAT(uses, ElementsAre(step.SlotOf("a"), step.SlotOf("c")));
}

// Launching runs ahead of the copy: over a slow link it ends after the last launch, over this one
// among the launches.
TEST(StepOrderTest, WhatIsCopiedToTheHostIsHeldForSoLong) {
  std::string graph =
      "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "a = MatMul(x, x) " KIB_256
      "h = Identity(a) @/cpu:0 {T=float32, _output_shapes=[(256,256)]}\n"
      "b0 = MatMul(x, x) " KIB_256;
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&graph, "b", i + 1, " = MatMul(b", i, ", x) ", KIB_256);
  }
  for (const double bytes_per_s : {1e6, 2e9}) {
    v1::Step options;
    options.mutable_hardware()->set_d2h_bytes_per_s(bytes_per_s);
    const TestGpuStep step(graph, options);
    int64_t end_ns = 0;
    for (size_t i = 0; i < step.unswapped.ops.size(); ++i) {
      if (step.unswapped.ops[i].kind != OpKind::kCopyOut) continue;
      end_ns = step.unswapped.launch_ahead.times[i].end_ns;
    }
    const StepOrder& order = step.order;
    int launched_before = 0, launched_after = 0;
    for (OrderBuffer id(0); id < order.num_buffers(); ++id) {
      if (order.made(id) != step.SlotOf("a")) {
        EXPECT_EQ(order.copied_until(id), kNoSlot) << id.value();
        continue;
      }
      for (Slot slot(0); slot < order.num_slots(); ++slot) {
        const bool is_before = order.given_ns(slot) < end_ns;
        (is_before ? launched_before : launched_after) += 1;
        EXPECT_EQ(is_before, slot <= order.copied_until(id)) << slot.value();
      }
    }
    EXPECT_GT(launched_before, 1);
    EXPECT_EQ(launched_after > 0, bytes_per_s > 1e6);
  }
}

// A buffer read through two inputs has two holders, so no output takes it over.
TEST(StepOrderTest, AnInputIsTakenOverByItsOnlyReader) {
  const TestGpuStep step(
      "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
      "a = MatMul(x, x) " KIB_256 "b = ReluGrad(a, x) " KIB_256 "c = ReluGrad(b, b) " KIB_256);
  const std::vector<int64_t>& live = step.order.live_bytes();
  EXPECT_EQ(live[step.SlotOf("a")], 2 * (256 << 10));  // x and a.
  EXPECT_EQ(live[step.SlotOf("b")], 2 * (256 << 10));  // x, and b in the place of a.
  EXPECT_EQ(live[step.SlotOf("c")], 2 * (256 << 10));  // b, and c beside it.
}

// The simulator counts memory independently, launch by launch.
class StepOrderOfGraphTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StepOrderOfGraphTest, TheMostInUseIsTheSimulatorsPeak) {
  v1::Step options;
  options.set_batch_size(8);
  const TestGpuStep step(testing::TestGraph::FromBytes(testing::ReadTestGraph(GetParam())),
                         options);
  const std::vector<int64_t>& live = step.order.live_bytes();
  const int64_t most = *std::max_element(live.begin(), live.end());
  const int64_t peak = step.unswapped.launch_ahead.devices[0].peak_bytes;
  // Buffers copied to the host are also held for the copy. Whether an output takes over an input is
  // decided by one rule here, and at the time of execution there.
  EXPECT_NEAR(static_cast<double>(most), static_cast<double>(peak), 0.05 * peak);
}

INSTANTIATE_TEST_SUITE_P(All, StepOrderOfGraphTest,
                         ::testing::Values("resnet50_tf1_b4/graph_shapes.pb",
                                           "resnet50_free/graph.pb", "bert_tiny/graph.pb",
                                           "unet3d_s16/graph.pb"),
                         [](const auto& file) {
                           return file.param.substr(0, file.param.find('/'));
                         });

TEST(StepOrderTest, TheNextFarWaitIsThatOfALookAtEachSlot) {
  testing::TrainingGraphOptions graph;
  graph.nodes = 900;
  const TestGpuStep step(testing::TestGraph::FromBytes(testing::MakeTrainingGraph(graph)));
  const StepOrder& order = step.order;
  int found = 0;
  for (Slot from(0); from <= order.num_slots() + 7; from = Slot(from + 7)) {
    for (Slot before(0); before <= order.num_slots() + 11; before = Slot(before + 11)) {
      Slot slot = from;
      while (slot < order.num_slots() &&
             (order.latest_before(slot) >= slot - 1 || order.latest_before(slot) >= before)) {
        ++slot;
      }
      ASSERT_EQ(order.NextFarWait(from, before), std::min(slot, order.num_slots()))
          << from << " " << before;
      found += slot < order.num_slots();
    }
  }
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace spillway::core
