#include "client_lib/text/cost_text.h"

#include <cstdint>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace spillway::text {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A graph that swaps 3 GiB, and takes 105 ms instead of 100.
v1::RewriteReport CostlyReport() {
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        outcome: OUTCOME_REWRITTEN
        devices { swapped_tensor_count: 14 swap_out_bytes: 3221225472 }
        forecast_before { step_time_ns: 100000000 }
        forecast_after { fit: FIT_FITS step_time_ns: 105000000 host_peak_bytes: 3489660928 }
      )pb",
      &report));
  return report;
}

TEST(CostTextTest, WhatSwappingCosts) {
  EXPECT_EQ(CostText(CostlyReport()),
            "fits with 14 swaps, 3.00 GiB, 5 % slower, host memory 3.25 GiB");
}

TEST(CostTextTest, ADryRunSaysSo) {
  v1::RewriteReport report = CostlyReport();
  report.set_outcome(v1::OUTCOME_DRY_RUN);
  EXPECT_EQ(ReportLine(report),
            "dry run: fits with 14 swaps, 3.00 GiB, 5 % slower, host memory 3.25 GiB");
}

TEST(CostTextTest, ThatItMayRunOutComesFirst) {
  v1::RewriteReport report = CostlyReport();
  report.add_warnings()->set_message("another");
  report.add_warnings()->set_code(v1::WARNING_CODE_MAY_RUN_OUT);
  report.mutable_warnings(1)->set_message("fits in 17 of 20 variations: ...");
  EXPECT_THAT(CostText(report), StartsWith("fits in 17 of 20 variations: ...; fits with 14 swaps"));
  EXPECT_EQ(ReportLine(report), CostText(report));
  report.set_outcome(v1::OUTCOME_NOTHING_TO_DO);
  report.set_summary("no swapping is needed");
  EXPECT_EQ(ReportLine(report), "fits in 17 of 20 variations: ...; no swapping is needed");
}

TEST(CostTextTest, NothingFitsByIgnorance) {
  v1::RewriteReport report = CostlyReport();
  report.mutable_forecast_after()->set_fit(v1::FIT_UNKNOWN);
  report.mutable_devices(0)->set_unknown_size_count(1);
  EXPECT_THAT(CostText(report), StartsWith("unknown whether it fits with 14 swaps, >= 3.00 GiB"));
  report.mutable_forecast_after()->set_fit(v1::FIT_DOES_NOT_FIT);
  EXPECT_THAT(CostText(report), StartsWith("does not fit with 14 swaps"));
  // Of a server without forecasts.
  report.clear_forecast_before();
  report.clear_forecast_after();
  EXPECT_EQ(CostText(report),
            "unknown whether it fits with 14 swaps, >= 3.00 GiB, slow-down unknown, host memory "
            "unknown");
}

TEST(CostTextTest, WhatRunsAgain) {
  v1::RewriteReport report = CostlyReport();
  report.clear_devices();
  report.mutable_recomputation()->set_node_count(9);
  report.set_same_bits(v1::SAME_BITS_WITH_ADVICE);
  EXPECT_EQ(CostText(report), "fits with 9 recomputed nodes, 5 % slower");
  report.set_same_bits(v1::SAME_BITS_NO);
  EXPECT_EQ(CostText(report),
            "fits with 9 recomputed nodes, 5 % slower, last bits may differ (--recompute off: only "
            "by Grappler)");
}

TEST(CostTextTest, SpeedInWords) {
  v1::RewriteReport report = CostlyReport();
  for (const auto& [after_ns, words] : {std::pair<int64_t, const char*>(100'400'000, ", as fast,"),
                                        {95'000'000, ", 5 % faster,"},
                                        {199'000'000, ", 99 % slower,"},
                                        {250'000'000, ", 2.5 times as long a step,"}}) {
    report.mutable_forecast_after()->set_step_time_ns(after_ns);
    EXPECT_THAT(CostText(report), HasSubstr(words));
  }
}

}  // namespace
}  // namespace spillway::text
