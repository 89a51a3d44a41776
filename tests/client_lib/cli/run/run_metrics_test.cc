// The metrics of hooks, without a program: each run's additions.
#include "client_lib/cli/run/run_metrics.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/run/run_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"

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

// `NAME{strategy="level",outcome="rewritten"} VALUE`.
std::string Line(const char* name, const char* value) {
  return absl::StrCat("spillway_hook_rewrite_", name, R"({strategy="level",outcome="rewritten"} )",
                      value, "\n");
}

TEST(RunMetricsTest, CountsWhatARewriteCosts) {
  const HookMetrics once = AddToMetrics("", RunOf(CostlyReport(), HookRun::Result::kRewritten));
  // 9 of 10 GiB; 3 GiB each way.
  EXPECT_THAT(once.text, AllOf(HasSubstr(Line("slowdown_ratio_sum", "1.05")),
                               HasSubstr(Line("slowdown_ratio_count", "1")),
                               HasSubstr(Line("peak_before_bytes_sum", "12884901888")),
                               HasSubstr(Line("peak_after_bytes_sum", "9663676416")),
                               HasSubstr(Line("swap_bytes_per_step_sum", "6442450944")),
                               HasSubstr(Line("host_memory_bytes_sum", "3489660928")),
                               HasSubstr(Line("need_ratio_sum", "0.90000000000000002"))));
  EXPECT_THAT(once.text, AllOf(HasSubstr("rewrites_by_machine_total{machine=\"p100_pcie\"} 1\n"),
                               HasSubstr("swapped_tensors_total{strategy=\"level\"} 14\n"),
                               HasSubstr("# TYPE spillway_hook_runs_total counter\n"),
                               HasSubstr("# TYPE spillway_hook_rewrite_need_ratio summary\n"),
                               Not(HasSubstr("strategy=\"\"")), Not(HasSubstr("le=\""))));
  // A run from the cache has the cost, and rewrites nothing.
  const HookMetrics twice =
      AddToMetrics(once.state, RunOf(CostlyReport(), HookRun::Result::kCached));
  EXPECT_FALSE(twice.was_damaged);
  EXPECT_THAT(twice.text, AllOf(HasSubstr(Line("slowdown_ratio_count", "2")),
                                HasSubstr(Line("slowdown_ratio_sum", "2.1000000000000001")),
                                HasSubstr("rewrites_by_machine_total{machine=\"p100_pcie\"} 2\n"),
                                HasSubstr("swapped_tensors_total{strategy=\"level\"} 14\n"),
                                HasSubstr("rewrite_outcomes_total{outcome=\"rewritten\"} 1\n")));
}

// What `kept` graphs cost without swaps is unknown.
TEST(RunMetricsTest, OnlyNewRewritesHaveASlowdown) {
  v1::RewriteReport report = CostlyReport();
  report.set_outcome(v1::OUTCOME_KEPT);
  const HookMetrics metrics = AddToMetrics("", RunOf(report, HookRun::Result::kUnchanged));
  EXPECT_THAT(metrics.text,
              AllOf(HasSubstr("slowdown_ratio_count{strategy=\"level\",outcome=\"kept\"} 0\n"),
                    HasSubstr("peak_after_bytes_count{strategy=\"level\",outcome=\"kept\"} 1\n")));
}

TEST(RunMetricsTest, ADryRunSwapsNothingAndSaysWhatItWould) {
  v1::RewriteReport report = CostlyReport();
  report.set_outcome(v1::OUTCOME_DRY_RUN);
  const HookMetrics metrics = AddToMetrics("", RunOf(report, HookRun::Result::kUnchanged));
  const std::string labels = R"({strategy="level",outcome="dry_run"} )";
  EXPECT_THAT(metrics.text, AllOf(HasSubstr("slowdown_ratio_sum" + labels + "1.05\n"),
                                  HasSubstr("swap_bytes_per_step_sum" + labels + "6442450944\n"),
                                  HasSubstr("outcomes_total{outcome=\"dry_run\"} 1\n"),
                                  HasSubstr("swapped_tensors_total{strategy=\"level\"} 0\n")));
}

TEST(RunMetricsTest, CountsWhatDoesNotFit) {
  HookRun run;
  run.result = HookRun::Result::kFailedOpen;
  run.failure = ExitCode::kDoesNotFit;
  run.strategy = v1::STRATEGY_BUDGET;
  run.need_ratio = 1.25;
  const std::string need = "{strategy=\"budget\",outcome=\"does_not_fit\"} ";
  EXPECT_THAT(AddToMetrics("", run).text,
              AllOf(HasSubstr("need_ratio_sum" + need + "1.25\n"),
                    HasSubstr("need_ratio_count" + need + "1\n"),
                    HasSubstr("outcomes_total{outcome=\"does_not_fit\"} 1\n"),
                    HasSubstr("failures_total{reason=\"memory\"} 1\n")));
}

TEST(RunMetricsTest, SeriesAreThereAtZero) {
  const std::string text = AddToMetrics("", HookRun()).text;
  for (const char* strategy : {"budget", "level", "scope"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("swap_bytes_per_step_count{strategy=\"", strategy,
                                             "\",outcome=\"rewritten\"} 0\n")));
  }
  EXPECT_THAT(text, AllOf(HasSubstr("machine_total{machine=\"none\"} 0\n"),
                          HasSubstr("machine_total{machine=\"custom\"} 0\n"),
                          HasSubstr("machine_total{machine=\"v100_nvlink2\"} 0\n")));
  EXPECT_LT(text.size(), size_t{32} << 10);
}

TEST(RunMetricsTest, OlderAndLaterCountsAreKept) {
  const std::string older =
      R"({"spillway_hook_runs_total":{"help":"Runs.","type":"counter",)"
      R"("series":{"{result=\"cached\"}":41}},)"
      R"("spillway_hook_moons_total":{"help":"Of a later version.","type":"counter",)"
      R"("series":{"{phase=\"new\"}":3}}})";
  const std::string later =
      "# HELP spillway_hook_moons_total Of a later version.\n"
      "# TYPE spillway_hook_moons_total counter\nspillway_hook_moons_total{phase=\"new\"} 3\n";
  const HookMetrics once = AddToMetrics(older, RunOf(CostlyReport(), HookRun::Result::kCached));
  EXPECT_FALSE(once.was_damaged);
  EXPECT_THAT(once.text, AllOf(HasSubstr("runs_total{result=\"cached\"} 42\n"), HasSubstr(later),
                               HasSubstr(Line("slowdown_ratio_count", "1"))));
  const HookMetrics twice =
      AddToMetrics(once.state, RunOf(CostlyReport(), HookRun::Result::kCached));
  EXPECT_THAT(twice.text, HasSubstr(later));
  EXPECT_EQ(std::count(twice.text.begin(), twice.text.end(), '\n'),
            std::count(once.text.begin(), once.text.end(), '\n'));
}

// No damage adds a line to the text, or ends the program.
TEST(RunMetricsTest, DamagedCountsStartFromZero) {
  const std::string good = AddToMetrics("", HookRun()).state;
  std::vector<std::string> damaged = {
      "x",
      "[]",
      "null",
      R"({"spillway_hook_x":1})",
      R"({"other_total":{}})",
      R"({"spillway_hook_x_total":{"help":"a","type":"counter"}})",
      R"({"spillway_hook_x_total":{"help":"a\nb 1","type":"counter","series":{}}})",
      R"({"spillway_hook_x_total":{"help":"a","type":3,"series":{}}})",
      R"({"spillway_hook_x_total":{"help":"a","type":"counter","series":[]}})",
      R"({"spillway_hook_x_total":{"help":"a","type":"counter","series":{"":-1}}})",
      R"({"spillway_hook_x_total":{"help":"a","type":"counter","series":{"":"1"}}})",
      R"({"spillway_hook_x_total":{"help":"a","type":"counter","series":{"\nb":1}}})"};
  for (size_t size = 1; size + 1 < good.size(); size += 97) damaged.push_back(good.substr(0, size));
  for (const std::string& state : damaged) {
    const HookMetrics metrics = AddToMetrics(state, HookRun());
    EXPECT_TRUE(metrics.was_damaged) << state;
    EXPECT_EQ(metrics.state, good) << state;
  }
}

TEST(RunMetricsTest, AMachineThatNobodyKnowsMakesNoSeries) {
  v1::RewriteReport report = CostlyReport();
  report.mutable_hardware()->mutable_hardware()->set_preset("of a server \"x\"\n");
  EXPECT_THAT(AddToMetrics("", RunOf(report, HookRun::Result::kRewritten)).text,
              HasSubstr("machine_total{machine=\"custom\"} 1\n"));
}

TEST(RunMetricsTest, ThirtyHooksAtOnceCountThirty) {
  const spillway::testing::TempDir dir;
  std::vector<std::thread> hooks;
  for (int i = 0; i < 30; ++i) {
    hooks.emplace_back([&dir] {
      const auto warning =
          AddToMetricsFile(dir / "m.prom", RunOf(CostlyReport(), HookRun::Result::kRewritten));
      EXPECT_TRUE(warning.ok()) << warning.status();
      EXPECT_EQ(warning.value_or(""), "");
    });
  }
  for (std::thread& hook : hooks) hook.join();
  EXPECT_THAT(spillway::testing::ReadFile(dir / "m.prom"),
              AllOf(HasSubstr("runs_total{result=\"rewritten\"} 30\n"),
                    HasSubstr("swapped_tensors_total{strategy=\"level\"} 420\n")));
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

TEST(RunTextTest, ThatItMayRunOutComesFirstWithTheFlag) {
  PreparedGraph prepared;
  prepared.graph_path = "/cache/x.pb";
  prepared.report = CostlyReport();
  v1::Warning& warning = *prepared.report.add_warnings();
  warning.set_code(v1::WARNING_CODE_MAY_RUN_OUT);
  warning.set_message("fits in 17 of 20 variations: ...; raise allocator_reserve");
  EXPECT_THAT(
      RunText("graph.pb", prepared),
      HasSubstr("x.pb: fits in 17 of 20 variations: ...; raise --allocator-reserve; fits "));
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
