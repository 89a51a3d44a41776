// Forecasts of whole training graphs: a rewrite's forecast of its result agrees with the forecast
// of the result itself.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"

namespace spillway::core {
namespace {

using testing::IsOk;

constexpr int64_t kBatch = 4;

// The figures without bounds, which only a graph has, the names of swap nodes, and unknowns.
std::string Figures(v1::Forecast forecast) {
  for (v1::DeviceForecast& device : *forecast.mutable_devices()) {
    device.clear_bounds();
    device.clear_peak_node();
  }
  forecast.mutable_out_of_memory()->clear_node();
  // The size of cuDNN's reserve space is known only from its op (analysis/memory/buffers.cc), not
  // from the Identity that copies it in the file.
  if (forecast.fit() == v1::FIT_UNKNOWN) forecast.set_fit(v1::FIT_FITS);
  forecast.clear_fit_unknown();
  return forecast.DebugString();
}

class ForecastGraphsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ForecastGraphsTest, AfterIsThatOfTheResult) {
  const std::string bytes = testing::ReadTestGraph(std::string(GetParam()) + "/graph.pb");
  for (const auto& [preset, strategy] :
       {std::make_pair("p100_pcie", "scope {}"), std::make_pair("tight", "scope {}"),
        std::make_pair("p100_pcie",
                       "level { swapout_threshold: 1 swapin_ahead: 1 "
                       "swapin_groupby: 0 sync_mode: 3 }"),
        std::make_pair("tight",
                       "level { swapout_threshold: 4 swapin_ahead: 2 swapin_groupby: 3 "
                       "sync_mode: 1 serialization: '-30:' }")}) {
    SCOPED_TRACE(strategy);
    v1::RewriteOptions options;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(strategy, &options));
    options.mutable_step()->set_batch_size(kBatch);
    v1::SimulateOptions simulate;
    simulate.mutable_step()->set_batch_size(kBatch);
    options.mutable_step()->mutable_hardware()->set_preset("p100_pcie");
    if (preset != std::string("p100_pcie")) {
      // So little that the step waits for memory or does not fit: half of its peak.
      const auto free = SimulateGraph(bytes, simulate, DefaultLimits(), StopToken());
      ASSERT_THAT(free, IsOk());
      ASSERT_GT(free->forecast().devices_size(), 0);
      const v1::DeviceForecast& device = free->forecast().devices(0);
      options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(
          (device.resident_bytes() + device.peak_bytes()) / 2 + 1);
    }
    *simulate.mutable_step() = options.step();
    const auto rewritten = Rewrite(bytes, options, DefaultLimits(), StopToken());
    ASSERT_THAT(rewritten, IsOk());
    const v1::RewriteReport& report = rewritten->report();
    const auto before = SimulateGraph(bytes, simulate, DefaultLimits(), StopToken());
    ASSERT_THAT(before, IsOk());
    // A rewrite keeps If and While, whose bodies a forecast lowers.
    const bool are_alike =
        before->inlining().inlined_call_count() == report.inlining().inlined_call_count();
    if (!are_alike) {
      EXPECT_THAT(GetParam(),
                  ::testing::AnyOf(::testing::StrEq("cond_v2"), ::testing::StrEq("lstm_while_v2")));
      EXPECT_GT(before->inlining().inlined_call_count(), report.inlining().inlined_call_count());
      continue;
    }
    EXPECT_EQ(Figures(report.forecast_before()), Figures(before->forecast()));
    if (report.outcome() != v1::OUTCOME_REWRITTEN) {
      std::cout << GetParam() << " is not rewritten\n";
      EXPECT_FALSE(report.has_forecast_after());
      continue;
    }
    const auto after =
        SimulateGraph(rewritten->graph_def(), simulate, DefaultLimits(), StopToken());
    ASSERT_THAT(after, IsOk());
    ASSERT_GT(report.forecast_after().devices_size(), 0);
    EXPECT_EQ(Figures(report.forecast_after()), Figures(after->forecast()));
    EXPECT_EQ(after->targets_size(), report.targets_size());
    v1::SimulateOptions without_reserve = simulate;
    without_reserve.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
    const auto in_all =
        SimulateGraph(rewritten->graph_def(), without_reserve, DefaultLimits(), StopToken());
    ASSERT_THAT(in_all, IsOk());
    if (after->forecast().fit() == v1::FIT_DOES_NOT_FIT) {
      EXPECT_FALSE(after->forecast().has_step_time_in_all_memory_ns());
    } else if (in_all->forecast().fit() != v1::FIT_DOES_NOT_FIT) {
      EXPECT_EQ(after->forecast().step_time_in_all_memory_ns(), in_all->forecast().step_time_ns());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ForecastGraphsTest,
                         ::testing::Values("bert_base", "bert_tiny", "cnn_mnist", "cond_v1",
                                           "cond_v2", "horovod_like", "lstm_while", "lstm_while_v2",
                                           "mixed_fp16", "mnist_deep", "resnet26_2tower_b2",
                                           "resnet50_2tower", "resnet50_free", "resnet50_keras",
                                           "resnet50_tf1", "tfcnn_googlenet",
                                           "tfcnn_inception3_4gpu", "tfcnn_resnet50_2gpu",
                                           "tfcnn_resnet50_b200", "unet3d", "wide_chain_10k"),
                         [](const auto& param_info) { return std::string(param_info.param); });

}  // namespace
}  // namespace spillway::core
