#include "rewrite_core/simulate/step_simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/core_test_util.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using testing::TestStep;
using testing::ValueOrDie;

constexpr int64_t kStepKiB = 1024;

// A kernel takes 1 ns and is launched 1 ns after the previous one; a copy takes 1000 ns and 1 ns
// (out) or 2 ns (in) per byte.
v1::Step Machine() {
  v1::Step step;
  v1::Hardware& hardware = *step.mutable_hardware();
  hardware.set_peak_flops(1e300);
  hardware.set_mem_bytes_per_s(1e300);
  hardware.set_launch_s(1e-9);
  hardware.set_copy_latency_s(1e-6);
  hardware.set_d2h_bytes_per_s(1e9);
  hardware.set_h2d_bytes_per_s(0.5e9);
  step.add_targets("e");
  step.add_targets("late");
  return step;
}

// 64 KiB each except `c`, which is twice as large; `a` is needed again at the end. `late` launches
// no kernel; `p` does not run.
constexpr char kChain[] =
    "a = Abs() {T=float32, _output_shapes=[(128,128)]}\n"
    "b = MatMul(a, a) {T=float32, _output_shapes=[(128,128)]}\n"
    "c = MatMul(b, b) {T=float32, _output_shapes=[(128,256)]}\n"
    "d = MatMul(c, c) {T=float32, _output_shapes=[(128,128)]}\n"
    "p = NoOp()\n"
    "e = MatMul(d, a) {T=float32, _output_shapes=[(128,128)]}\n"
    "late = NoOp()";
// Copies of 64 KiB.
constexpr int64_t kOutNs = 1000 + 64 * kStepKiB;
constexpr int64_t kInNs = 1000 + 2 * 64 * kStepKiB;

class StepSimulatorTest : public ::testing::Test {
 protected:
  explicit StepSimulatorTest(v1::Step options = Machine())
      : step_(kChain, std::move(options)),
        simulator_(ValueOrDie(StepSimulator::Create(step_.facts, {}), "simulator")) {}

  NodeId Node(const char* name) const { return step_.graph[name]; }
  // `a` is absent from the end of its copy out, for which `c` waits, until `d` is done.
  SwapPlan Swapped() const {
    PlannedSwap swap;
    swap.tensor = step_.graph.Output("a");
    swap.swap_ins.push_back({{{Node("e"), 1}}, {Node("d")}});
    swap.deadlines = {Node("c")};
    SwapPlan plan;
    plan.swaps = {std::move(swap)};
    return plan;
  }
  StepResult Run(const SwapPlan& plan, const StepTerms& terms) {
    return ValueOrDie(simulator_->Simulate(plan, terms, {}), "step");
  }
  static OpTimes TimesOf(const StepResult& result, const SimulationResult& mode, OpKind kind,
                         NodeId node, int swap_in = -1) {
    for (size_t i = 0; i < result.ops.size(); ++i) {
      const WorkloadOp& op = result.ops[i];
      if (op.kind == kind && op.node == node && op.swap_in == swap_in) return mode.times[i];
    }
    ADD_FAILURE() << "no such operation";
    return {};
  }

  const TestStep step_;
  const std::unique_ptr<StepSimulator> simulator_;
};

TEST_F(StepSimulatorTest, TheStepAsItIs) {
  const StepResult result = Run(SwapPlan(), StepTerms());
  EXPECT_TRUE(result.fits);
  EXPECT_TRUE(result.is_unlimited);
  EXPECT_FALSE(result.is_placed);
  EXPECT_EQ(result.step_time_ns(), 5);
  EXPECT_EQ(result.synchronous_step_time_ns(), 5);
  EXPECT_EQ(result.peak_bytes(GpuIndex(0)), 256 * kStepKiB);  // a, b and c.
  EXPECT_EQ(result.launch_ahead.devices[0].peak_node, Node("c"));
  EXPECT_EQ(result.resident_bytes(GpuIndex(0)), 0);
  EXPECT_EQ(result.failure(), nullptr);
  // No times were requested.
  EXPECT_TRUE(result.ops.empty());
  EXPECT_TRUE(result.launch_ahead.order.empty());
  EXPECT_TRUE(result.launch_ahead.times.empty());
  EXPECT_TRUE(result.launch_ahead.devices[0].timeline.empty());
}

TEST_F(StepSimulatorTest, ASwap) {
  StepTerms terms;
  terms.record_operations = terms.record_memory = true;
  const StepResult result = Run(Swapped(), terms);
  EXPECT_TRUE(result.fits);
  EXPECT_EQ(result.peak_bytes(GpuIndex(0)), 192 * kStepKiB);  // b and c, c and d, or d, a and e.
  // a; its copy; c and d; the copy back; e.
  const int64_t away_ns = 1 + kOutNs, back_ns = away_ns + 2 + kInNs;
  for (const SimulationResult* mode : {&result.launch_ahead, &result.synchronous}) {
    EXPECT_EQ(mode->step_time_ns, back_ns + 1);
    EXPECT_EQ(mode->devices[0].copy_out_bytes, 64 * kStepKiB);
    EXPECT_EQ(mode->devices[0].copy_in_ns, kInNs);
    EXPECT_EQ(mode->host_peak_bytes, 64 * kStepKiB);
    const OpTimes out = TimesOf(result, *mode, OpKind::kCopyOut, Node("a"));
    EXPECT_EQ(out.start_ns, 1);
    EXPECT_EQ(out.end_ns, away_ns);
    EXPECT_EQ(TimesOf(result, *mode, OpKind::kCompute, Node("c")).given_ns, away_ns);
    const OpTimes in = TimesOf(result, *mode, OpKind::kCopyIn, Node("a"), /*swap_in=*/0);
    EXPECT_EQ(in.start_ns, away_ns + 2);
    EXPECT_EQ(in.end_ns, back_ns);
    std::vector<std::string> order;
    for (OpId id : mode->order) order.emplace_back(step_.graph->name(result.ops[id].node));
    EXPECT_THAT(order, ::testing::ElementsAre("a", "late", "b", "c", "d", "e"));
    std::vector<NodeId> alive;
    for (BufferId id : mode->devices[0].at_peak) alive.push_back(result.buffers[id].tensor.node);
    EXPECT_THAT(alive, ::testing::ElementsAre(Node("b"), Node("c")));
    EXPECT_FALSE(mode->devices[0].timeline.empty());
  }
  // And the step is unchanged.
  EXPECT_EQ(Run(SwapPlan(), StepTerms()).step_time_ns(), 5);
  EXPECT_EQ(Run(Swapped(), StepTerms()).step_time_ns(), back_ns + 1);
}

// An operation that would start right after `a` waits until the copy back may start.
TEST_F(StepSimulatorTest, APaceEdge) {
  SwapPlan plan = Swapped();
  StepTerms terms;
  terms.record_operations = true;
  StepResult result = Run(plan, terms);
  EXPECT_EQ(TimesOf(result, result.launch_ahead, OpKind::kCompute, Node("late")).given_ns, 1);
  plan.swaps[0].swap_ins[0].paces = {Node("late")};
  result = Run(plan, terms);
  for (const SimulationResult* mode : {&result.launch_ahead, &result.synchronous}) {
    EXPECT_EQ(TimesOf(result, *mode, OpKind::kCompute, Node("late")).given_ns, 1 + kOutNs + 2);
  }
}

// The trigger `b` is done long before the copy out, and `c` waits for the swap-in: when the copy
// out ends, the copy back is issued, and does not wait for `c`.
TEST_F(StepSimulatorTest, APaceEdgeLetsTheCopyGoFirst) {
  SwapPlan plan = Swapped();
  plan.swaps[0].deadlines.clear();
  plan.swaps[0].swap_ins[0].triggers = {Node("b")};
  plan.swaps[0].swap_ins[0].paces = {Node("c")};
  StepTerms terms;
  terms.record_operations = true;
  const StepResult result = Run(plan, terms);
  for (const SimulationResult* mode : {&result.launch_ahead, &result.synchronous}) {
    const OpTimes in = TimesOf(result, *mode, OpKind::kCopyIn, Node("a"), /*swap_in=*/0);
    EXPECT_EQ(in.start_ns, 1 + kOutNs);
    EXPECT_EQ(TimesOf(result, *mode, OpKind::kCompute, Node("c")).start_ns, 1 + kOutNs);
  }
}

TEST_F(StepSimulatorTest, TooLittleMemory) {
  StepTerms terms = StepTerms::OneGpu(GpuIndex(0), 192 * kStepKiB - 256);
  terms.unlimited_if_unfit = true;
  const StepResult result = Run(Swapped(), terms);
  EXPECT_FALSE(result.fits);
  EXPECT_FALSE(result.has_synchronous);
  ASSERT_NE(result.failure(), nullptr);
  EXPECT_EQ(result.failure()->node, Node("c"));
  EXPECT_FALSE(result.failure()->fragmented);
  EXPECT_EQ(result.failure()->requested_bytes, 128 * kStepKiB);
  EXPECT_EQ(result.failure()->in_use_bytes, 64 * kStepKiB);
  EXPECT_EQ(result.failure()->missing_bytes, 256);
  EXPECT_EQ(result.step_time_ns(), 0);
  ASSERT_TRUE(result.unlimited.has_value());
  EXPECT_EQ(result.unlimited->synchronous.devices[0].peak_bytes, 192 * kStepKiB);
  terms.always_synchronous = true;
  EXPECT_TRUE(Run(Swapped(), terms).has_synchronous);
}

// 192 KiB are enough for b and c by bytes, but b lies between the former place of a and the end,
// with 64 KiB on either side.
TEST_F(StepSimulatorTest, MemoryInPieces) {
  StepTerms terms = StepTerms::AllGpus(192 * kStepKiB);
  const StepResult placed = Run(Swapped(), terms);
  EXPECT_TRUE(placed.is_placed);
  EXPECT_FALSE(placed.fits);
  ASSERT_NE(placed.failure(), nullptr);
  EXPECT_EQ(placed.failure()->node, Node("c"));
  EXPECT_TRUE(placed.failure()->fragmented);
  EXPECT_EQ(placed.failure()->missing_bytes, 64 * kStepKiB);
  terms.place = false;
  EXPECT_TRUE(Run(Swapped(), terms).fits);
  // c fits behind b in 256 KiB; budgets grow by 1/32.
  auto need = FindNeed(simulator_.get(), Swapped(), StepTerms::AllGpus(0), 192 * kStepKiB, {});
  ASSERT_TRUE(need.ok());
  EXPECT_GE(*need, 256 * kStepKiB);
  EXPECT_LE(*need, 264 * kStepKiB);
}

TEST_F(StepSimulatorTest, WhatLiesWhereItRanOut) {
  StepTerms terms = StepTerms::AllGpus(192 * kStepKiB);
  EXPECT_TRUE(Run(Swapped(), terms).pieces.empty()) << "nobody asked";
  terms.record_pieces = true;
  for (bool placed_alone : {false, true}) {
    terms.placed_alone = placed_alone;
    const StepResult result = Run(Swapped(), terms);
    EXPECT_EQ(result.piece_bytes, 128 * kStepKiB);
    EXPECT_EQ(result.failure()->missing_bytes, 64 * kStepKiB);
    ASSERT_EQ(result.pieces.size(), 3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(result.pieces[i].address, i * 64 * kStepKiB);
      EXPECT_EQ(result.pieces[i].bytes, 64 * kStepKiB);
      EXPECT_EQ(result.pieces[i].tensor.node, i == 1 ? Node("b") : kNoNode);
    }
  }
}

TEST_F(StepSimulatorTest, WhatIsSmallIsNotPlaced) {
  EXPECT_TRUE(Run(Swapped(), StepTerms::AllGpus(4 * 192 * kStepKiB - 4)).is_placed);
  EXPECT_FALSE(Run(Swapped(), StepTerms::AllGpus(4 * 192 * kStepKiB)).is_placed);
}

TEST_F(StepSimulatorTest, PlacedAlone) {
  const auto run = [&](int64_t budget, int64_t cutoff_ns, bool always_synchronous) {
    StepTerms terms = StepTerms::AllGpus(budget);
    terms.placed_alone = true;
    terms.cutoff_ns = cutoff_ns;
    terms.always_synchronous = always_synchronous;
    const StepResult result = Run(Swapped(), terms);
    EXPECT_TRUE(result.is_placed);
    return result;
  };
  // Fragmented, as above; and too little memory in bytes.
  for (const int64_t budget : {192 * kStepKiB, 192 * kStepKiB - 256}) {
    const StepResult result = run(budget, kUnlimited, false);
    EXPECT_FALSE(result.fits);
    EXPECT_FALSE(result.is_partial);
    EXPECT_FALSE(result.has_synchronous);
    ASSERT_NE(result.failure(), nullptr);
    EXPECT_EQ(result.failure()->node, Node("c"));
    EXPECT_EQ(result.failure()->fragmented, budget == 192 * kStepKiB);
    EXPECT_TRUE(run(budget, kUnlimited, true).has_synchronous);
  }
  // 256 KiB are enough. In 4 MiB a step is small.
  const int64_t time_ns = Run(Swapped(), StepTerms()).step_time_ns();
  for (const int64_t budget : {256 * kStepKiB, 4096 * kStepKiB}) {
    StepResult result = run(budget, time_ns, false);
    EXPECT_TRUE(result.fits);
    EXPECT_TRUE(result.has_synchronous);
    EXPECT_TRUE(result.is_unlimited);
    EXPECT_EQ(result.step_time_ns(), time_ns);
    result = run(budget, time_ns - 1, false);
    EXPECT_FALSE(result.fits);
    EXPECT_TRUE(result.is_partial);
    EXPECT_FALSE(result.has_synchronous);
    EXPECT_EQ(result.step_time_ns(), time_ns);
    result = run(budget, time_ns - 1, true);
    EXPECT_TRUE(result.fits);
    EXPECT_FALSE(result.is_partial);
  }
}

TEST_F(StepSimulatorTest, VariedCopies) {
  StepTerms terms;
  terms.unlimited_if_unfit = true;
  for (const int32_t percent : {50, 100, 300}) {
    terms.variation.copy_percent = percent;
    // As in ASwap: a; its copy; c and d; the copy back; e.
    const int64_t time_ns = 1 + kOutNs * percent / 100 + 2 + kInNs * percent / 100 + 1;
    EXPECT_EQ(Run(Swapped(), terms).step_time_ns(), time_ns);
    StepTerms tight = StepTerms::AllGpus(1);
    tight.unlimited_if_unfit = true;
    tight.variation = terms.variation;
    const StepResult unfit = Run(Swapped(), tight);
    ASSERT_TRUE(unfit.unlimited.has_value());
    EXPECT_EQ(unfit.unlimited->launch_ahead.step_time_ns, time_ns);
    EXPECT_EQ(unfit.unlimited->synchronous.step_time_ns, time_ns);
  }
}

TEST_F(StepSimulatorTest, SlowerThanTheCutoff) {
  StepTerms terms = StepTerms::AllGpus(1 << 20);
  const int64_t time_ns = Run(Swapped(), terms).step_time_ns();
  terms.cutoff_ns = time_ns - 1;
  const StepResult result = Run(Swapped(), terms);
  EXPECT_TRUE(result.is_partial);
  EXPECT_FALSE(result.fits);
  EXPECT_FALSE(result.has_synchronous);
  EXPECT_EQ(result.step_time_ns(), time_ns);
  terms.cutoff_ns = time_ns;
  EXPECT_TRUE(Run(Swapped(), terms).fits);
}

// Not a node that runs, so its step is built again.
TEST_F(StepSimulatorTest, ATriggerThatDidNotRun) {
  SwapPlan plan = Swapped();
  plan.swaps[0].swap_ins[0].triggers = {Node("p")};
  StepTerms terms;
  terms.record_operations = true;
  const StepResult result = Run(plan, terms);
  EXPECT_GE(TimesOf(result, result.launch_ahead, OpKind::kCompute, Node("p")).given_ns, 0);
  // The copy back follows the copy to the host.
  EXPECT_EQ(TimesOf(result, result.launch_ahead, OpKind::kCopyIn, Node("a"), 0).given_ns,
            1 + kOutNs);
}

TEST_F(StepSimulatorTest, LowerBoundsAreThoseOfTheUnswappedStep) {
  for (const bool simulated_before : {false, true}) {
    if (simulated_before) Run(SwapPlan(), StepTerms());
    auto bounds = simulator_->LowerBounds(StopToken());
    ASSERT_TRUE(bounds.ok()) << bounds.status();
    ASSERT_EQ(bounds->size(), 1u);
    EXPECT_EQ((*bounds)[0].memory_bytes, 192 * kStepKiB);  // b and c, or d, a and e.
    EXPECT_EQ((*bounds)[0].step_time_ns, 5);
  }
}

// Two chains of two kernels with 64 KiB in between; the second kernel writes as much.
constexpr char kTwoChains[] =
    "p = Abs() {T=float32, _output_shapes=[(128,128)]}\n"
    "p2 = MatMul(p, p) {T=float32, _output_shapes=[(128,128)]}\n"
    "q = Abs() {T=float32, _output_shapes=[(128,128)]}\n"
    "q2 = MatMul(q, q) {T=float32, _output_shapes=[(128,128)]}";

TEST(StepSimulatorOrderTest, AVariedOrderIsNotTheStepsOwn) {
  v1::Step options = Machine();
  options.clear_targets();
  for (const char* target : {"p2", "q2"}) options.add_targets(target);
  options.mutable_hardware()->set_gpu_memory_bytes(128 * kStepKiB);
  options.mutable_hardware()->set_allocator_reserve(0);
  const TestStep step(kTwoChains, options);
  auto simulator = ValueOrDie(StepSimulator::Create(step.facts, {}), "simulator");
  StepTerms terms;
  terms.record_operations = true;
  terms.variation.ready_order = ReadyOrder::kLastReady;
  const StepResult last = ValueOrDie(simulator->Simulate(SwapPlan(), terms, {}), "step");
  EXPECT_THAT(last.launch_ahead.order, ::testing::ElementsAre(2, 3, 0, 1));
  EXPECT_EQ(last.peak_bytes(GpuIndex(0)), 128 * kStepKiB);
  const auto excess = [&](const std::vector<NodeId>& order) {
    return ValueOrDie(simulator->LowerBounds(order, {}, {}), "bounds")[0].excess_bytes;
  };
  // In the order 0, 2, 1, 3, the output of q is live beside the input and the output of 1.
  EXPECT_EQ(excess({}), 64 * kStepKiB);
  EXPECT_EQ(ValueOrDie(simulator->LowerBounds(StopToken()), "bounds")[0].excess_bytes,
            64 * kStepKiB);
  EXPECT_EQ(excess({NodeId(0), NodeId(2), NodeId(1), NodeId(3)}), 64 * kStepKiB);
  EXPECT_EQ(excess(LaunchOrder(last)), 0);
  EXPECT_EQ(
      simulator->LowerBounds({NodeId(0), NodeId(2), NodeId(1), NodeId(1)}, {}, {}).status().code(),
      absl::StatusCode::kInternal);
  terms.variation = StepVariation();
  const StepResult first = ValueOrDie(simulator->Simulate(SwapPlan(), terms, {}), "step");
  EXPECT_THAT(first.launch_ahead.order, ::testing::ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(first.peak_bytes(GpuIndex(0)), 192 * kStepKiB);
}

// 96 KiB, then 64 in the other half of 192; then 64 in the place of the 96, and 32 more. At most
// 160 KiB are in use.
constexpr char kWaste[] =
    "p = Abs() {T=float32, _output_shapes=[(128,192)]}\n"
    "q = MatMul(p, p) {T=float32, _output_shapes=[(128,128)]}\n"
    "r = MatMul(q, q) {T=float32, _output_shapes=[(128,128)]}\n"
    "s = MatMul(q, r) {T=float32, _output_shapes=[(64,128)]}";

// TensorFlow's allocator gives `q` and `r` 96 KiB each, unless the session says that wasting 32 is
// too much; so `s` finds no free chunk.
TEST(StepSimulatorFragmentationTest, TheHardwareSaysWhenChunksAreSplit) {
  struct Case {
    double fraction;
    bool fits;
  };
  for (const Case& c : {Case{0, false}, Case{0.001, true}, Case{0.125, true}, Case{0.25, false}}) {
    v1::Step options = Machine();
    options.clear_targets();
    options.add_targets("s");
    options.mutable_hardware()->set_gpu_memory_bytes(192 * kStepKiB);
    options.mutable_hardware()->set_internal_fragmentation_fraction(c.fraction);
    const TestStep step(kWaste, options);
    auto simulator = ValueOrDie(StepSimulator::Create(step.facts, {}), "simulator");
    const StepResult result =
        ValueOrDie(simulator->Simulate(SwapPlan(), StepTerms::AllGpus(192 * kStepKiB), {}), "step");
    EXPECT_TRUE(result.is_placed);
    EXPECT_EQ(result.fits, c.fits) << c.fraction;
    if (c.fits) continue;
    ASSERT_NE(result.failure(), nullptr);
    EXPECT_TRUE(result.failure()->fragmented);
    EXPECT_EQ(result.failure()->node, step.graph["s"]);
    EXPECT_EQ(result.failure()->missing_bytes, 32 * kStepKiB);
  }
}

// Each GPU has a share of the host's memory if that has a budget.
class HostMemoryTest : public StepSimulatorTest {
 protected:
  static v1::Step Host() {
    v1::Step step = Machine();
    step.mutable_hardware()->set_host_memory_bytes(64 * kStepKiB - 1);
    return step;
  }
  HostMemoryTest() : StepSimulatorTest(Host()) {}
};

TEST_F(HostMemoryTest, TooLittle) {
  EXPECT_TRUE(Run(Swapped(), StepTerms()).fits);
  for (const StepTerms& terms :
       {StepTerms::OneGpu(GpuIndex(0), kUnlimited), StepTerms::AllGpus(kUnlimited)}) {
    const StepResult result = Run(Swapped(), terms);
    ASSERT_NE(result.failure(), nullptr);
    EXPECT_EQ(result.failure()->device, -1);
    EXPECT_EQ(result.failure()->requested_bytes, 64 * kStepKiB);
    EXPECT_EQ(result.failure()->missing_bytes, 1);
  }
}

// A simulation stopped at any point leaves nothing behind.
TEST(StepSimulatorStopTest, StopsAndGoesOnAfterwards) {
  testing::TrainingGraphOptions options;
  options.nodes = 5'000;
  const TestStep step(testing::TestGraph::FromBytes(testing::MakeTrainingGraph(options)));
  auto simulator = ValueOrDie(StepSimulator::Create(step.facts, {}), "simulator");
  SwapPlan plan;
  for (NodeId id(0); id < step.graph->num_nodes(); ++id) {
    const Graph::Readers readers = step.graph->readers(id);
    if (readers.size() < 2 || !step.facts.active_nodes().flags[id]) continue;
    const auto [reader, index, port] = readers[1];
    if (port == kControl) continue;
    PlannedSwap swap;
    swap.tensor = {id, port};
    swap.swap_ins.push_back({{{reader, index}}, {}});
    plan.swaps.push_back(std::move(swap));
  }
  ASSERT_GT(plan.swaps.size(), 1'000u);
  const auto run = [&](const StopToken& stop) {
    return simulator->Simulate(plan, StepTerms(), stop);
  };
  const int64_t expected_ns = ValueOrDie(run({}), "step").step_time_ns();
  const StopToken counts;  // Of a later run: the first has buffers to make.
  ASSERT_THAT(run(counts), testing::IsOk());
  ASSERT_GT(counts.steps(), 10 * StopPoller::kStride);
  for (int64_t steps = 1; steps < counts.steps(); steps += 3 * StopPoller::kStride) {
    const StopToken stop = StopToken::AfterStepsForTest(steps);
    EXPECT_FALSE(run(stop).ok());
    EXPECT_LE(stop.steps_after_stop(), 2 * StopPoller::kStride);
    EXPECT_EQ(ValueOrDie(run({}), "step").step_time_ns(), expected_ns);
  }
}

// If a plan fails by fragmentation, the ladder simulates it by bytes as well, in both modes.
TEST(StepSimulatorWorkTest, PlacedAloneIsLess) {
  testing::TrainingGraphOptions options;
  options.nodes = 5'000;
  const TestStep step(testing::TestGraph::FromBytes(testing::MakeTrainingGraph(options)));
  auto simulator = ValueOrDie(StepSimulator::Create(step.facts, {}), "simulator");
  const int64_t peak =
      ValueOrDie(simulator->Simulate(SwapPlan(), StepTerms(), {}), "step").peak_bytes(GpuIndex(0));
  StepTerms terms = StepTerms::AllGpus(peak);
  const StopToken ladder, alone;
  const StepResult placed = ValueOrDie(simulator->Simulate(SwapPlan(), terms, ladder), "step");
  ASSERT_NE(placed.failure(), nullptr);
  ASSERT_TRUE(placed.failure()->fragmented);
  terms.placed_alone = true;
  EXPECT_FALSE(ValueOrDie(simulator->Simulate(SwapPlan(), terms, alone), "step").fits);
  EXPECT_LT(2 * alone.steps(), ladder.steps());
}

// Fits from a budget of `need_` on.
class FakeSimulator : public PlanSimulator {
 public:
  explicit FakeSimulator(int64_t need) : need_(need) {}
  absl::StatusOr<StepResult> Simulate(const SwapPlan&, const StepTerms& terms,
                                      const StopToken&) override {
    budgets_.push_back(terms.budget_bytes);
    EXPECT_EQ(terms.gpu, 3);
    StepResult result;
    result.fits = terms.budget_bytes >= need_;
    return result;
  }
  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const std::vector<NodeId>&,
                                                        const std::vector<bool>&,
                                                        const StopToken&) override {
    return absl::UnimplementedError("bounds");
  }
  const std::vector<int64_t>& budgets() const { return budgets_; }

 private:
  const int64_t need_;
  std::vector<int64_t> budgets_;
};

TEST(FindNeedTest, GrowsByAPartIn32) {
  FakeSimulator simulator(3'500);
  auto need = FindNeed(&simulator, SwapPlan(), StepTerms::OneGpu(GpuIndex(3), 0), 3'200, {});
  ASSERT_TRUE(need.ok());
  EXPECT_EQ(*need, 3'512);
  EXPECT_THAT(simulator.budgets(), ::testing::ElementsAre(3'200, 3'301, 3'405, 3'512));
}

TEST(FindNeedTest, GivesUpAtFourTimes) {
  FakeSimulator simulator(kUnlimited);
  auto need = FindNeed(&simulator, SwapPlan(), StepTerms::OneGpu(GpuIndex(3), 0), 1 << 20, {});
  ASSERT_TRUE(need.ok());
  EXPECT_EQ(*need, 0);
  EXPECT_LT(simulator.budgets().back(), 4 * ((int64_t{1} << 20) + 1));
  EXPECT_GT(simulator.budgets().back() * 34 / 32, int64_t{4} << 20);
}

}  // namespace
}  // namespace spillway::core
