#include "rewrite_core/base/rewrite_figures.h"

#include <limits>
#include <optional>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace spillway::core {
namespace {

v1::RewriteReport Parsed(const char* text) {
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &report)) << text;
  return report;
}

TEST(RewriteFiguresTest, SwapsOfTwoGpus) {
  const RewriteFigures figures = FiguresOf(Parsed(R"pb(
    outcome: OUTCOME_REWRITTEN
    devices {
      device: "/gpu:0"
      swapped_tensor_count: 3
      swap_out_bytes: 100
      swap_in_bytes: 200
      unknown_size_count: 1
    }
    devices { device: "/gpu:1" swapped_tensor_count: 4 swap_out_bytes: 1000 swap_in_bytes: 1000 }
    fits {
      device: "/gpu:1"
      fit: FIT_FITS
      budget_bytes: 5000
      unswapped_peak_bytes: 8000
      full_speed_step_time_ns: 400
      step_time_ns: 450
      need_bytes: 4900
    }
    forecast_before {
      fit: FIT_DOES_NOT_FIT
      devices { device: "/gpu:0" peak_bytes: 4000 budget_bytes: 5000 }
      devices { device: "/gpu:1" peak_bytes: 8001 budget_bytes: 5000 }
    }
    forecast_after {
      fit: FIT_FITS
      step_time_ns: 500
      host_peak_bytes: 700
      devices { device: "/gpu:0" peak_bytes: 3900 budget_bytes: 5000 }
      devices { device: "/gpu:1" peak_bytes: 4800 budget_bytes: 5000 }
    }
    hardware {
      hardware { preset: "v100_nvlink" }
      device_budget_bytes: 5000
    }
  )pb"));
  EXPECT_EQ(figures.swapped_tensors, 7);
  EXPECT_EQ(figures.unknown_size_tensors, 1);
  EXPECT_EQ(figures.swap_out_bytes, 1100);
  EXPECT_EQ(figures.swap_in_bytes, 1200);
  EXPECT_EQ(figures.host_peak_bytes, 700);
  EXPECT_EQ(figures.fit, v1::FIT_FITS);
  EXPECT_EQ(figures.machine, "v100_nvlink");
  // 400 with unlimited memory; with both GPUs swapped, 500.
  EXPECT_EQ(figures.step_before_ns, 400);
  EXPECT_EQ(figures.step_after_ns, 500);
  EXPECT_DOUBLE_EQ(figures.slowdown().value(), 1.25);
  ASSERT_EQ(figures.gpus.size(), 2u);
  EXPECT_EQ(figures.gpus[0].peak_before_bytes, 4000);
  EXPECT_EQ(figures.gpus[0].peak_after_bytes, 3900);
  EXPECT_EQ(figures.gpus[0].need_bytes, std::nullopt);
  EXPECT_EQ(figures.gpus[0].used_bytes(), 3900);
  ASSERT_EQ(figures.fullest(), &figures.gpus[1]);
  EXPECT_EQ(figures.gpus[1].device, "/gpu:1");
  EXPECT_EQ(figures.gpus[1].peak_before_bytes, 8001);
  EXPECT_EQ(figures.gpus[1].peak_after_bytes, 4800);
  EXPECT_EQ(figures.gpus[1].budget_bytes, 5000);
  EXPECT_EQ(figures.gpus[1].need_bytes, 4900);
  EXPECT_EQ(figures.gpus[1].used_bytes(), 4900);
}

TEST(RewriteFiguresTest, WhatFitsIsTheSameAfterwards) {
  const RewriteFigures figures = FiguresOf(Parsed(R"pb(
    outcome: OUTCOME_NOTHING_TO_DO
    fits {
      fit: FIT_FITS
      budget_bytes: 5000
      unswapped_peak_bytes: 3000
      not_needed: true
      full_speed_step_time_ns: 400
    }
    forecast_before {
      fit: FIT_FITS
      step_time_ns: 400
      devices { peak_bytes: 3000 budget_bytes: 5000 }
    }
    hardware { hardware { gpu_memory_bytes: 6000 } }
  )pb"));
  EXPECT_EQ(figures.swapped_tensors, 0);
  ASSERT_EQ(figures.gpus.size(), 1u);
  EXPECT_EQ(figures.gpus[0].peak_after_bytes, 3000);
  EXPECT_EQ(figures.slowdown(), 1.0);
  EXPECT_EQ(figures.machine, "custom");
}

TEST(RewriteFiguresTest, WithoutForecastsTheFitsSayWhatTheyKnow) {
  const RewriteFigures figures = FiguresOf(Parsed(R"pb(
    fits { device: "/gpu:0" budget_bytes: 5000 unswapped_peak_bytes: 3000 not_needed: true }
    fits { device: "/gpu:1" budget_bytes: 5000 unswapped_peak_bytes: 9000 peak_bytes: 4000 }
    fits { device: "/gpu:2" budget_bytes: 5000 unswapped_peak_bytes: 7000 }
  )pb"));
  ASSERT_EQ(figures.gpus.size(), 3u);
  EXPECT_EQ(figures.gpus[0].peak_after_bytes, 3000);
  EXPECT_EQ(figures.gpus[1].peak_after_bytes, 4000);
  EXPECT_EQ(figures.gpus[2].peak_after_bytes, std::nullopt);
  EXPECT_EQ(figures.gpus[2].used_bytes(), std::nullopt);
  EXPECT_EQ(figures.fullest(), &figures.gpus[1]);
  EXPECT_EQ(figures.slowdown(), std::nullopt);
  EXPECT_EQ(figures.host_peak_bytes, std::nullopt);
  EXPECT_EQ(figures.fit, v1::FIT_UNSPECIFIED);
}

// A step that does not fit with its swaps has no time.
TEST(RewriteFiguresTest, AStepThatDoesNotFitHasNoSlowdown) {
  const RewriteFigures figures = FiguresOf(Parsed(R"pb(
    forecast_before {
      fit: FIT_FITS
      step_time_ns: 400
      devices { peak_bytes: 3000 }
    }
    forecast_after {
      fit: FIT_DOES_NOT_FIT
      devices { peak_bytes: 2500 }
    }
  )pb"));
  EXPECT_EQ(figures.step_before_ns, 400);
  EXPECT_EQ(figures.step_after_ns, std::nullopt);
  EXPECT_EQ(figures.slowdown(), std::nullopt);
  EXPECT_EQ(figures.gpus[0].budget_bytes, std::nullopt);
}

TEST(RewriteFiguresTest, AStrippedGraphHasNone) {
  const RewriteFigures figures = FiguresOf(Parsed("outcome: OUTCOME_STRIPPED"));
  EXPECT_TRUE(figures.gpus.empty());
  EXPECT_EQ(figures.fullest(), nullptr);
  EXPECT_EQ(figures.slowdown(), std::nullopt);
  EXPECT_EQ(figures.machine, "");
}

// Each GPU's bytes may have ended at the highest number already.
TEST(RewriteFiguresTest, SumsOverGpusEndAtTheHighestNumber) {
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  v1::RewriteReport report;
  for (int i = 0; i < 2; ++i) {
    report.add_devices()->set_swap_out_bytes(kHighest);
    report.mutable_devices(i)->set_swap_in_bytes(kHighest);
  }
  EXPECT_EQ(FiguresOf(report).swap_out_bytes, kHighest);
  EXPECT_EQ(FiguresOf(report).swap_in_bytes, kHighest);
}

}  // namespace
}  // namespace spillway::core
