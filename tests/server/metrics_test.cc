#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <string>

#include "rewrite_core/strategy/strategies.h"
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
    return FakeRewrite("g", {}, {}, core::StopToken(), nullptr).value().report();
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
       {"inflight_bytes", "queue_full", "draining", "unknown_caller", "quota"}) {
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
  const std::string text = Text();
  for (const char* line : {
           "# HELP spillway_swap_out_bytes_per_step_total Bytes that one training step of each "
           "rewritten graph copies to the host, summed.\n"
           "# TYPE spillway_swap_out_bytes_per_step_total counter\n",
           "spillway_swapped_tensors_total{strategy=\"scope\"} 10\n",
           "spillway_unknown_size_tensors_total{strategy=\"scope\"} 4\n",
           "spillway_swap_out_nodes_total{strategy=\"scope\"} 14\n",
           "spillway_swap_in_nodes_total{strategy=\"scope\"} 22\n",
           "spillway_swap_out_bytes_per_step_total{strategy=\"scope\"} 4002\n",
           "spillway_swap_in_bytes_per_step_total{strategy=\"scope\"} 12002\n",
           "spillway_swap_in_bytes_per_step_total{strategy=\"strip\"} 0\n",
           "spillway_nodes_added_total{strategy=\"scope\"} 34\n",
           "spillway_rewrite_outcomes_total{outcome=\"rewritten\",strategy=\"scope\"} 2\n",
           "spillway_rewrite_outcomes_total{outcome=\"kept\",strategy=\"scope\"} 0\n",
           "spillway_stage_duration_seconds_sum{stage=\"apply\"} 0.5\n",
           "spillway_stage_duration_seconds_count{stage=\"apply\"} 2\n",
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
  EXPECT_THAT(Text(), Not(HasSubstr("users_")));
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
  // Field 15, a message: what a client sends that knows a strategy of a later version.
  ASSERT_TRUE(newer.ParseFromString(std::string("\x7a\x00", 2)));
  EXPECT_EQ(StrategyOf(newer), v1::STRATEGY_UNSPECIFIED);
}

}  // namespace
}  // namespace spillway::server
