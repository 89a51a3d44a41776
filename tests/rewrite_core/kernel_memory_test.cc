// Step.kernel_memory on the graphs of tests/graphs: off, operations take their outputs alone.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rewrite_core/inspect/simulate_graph.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_meta.h"

namespace spillway::core {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::ReadTestGraph;
using testing::RecordedBatch;
using testing::RecordedStep;
using testing::TestFacts;
using testing::TestGraph;

v1::Step StepOf(const std::string& name, v1::KernelMemory kernel_memory) {
  v1::Step step = RecordedStep(name, RecordedBatch::kPlanned);
  step.set_kernel_memory(kernel_memory);
  return step;
}

class KernelMemoryTest : public ::testing::TestWithParam<std::string> {};

TEST_P(KernelMemoryTest, OperationsTakeTheirOutputsAloneIfItIsOff) {
  const std::string bytes = ReadTestGraph(GetParam() + "/graph.pb");
  const auto costs = [&](v1::KernelMemory kernel_memory) {
    TestFacts test(TestGraph::FromBytes(bytes), StepOf(GetParam(), kernel_memory));
    test.Compute({Fact::kCosts});
    return test.facts.costs();
  };
  const TestGraph graph = TestGraph::FromBytes(bytes);
  const Costs unset = costs(v1::KERNEL_MEMORY_UNSPECIFIED), off = costs(v1::KERNEL_MEMORY_OFF),
              counted = costs(v1::KERNEL_MEMORY_AUTO);
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    const NodeCost& cost = off[id];
    // A call that is not inlined has the memory of its body.
    if (!cost.is_call && !graph->has_functions()) {
      ASSERT_EQ(cost.workspace_bytes, 0) << graph->name(id);
    }
    ASSERT_EQ(unset[id].workspace_bytes, counted[id].workspace_bytes) << graph->name(id);
    ASSERT_EQ(unset[id].duration_ns, counted[id].duration_ns) << graph->name(id);
    ASSERT_EQ(unset[id].memory_bytes, counted[id].memory_bytes) << graph->name(id);
    ASSERT_GE(counted[id].workspace_bytes, cost.workspace_bytes) << graph->name(id);
    ASSERT_GE(counted[id].duration_ns, cost.duration_ns) << graph->name(id);
    ASSERT_EQ(counted[id].is_known, cost.is_known) << graph->name(id);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, KernelMemoryTest, ::testing::ValuesIn(testing::TestGraphNames()),
                         [](const auto& param_info) { return param_info.param; });

// A kernel that TensorFlow makes a NoOp takes none: it is not listed, nor does the step need it.
TEST(KernelMemorySimulateTest, WhatOnlyControlEdgesLeaveTakesNothing) {
  const TestGraph graph(
      "x = Placeholder() {dtype=float32, shape=(8,16,16,4)}\n"
      "s = Placeholder() {dtype=float32, shape=(4)}\n"
      "norm = FusedBatchNormV3(x, s, s, s, s) {T=float32, U=float32}\n"
      "end = Relu(x, ^norm) {T=float32}\n");
  v1::SimulateOptions options;
  options.mutable_step()->add_targets("end");
  for (const auto& [grappler, count] :
       {std::pair(v1::GRAPPLER_AS_IS, 1), std::pair(v1::GRAPPLER_AUTO, 0)}) {
    options.mutable_step()->set_grappler(grappler);
    const auto report = SimulateGraph(graph.bytes(), options, DefaultLimits(), StopToken());
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->temporaries_size(), count) << v1::Grappler_Name(grappler);
  }
}

// A convolution of 98 MiB to 98 MiB, which wants a workspace of both, in the first step with 16 MiB
// of redzones, beside 98 + 16 MiB for a copy of its output if that many are free. It is the last
// operation: the GPU's memory beyond the peak is free while it is launched.
TEST(KernelMemorySimulateTest, ChoosesTheLimitOfWorkspacesThatCostsNothing) {
  constexpr int64_t kMib = 1048576;
  const TestGraph graph(
      "x = Placeholder() {dtype=float32, shape=(32,64,112,112)}\n"
      "w = Const() {dtype=float32, _output_shapes=[(3,3,64,64)]}\n"
      "conv = Conv2D(x, w) {T=float32, data_format=\"NCHW\", padding=\"SAME\", "
      "strides=[1,1,1,1], _output_shapes=[(32,64,112,112)]}\n");
  v1::SimulateOptions options;
  options.mutable_step()->add_targets("conv");
  options.mutable_step()->mutable_hardware()->set_preset("v100_pcie");
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  // So that no tensor takes more of the free memory than its size.
  options.mutable_step()->mutable_hardware()->set_internal_fragmentation_fraction(1e-6);
  const auto forecast = [&](int64_t memory_bytes, int64_t limit_mib = -1) {
    options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(memory_bytes);
    options.mutable_step()->clear_convolution_workspace_limit_bytes();
    if (limit_mib >= 0)
      options.mutable_step()->set_convolution_workspace_limit_bytes(limit_mib * kMib);
    return testing::ValueOrDie(SimulateGraph(graph.bytes(), options, DefaultLimits(), StopToken()),
                               "report")
        .forecast();
  };
  const v1::Forecast ample = forecast(int64_t{1} << 34);
  const int64_t peak = ample.devices(0).peak_bytes();
  ASSERT_GT(peak, 196 * kMib);
  struct Case {
    int64_t free_mib, given_mib, limit_mib;
    bool slower;
  };
  for (const Case& c : {Case{1000, -1, 256, false}, Case{326, -1, 256, false},
                        Case{325, -1, 128, false}, Case{194, -1, 64, false},
                        Case{193, -1, 256, true},  // All are too large: no smaller one helps.
                        Case{113, -1, 64, false}, Case{79, -1, 256, true}, Case{80, 65, 65, true},
                        Case{81, 65, 65, false}, Case{0, 0, 0, false}}) {
    const v1::Forecast found = forecast(peak + c.free_mib * kMib, c.given_mib);
    ASSERT_EQ(found.fit(), v1::FIT_FITS) << c.free_mib;
    EXPECT_EQ(found.convolution_workspace_limit_bytes(), c.limit_mib * kMib) << c.free_mib;
    EXPECT_EQ(found.without_workspace_ns(), c.slower ? found.devices(0).compute_ns() * 30 / 100 : 0)
        << c.free_mib;
    EXPECT_EQ(found.step_time_ns(), ample.step_time_ns());
  }
  // The reserve is free, too.
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0.5);
  const v1::Forecast reserved = forecast(2 * (peak + 131 * kMib));
  EXPECT_EQ(reserved.convolution_workspace_limit_bytes(), 256 * kMib);
  EXPECT_EQ(reserved.without_workspace_ns(), 0);
}

v1::RewriteResponse Rewritten(const std::string& bytes, v1::KernelMemory kernel_memory,
                              int64_t gpu_memory_bytes) {
  v1::RewriteOptions options;
  options.mutable_budget()->set_planning_effort(v1::PLANNING_EFFORT_LOW);
  *options.mutable_step() = StepOf("resnet50_tf1_b4", kernel_memory);
  options.mutable_step()->set_grappler(v1::GRAPPLER_AS_IS);  // In the layout of the file.
  options.mutable_step()->mutable_hardware()->set_preset("v100_pcie");
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(gpu_memory_bytes);
  auto response = Rewrite(bytes, options, DefaultLimits(), StopToken());
  EXPECT_THAT(response, IsOk());
  return response.ok() ? *std::move(response) : v1::RewriteResponse();
}

TEST(KernelMemoryRewriteTest, PlansReportsAndPeaksKnowTemporaries) {
  const std::string bytes = ReadTestGraph("resnet50_tf1_b4/graph.pb");
  constexpr int64_t kMemory = int64_t{1} << 29;
  const v1::RewriteResponse unset = Rewritten(bytes, v1::KERNEL_MEMORY_UNSPECIFIED, kMemory);
  const v1::RewriteResponse off = Rewritten(bytes, v1::KERNEL_MEMORY_OFF, kMemory);
  const v1::RewriteResponse counted = Rewritten(bytes, v1::KERNEL_MEMORY_AUTO, kMemory);
  EXPECT_EQ(unset.graph_def(), counted.graph_def());
  EXPECT_EQ(off.report().temporaries_size(), 0);

  // The filter's gradient of the convolution of 4 images of 4x4, in strides of 2, by kernels of 3x3
  // from 512 to 512 channels: the images padded to 5x5, twice, the filter and the gradients of 2x2.
  constexpr int64_t kPadded = int64_t{4} * 5 * 5 * 512 * 4,
                    kFilter = int64_t{3} * 3 * 512 * 512 * 4,
                    kGradients = int64_t{4} * 2 * 2 * 512 * 4;
  ASSERT_EQ(counted.report().temporaries_size(), 5);
  const v1::Temporary& largest = counted.report().temporaries(0);
  EXPECT_EQ(largest.node(), "gradients/stage4_block0/b/conv/Conv2D_grad/Conv2DBackpropFilter");
  EXPECT_EQ(largest.op(), "Conv2DBackpropFilter");
  EXPECT_EQ(largest.bytes(), 2 * kPadded + kFilter + kGradients);
  EXPECT_THAT(largest.reason(),
              HasSubstr("of NHWC float32 copies tensors of 200.00 KiB, 9.00 MiB"));
  const auto peak = [](const v1::RewriteResponse& response) {
    return response.report().forecast_before().devices(0).peak_bytes();
  };
  const auto time = [](const v1::RewriteResponse& response) {
    return response.report().fits(0).full_speed_step_time_ns();
  };
  EXPECT_GE(peak(counted), peak(off));
  EXPECT_GT(time(counted), time(off));
  const auto need = [](const v1::RewriteResponse& response) {
    return response.report().forecast_before().devices(0).bounds().memory_bytes();
  };
  EXPECT_GT(need(counted), need(off));
}

TEST(KernelMemoryRewriteTest, APlanAdvisesALimitOfWorkspaces) {
  const std::string bytes = ReadTestGraph("resnet50_tf1_b4/graph.pb");
  constexpr int64_t kLittle = 320 << 20;  // Too little for the step as it is.
  const auto environment = [&](v1::KernelMemory kernel_memory) {
    const v1::RewriteReport report = Rewritten(bytes, kernel_memory, kLittle).report();
    EXPECT_EQ(report.outcome(), v1::OUTCOME_REWRITTEN);
    return std::vector<std::string>(report.advice().environment().begin(),
                                    report.advice().environment().end());
  };
  EXPECT_THAT(environment(v1::KERNEL_MEMORY_AUTO),
              ::testing::ElementsAre("TF_CUDNN_WORKSPACE_LIMIT_IN_MB=256"));
  EXPECT_THAT(environment(v1::KERNEL_MEMORY_OFF), ::testing::IsEmpty());
}

}  // namespace
}  // namespace spillway::core
