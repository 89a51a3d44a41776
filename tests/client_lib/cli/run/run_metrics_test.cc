// The metrics of hooks, without a program: what each run adds.
#include "client_lib/cli/run/run_metrics.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/run/run_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spillway::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kHookMiB = int64_t{1} << 20;
constexpr int64_t kHookGiB = int64_t{1} << 30;

// A graph that swaps 3 GiB each way, and takes 105 ms instead of 100.
v1::RewriteReport CostlyReport() {
  v1::RewriteReport report;
  report.set_outcome(v1::OUTCOME_REWRITTEN);
  report.set_strategy(v1::STRATEGY_LEVEL);
  report.set_summary("14 tensors will be swapped");
  v1::DeviceReport* device = report.add_devices();
  device->set_swapped_tensor_count(14);
  device->set_swap_out_bytes(3 * kHookGiB);
  device->set_swap_in_bytes(3 * kHookGiB);
  const auto forecast = [](int64_t peak, int64_t step_ns, v1::Forecast* of) {
    of->set_fit(v1::FIT_FITS);
    of->set_step_time_ns(step_ns);
    of->add_devices()->set_peak_bytes(peak);
    of->mutable_devices(0)->set_budget_bytes(10 * kHookGiB);
  };
  forecast(12 * kHookGiB, 100'000'000, report.mutable_forecast_before());
  forecast(9 * kHookGiB, 105'000'000, report.mutable_forecast_after());
  report.mutable_forecast_after()->set_host_peak_bytes(3 * kHookGiB + 256 * kHookMiB);
  report.mutable_hardware()->mutable_hardware()->set_preset("p100_pcie");
  return report;
}

HookRun RunOf(const v1::RewriteReport& report, HookRun::Result result) {
  HookRun run;
  run.result = result;
  run.duration = absl::Milliseconds(250);
  run.report = report;
  return run;
}

// `NAME{strategy="level",outcome="rewritten"EXTRA} VALUE`.
std::string Line(const char* name, const char* bound, const char* value) {
  return absl::StrCat("spillway_hook_rewrite_", name, R"({strategy="level",outcome="rewritten")",
                      *bound != '\0' ? ",le=\"" : "", bound, *bound != '\0' ? "\"" : "", "} ",
                      value, "\n");
}

TEST(RunMetricsTest, CountsWhatARewriteCosts) {
  const auto once = AddToMetrics("", RunOf(CostlyReport(), HookRun::Result::kRewritten));
  ASSERT_TRUE(once.ok());
  // 1.05 is in the bucket that ends there; 12 GiB below 16, 9 above 8; 6 GiB both ways.
  EXPECT_THAT(*once, AllOf(HasSubstr(Line("slowdown_ratio_bucket", "1.02", "0")),
                           HasSubstr(Line("slowdown_ratio_bucket", "1.05", "1")),
                           HasSubstr(Line("slowdown_ratio_bucket", "+Inf", "1")),
                           HasSubstr(Line("slowdown_ratio_count", "", "1")),
                           HasSubstr(Line("peak_before_bytes_bucket", "8589934592", "0")),
                           HasSubstr(Line("peak_before_bytes_bucket", "17179869184", "1")),
                           HasSubstr(Line("peak_after_bytes_sum", "", "9663676416")),
                           HasSubstr(Line("swap_bytes_per_step_sum", "", "6442450944")),
                           HasSubstr(Line("swap_bytes_per_step_bucket", "4294967296", "0"))));
  EXPECT_THAT(*once, AllOf(HasSubstr(Line("host_memory_bytes_sum", "", "3489660928")),
                           HasSubstr(Line("need_ratio_bucket", "0.75", "0")),
                           HasSubstr(Line("need_ratio_bucket", "0.9", "1")),
                           HasSubstr("rewrites_by_machine_total{machine=\"p100_pcie\"} 1\n"),
                           HasSubstr("swapped_tensors_total{strategy=\"level\"} 14\n"),
                           Not(HasSubstr("strategy=\"\""))));
  // Who takes it from the cache has the cost, and rewrites nothing.
  const auto twice = AddToMetrics(*once, RunOf(CostlyReport(), HookRun::Result::kCached));
  ASSERT_TRUE(twice.ok());
  EXPECT_THAT(*twice, AllOf(HasSubstr(Line("slowdown_ratio_count", "", "2")),
                            HasSubstr(Line("slowdown_ratio_sum", "", "2.1000000000000001")),
                            HasSubstr("rewrites_by_machine_total{machine=\"p100_pcie\"} 2\n"),
                            HasSubstr("swapped_tensors_total{strategy=\"level\"} 14\n"),
                            HasSubstr("rewrite_outcomes_total{outcome=\"rewritten\"} 1\n")));
}

TEST(RunMetricsTest, CountsWhatDoesNotFit) {
  HookRun run;
  run.result = HookRun::Result::kFailedOpen;
  run.failure = ExitCode::kDoesNotFit;
  run.strategy = v1::STRATEGY_BUDGET;
  run.need_ratio = 1.2;
  const auto text = AddToMetrics("", run);
  ASSERT_TRUE(text.ok());
  const std::string need = "need_ratio_bucket{strategy=\"budget\",outcome=\"does_not_fit\",le=";
  EXPECT_THAT(*text, AllOf(HasSubstr(need + "\"1.1\"} 0\n"), HasSubstr(need + "\"1.25\"} 1\n"),
                           HasSubstr("outcomes_total{outcome=\"does_not_fit\"} 1\n"),
                           HasSubstr("failures_total{reason=\"memory\"} 1\n")));
}

TEST(RunMetricsTest, SeriesAreThereAtZeroAndInOrder) {
  const auto text = AddToMetrics("", HookRun());
  ASSERT_TRUE(text.ok());
  for (const char* strategy : {"budget", "level", "scope"}) {
    EXPECT_THAT(*text, HasSubstr(absl::StrCat("swap_bytes_per_step_count{strategy=\"", strategy,
                                              "\",outcome=\"rewritten\"} 0\n")));
  }
  EXPECT_THAT(*text, AllOf(HasSubstr("machine_total{machine=\"none\"} 0\n"),
                           HasSubstr("machine_total{machine=\"custom\"} 0\n"),
                           HasSubstr("machine_total{machine=\"v100_nvlink2\"} 0\n")));
  // As texts they would be in another order.
  const size_t one = text->find(Line("slowdown_ratio_bucket", "1", "0"));
  const size_t two = text->find(Line("slowdown_ratio_bucket", "2", "0"));
  const size_t ten = text->find(Line("slowdown_ratio_bucket", "10", "0"));
  const size_t end = text->find(Line("slowdown_ratio_bucket", "+Inf", "0"));
  EXPECT_LT(one, two);
  EXPECT_LT(two, ten);
  EXPECT_LT(ten, end);
  EXPECT_LT(end, text->find(Line("slowdown_ratio_sum", "", "0")));
  EXPECT_LT(text->size(), size_t{128} << 10);
}

TEST(RunMetricsTest, OlderAndLaterFilesKeepWhatTheyHave) {
  const std::string older =
      "# HELP spillway_hook_runs_total Runs.\n# TYPE spillway_hook_runs_total counter\n"
      "spillway_hook_runs_total{result=\"cached\"} 41\n";
  const std::string later =
      "# HELP spillway_hook_moons_total Of a later version.\n"
      "# TYPE spillway_hook_moons_total counter\nspillway_hook_moons_total{phase=\"new\"} 3\n";
  const auto text = AddToMetrics(older + later, RunOf(CostlyReport(), HookRun::Result::kCached));
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, AllOf(HasSubstr("runs_total{result=\"cached\"} 42\n"), HasSubstr(later),
                           HasSubstr(Line("slowdown_ratio_count", "", "1"))));
  const auto again = AddToMetrics(*text, RunOf(CostlyReport(), HookRun::Result::kCached));
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(*again, HasSubstr(later));
  EXPECT_EQ(again->find(later), again->rfind(later));
  EXPECT_EQ(std::count(again->begin(), again->end(), '\n'),
            std::count(text->begin(), text->end(), '\n'));
}

TEST(RunMetricsTest, AMachineThatNobodyKnowsMakesNoSeries) {
  v1::RewriteReport report = CostlyReport();
  report.mutable_hardware()->mutable_hardware()->set_preset("of a server \"x\"\n");
  const auto text = AddToMetrics("", RunOf(report, HookRun::Result::kRewritten));
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("machine_total{machine=\"custom\"} 1\n"));
}

TEST(RunTextTest, SaysWhatSwappingCosts) {
  PreparedGraph prepared;
  prepared.graph_path = "/cache/x.pb";
  prepared.report = CostlyReport();
  EXPECT_EQ(RunText("graph.pb", prepared),
            "graph.pb -> /cache/x.pb: fits with 14 swaps, 3.00 GiB, 5 % slower, host memory "
            "3.25 GiB");
  prepared.cached = true;
  EXPECT_EQ(RunText("graph.pb", prepared),
            "graph.pb -> /cache/x.pb: fits with 14 swaps, 3.00 GiB, 5 % slower, host memory "
            "3.25 GiB (from the cache)");
}

TEST(RunTextTest, AGraphThatStaysFitsOrNot) {
  PreparedGraph prepared;
  prepared.report.set_outcome(v1::OUTCOME_NOTHING_TO_DO);
  prepared.report.set_summary("no tensor qualified");
  EXPECT_EQ(RunText("g", prepared),
            "g stays as it is: unknown whether it fits; no tensor qualified");
  v1::Forecast* forecast = prepared.report.mutable_forecast_before();
  forecast->set_fit(v1::FIT_FITS);
  forecast->add_devices()->set_peak_bytes(2 * kHookGiB);
  forecast->mutable_devices(0)->set_budget_bytes(8 * kHookGiB);
  EXPECT_EQ(RunText("g", prepared),
            "g stays as it is: fits, 2.00 GiB of 8.00 GiB; no tensor qualified");
  prepared.report.add_fits()->set_not_needed(true);
  EXPECT_EQ(RunText("g", prepared), "g stays as it is: fits, 2.00 GiB of 8.00 GiB");
}

}  // namespace
}  // namespace spillway::cli
