#include "server/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/strategy/strategies.h"
#include "server/base/error_fault.h"
#include "tests/server/fake_core.h"
#include "tests/server/http_get.h"

namespace spillway::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class MetricsTest : public testing::Test {
 protected:
  std::string Text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

  static v1::RewriteReport Report() {
    v1::RewriteReport report =
        FakeRewrite("g", {}, {}, core::StopToken(), nullptr).value().report();
    report.mutable_recomputation()->set_node_count(3);
    report.mutable_recomputation()->set_bytes(2048);
    report.mutable_recomputation()->set_time_ns(250'000'000);
    return report;
  }

  prometheus::Registry registry_;
  Metrics metrics_{registry_, "1.2.3"};
};

TEST_F(MetricsTest, EverySeriesIsThereAtZeroFromTheStart) {
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("\nspillway_build_info{version=\"1.2.3\"} 1\n"));
  for (const char* method : {"Rewrite", "StreamRewrite"}) {
    for (const char* strategy : {"level", "budget", "scope", "apply", "strip", "unknown"}) {
      for (const char* code : {"OK", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE",
                               "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "CANCELLED",
                               "DEADLINE_EXCEEDED", "UNAVAILABLE", "INTERNAL", "UNKNOWN"}) {
        EXPECT_EQ(Sample(text, std::string("spillway_requests_total{code=\"") + code +
                                   "\",method=\"" + method + "\",strategy=\"" + strategy + "\"}"),
                  0)
            << method << strategy << code;
      }
    }
  }
  for (const char* stage :
       {"parse", "analysis", "strategy", "simulate", "apply", "verify", "report"}) {
    EXPECT_EQ(
        Sample(text, std::string("spillway_stage_duration_seconds_count{stage=\"") + stage + "\"}"),
        0);
  }
  for (const char* reason :
       {"inflight_bytes", "caller_bytes", "queue_full", "draining", "unknown_caller", "quota"}) {
    EXPECT_EQ(
        Sample(text, std::string("spillway_rejected_requests_total{reason=\"") + reason + "\"}"),
        0);
  }
}

TEST_F(MetricsTest, QuestionsHaveNoStrategy) {
  const std::string text = Text();
  for (const char* method : {"Inspect", "Simulate", "Explore", "Diff"}) {
    const std::string of = std::string("method=\"") + method + "\"";
    EXPECT_EQ(Sample(text, "spillway_requests_total{code=\"OK\"," + of + ",strategy=\"none\"}"), 0);
    EXPECT_THAT(text, Not(HasSubstr(of + ",strategy=\"scope\""))) << "no series that stay at zero";
    EXPECT_EQ(Sample(text, "spillway_input_bytes_total{" + of + "}"), 0);
    EXPECT_EQ(Sample(text, "spillway_request_duration_seconds_count{" + of + "}"), 0);
  }
  metrics_.CountRequest(Method::kExplore, v1::STRATEGY_UNSPECIFIED, absl::StatusCode::kOk,
                        absl::Milliseconds(50));
  EXPECT_EQ(
      Sample(Text(), "spillway_requests_total{code=\"OK\",method=\"Explore\",strategy=\"none\"}"),
      1);
}

TEST_F(MetricsTest, RequestIsCountedOnceWithItsDuration) {
  metrics_.CountRequest(Method::kStreamRewrite, v1::STRATEGY_STRIP, absl::StatusCode::kOutOfRange,
                        absl::Milliseconds(50));
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("\nspillway_requests_total{code=\"OUT_OF_RANGE\","
                              "method=\"StreamRewrite\",strategy=\"strip\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nspillway_request_duration_seconds_bucket{"
                              "method=\"StreamRewrite\",le=\"0.03\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nspillway_request_duration_seconds_bucket{"
                              "method=\"StreamRewrite\",le=\"0.1\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("\nspillway_request_duration_seconds_sum{method=\"StreamRewrite\"} 0.05\n"));
  EXPECT_THAT(text, HasSubstr("\nspillway_request_duration_seconds_count{method=\"Rewrite\"} 0\n"));
}

TEST_F(MetricsTest, UndocumentedCodeIsUnknown) {
  metrics_.CountRequest(Method::kRewrite, v1::STRATEGY_SCOPE, absl::StatusCode::kDataLoss,
                        absl::ZeroDuration());
  EXPECT_THAT(Text(), HasSubstr("\nspillway_requests_total{code=\"UNKNOWN\",method=\"Rewrite\","
                                "strategy=\"scope\"} 1\n"));
}

TEST_F(MetricsTest, ReportIsSummedOverDevices) {
  metrics_.CountReport(v1::STRATEGY_SCOPE, Report());
  metrics_.CountReport(v1::STRATEGY_SCOPE, Report());
  metrics_.CountStages(Report());
  const std::string text = Text();
  for (const char* line : {
           "# HELP spillway_swap_out_bytes_per_step_total Bytes that one training step of each "
           "rewritten graph copies to the host, summed over graphs.\n"
           "# TYPE spillway_swap_out_bytes_per_step_total counter\n",
           "spillway_swapped_tensors_total{strategy=\"scope\"} 10\n",
           "spillway_unknown_size_tensors_total{strategy=\"scope\"} 4\n",
           "spillway_swap_out_nodes_total{strategy=\"scope\"} 14\n",
           "spillway_swap_in_nodes_total{strategy=\"scope\"} 22\n",
           "spillway_swap_out_bytes_per_step_total{strategy=\"scope\"} 4002\n",
           "spillway_swap_in_bytes_per_step_total{strategy=\"scope\"} 12002\n",
           "spillway_swap_in_bytes_per_step_total{strategy=\"strip\"} 0\n",
           "spillway_recomputed_nodes_total{strategy=\"scope\"} 6\n",
           "spillway_recomputed_bytes_per_step_total{strategy=\"scope\"} 4096\n",
           "spillway_recompute_seconds_per_step_total{strategy=\"scope\"} 0.5\n",
           "spillway_nodes_added_total{strategy=\"scope\"} 34\n",
           "spillway_rewrite_outcomes_total{outcome=\"rewritten\",strategy=\"scope\"} 2\n",
           "spillway_rewrite_outcomes_total{outcome=\"kept\",strategy=\"scope\"} 0\n",
           "spillway_stage_duration_seconds_sum{stage=\"apply\"} 0.25\n",
           "spillway_stage_duration_seconds_count{stage=\"apply\"} 1\n",
           "spillway_stage_duration_seconds_count{stage=\"parse\"} 0\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsTest, GraphThatIsKeptSwapsNothingNew) {
  v1::RewriteReport report = Report();
  report.set_outcome(v1::OUTCOME_KEPT);
  metrics_.CountReport(v1::STRATEGY_SCOPE, report);
  EXPECT_THAT(Text(), HasSubstr("\nspillway_swapped_tensors_total{strategy=\"scope\"} 0\n"));
  EXPECT_THAT(
      Text(),
      HasSubstr("\nspillway_rewrite_outcomes_total{outcome=\"kept\",strategy=\"scope\"} 1\n"));
}

TEST_F(MetricsTest, NamesOfUsersNeverBecomeSeries) {
  v1::RewriteReport report = Report();
  report.add_stages()->set_stage(static_cast<v1::Stage>(99));
  report.set_strategy(static_cast<v1::Strategy>(99));
  report.mutable_devices(0)->set_device("/users_device");
  metrics_.CountReport(v1::STRATEGY_SCOPE, report);
  metrics_.CountStages(report);
  EXPECT_THAT(Text(), Not(HasSubstr("users_")));
}

// A rewrite on a GPU with a budget of 2.5 GiB.
v1::RewriteReport SwappingReport() {
  constexpr int64_t kMiB = int64_t{1} << 20;
  v1::RewriteReport report;
  report.set_outcome(v1::OUTCOME_REWRITTEN);
  v1::DeviceReport& swaps = *report.add_devices();
  swaps.set_swapped_tensor_count(3);
  swaps.set_swap_out_bytes(100 * kMiB);
  swaps.set_swap_in_bytes(200 * kMiB);
  v1::DeviceForecast& before = *report.mutable_forecast_before()->add_devices();
  before.set_device("/gpu:0");
  before.set_peak_bytes(3072 * kMiB);
  before.set_budget_bytes(2560 * kMiB);
  v1::DeviceForecast& after = *report.mutable_forecast_after()->add_devices();
  after.set_device("/gpu:0");
  after.set_peak_bytes(2048 * kMiB);
  v1::DeviceFit& fit = *report.add_fits();
  fit.set_device("/gpu:0");
  fit.set_budget_bytes(2560 * kMiB);
  fit.set_need_bytes(2304 * kMiB);  // 0.9 of it.
  fit.set_full_speed_step_time_ns(100'000'000);
  report.mutable_forecast_after()->set_step_time_ns(130'000'000);
  report.mutable_forecast_after()->set_host_peak_bytes(64 * kMiB);
  report.mutable_hardware()->mutable_hardware()->set_preset("a100_40gb_sxm4");
  return report;
}

// Each has a count, a sum, and the two buckets around the value.
TEST_F(MetricsTest, WhatSwappingCostsAndSavesIsInHistograms) {
  const auto record =
      RecordOf(absl::OkStatus(), SwappingReport(), v1::RewriteOptions(), AnsweredFrom::kWork);
  ASSERT_TRUE(record.has_value());
  for (int i = 0; i < 2; ++i) metrics_.CountRewrite(v1::STRATEGY_LEVEL, *record);
  const std::string text = Text();
  const struct {
    std::string name;
    double sum;
    std::string below, above;
  } histograms[] = {
      {"spillway_rewrite_slowdown_ratio", 2 * 1.3, "1.2", "1.5"},
      {"spillway_rewrite_need_ratio", 2 * 0.9, "0.75", "0.9"},
      {"spillway_rewrite_peak_before_bytes", 6442450944, "2147483648", "4294967296"},
      {"spillway_rewrite_peak_after_bytes", 4294967296, "1073741824", "2147483648"},
      {"spillway_rewrite_host_memory_bytes", 134217728, "16777216", "67108864"},
      {"spillway_rewrite_swap_bytes_per_step", 629145600, "268435456", "1073741824"},
  };
  for (const auto& histogram : histograms) {
    const std::string labels = "{outcome=\"rewritten\",strategy=\"level\"";
    const auto bucket = [&](const std::string& bound) {
      return Sample(text, absl::StrCat(histogram.name, "_bucket", labels, ",le=\"", bound, "\"}"));
    };
    EXPECT_EQ(Sample(text, absl::StrCat(histogram.name, "_count", labels, "}")), 2);
    EXPECT_NEAR(Sample(text, absl::StrCat(histogram.name, "_sum", labels, "}")), histogram.sum,
                1e-9)
        << histogram.name;
    EXPECT_EQ(bucket(histogram.below), 0) << histogram.name;
    EXPECT_EQ(bucket(histogram.above), 2) << histogram.name;
    EXPECT_EQ(Sample(text, histogram.name + "_count{outcome=\"rewritten\",strategy=\"budget\"}"),
              0);
  }
  EXPECT_EQ(Sample(text, "spillway_rewrites_by_machine_total{machine=\"a100_40gb_sxm4\"}"), 2);
}

// Planned swaps are observed with their outcome, and no counter shows them as swapped.
TEST_F(MetricsTest, ADryRunSwapsNothingAndSaysWhatItWould) {
  v1::RewriteReport report = SwappingReport();
  report.set_outcome(v1::OUTCOME_DRY_RUN);
  metrics_.CountReport(v1::STRATEGY_LEVEL, report);
  metrics_.CountRewrite(v1::STRATEGY_LEVEL,
                        *RecordOf(absl::OkStatus(), report, {}, AnsweredFrom::kWork));
  const std::string text = Text();
  const std::string labels = "{outcome=\"dry_run\",strategy=\"level\"}";
  EXPECT_EQ(Sample(text, "spillway_rewrite_outcomes_total" + labels), 1);
  EXPECT_EQ(Sample(text, "spillway_swapped_tensors_total{strategy=\"level\"}"), 0);
  EXPECT_EQ(Sample(text, "spillway_swap_out_bytes_per_step_total{strategy=\"level\"}"), 0);
  EXPECT_EQ(Sample(text, "spillway_rewrite_swap_bytes_per_step_sum" + labels), 314572800);
  EXPECT_NEAR(Sample(text, "spillway_rewrite_slowdown_ratio_sum" + labels), 1.3, 1e-9);
  EXPECT_NEAR(Sample(text, "spillway_rewrite_need_ratio_sum" + labels), 0.9, 1e-9);
}

TEST_F(MetricsTest, WhatDoesNotFitIsAnOutcome) {
  RewriteRecord record;
  core::GpuFigures gpu;
  gpu.budget_bytes = 1000;
  gpu.need_bytes = 1500;
  record.figures.gpus.push_back(gpu);
  record.figures.machine = "somebody's own";
  metrics_.CountRewrite(v1::STRATEGY_BUDGET, record);
  record.figures.gpus.clear();  // Without GPUs or a machine.
  record.figures.machine.clear();
  metrics_.CountRewrite(v1::STRATEGY_BUDGET, record);
  const std::string text = Text();
  const std::string labels = "{outcome=\"does_not_fit\",strategy=\"budget\"}";
  EXPECT_EQ(Sample(text, "spillway_rewrite_outcomes_total" + labels), 2);
  EXPECT_EQ(Sample(text, "spillway_rewrite_need_ratio_count" + labels), 1);
  EXPECT_EQ(Sample(text, "spillway_rewrite_need_ratio_sum" + labels), 1.5);
  EXPECT_EQ(Sample(text, "spillway_rewrites_by_machine_total{machine=\"custom\"}"), 1);
  EXPECT_EQ(Sample(text, "spillway_rewrites_by_machine_total{machine=\"none\"}"), 1);
  EXPECT_THAT(text, Not(HasSubstr("somebody")));
}

TEST_F(MetricsTest, WhatWasNotSimulatedIsNotObserved) {
  const auto record = RecordOf(absl::OkStatus(), Report(), {}, AnsweredFrom::kWork);
  metrics_.CountRewrite(v1::STRATEGY_SCOPE, *record);
  const std::string text = Text();
  const std::string labels = "_count{outcome=\"rewritten\",strategy=\"scope\"}";
  EXPECT_EQ(Sample(text, "spillway_rewrite_slowdown_ratio" + labels), 0);
  EXPECT_EQ(Sample(text, "spillway_rewrite_peak_before_bytes" + labels), 0);
  EXPECT_EQ(Sample(text, "spillway_rewrite_swap_bytes_per_step" + labels), 1);
  EXPECT_EQ(Sample(text, "spillway_rewrites_by_machine_total{machine=\"none\"}"), 1);
}

TEST_F(MetricsTest, EveryPresetIsAMachineFromTheStart) {
  const std::string text = Text();
  EXPECT_GT(core::HardwarePresets().size(), 5u);
  for (const core::HardwarePreset& preset : core::HardwarePresets()) {
    EXPECT_EQ(Sample(text, absl::StrCat("spillway_rewrites_by_machine_total{machine=\"",
                                        preset.hardware.preset, "\"}")),
              0);
  }
}

// These labels decide about alerts, so they are repeated here, independently of the table.
TEST_F(MetricsTest, EachReasonIsThereWithItsFault) {
  const std::map<std::string, std::string> not_of_callers = {{"none", "server"},
                                                             {"internal", "server"},
                                                             {"verify_failed", "server"},
                                                             {"overloaded", "capacity"},
                                                             {"stopped", "stopped"}};
  const google::protobuf::EnumDescriptor& reasons = *v1::ErrorReason_descriptor();
  ASSERT_GT(reasons.value_count(), 25);
  const std::string before = Text();
  for (int i = 0; i < reasons.value_count(); ++i) {
    const auto reason = static_cast<v1::ErrorReason>(reasons.value(i)->number());
    EXPECT_TRUE(FaultOf(reason).has_value()) << reasons.value(i)->name() << " has no fault";
    std::string label =
        absl::AsciiStrToLower(absl::StripPrefix(reasons.value(i)->name(), "ERROR_REASON_"));
    if (label == "unspecified") label = "none";
    const auto found = not_of_callers.find(label);
    const std::string series = absl::StrCat(
        "spillway_request_errors_total{fault=\"",
        found == not_of_callers.end() ? "caller" : found->second, "\",reason=\"", label, "\"}");
    EXPECT_EQ(Sample(before, series), 0) << series;
    metrics_.CountError(reason);
    EXPECT_EQ(Sample(Text(), series), 1) << series;
  }
  EXPECT_FALSE(FaultOf(static_cast<v1::ErrorReason>(999)).has_value());
}

TEST(StrategyOfTest, ByWhatIsAskedFor) {
  v1::RewriteOptions options;
  EXPECT_EQ(StrategyOf(options), core::Strategies().front()) << "the default";
  options.mutable_strip();
  EXPECT_EQ(StrategyOf(options), v1::STRATEGY_STRIP);
  options.mutable_level();
  EXPECT_EQ(StrategyOf(options), v1::STRATEGY_LEVEL);
  options.mutable_scope();
  EXPECT_EQ(StrategyOf(options), v1::STRATEGY_SCOPE);
  options.mutable_budget();
  EXPECT_EQ(StrategyOf(options), v1::STRATEGY_BUDGET);
  v1::RewriteOptions newer;
  // Field 15, a message: sent by a client that knows a later version's strategy.
  ASSERT_TRUE(newer.ParseFromString(std::string("\x7a\x00", 2)));
  EXPECT_EQ(StrategyOf(newer), v1::STRATEGY_UNSPECIFIED);
}

}  // namespace
}  // namespace spillway::server
