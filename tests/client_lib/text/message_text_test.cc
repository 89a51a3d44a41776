// Texts by name, of any sender's bytes.
#include "client_lib/text/message_text.h"

#include <string>

#include "client_lib/text/summary.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "spillway/v1/check.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "tests/testing/random.h"

namespace spillway::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Random;
using ::testing::StartsWith;

std::string Text(const std::string& name, const std::string& content) {
  const absl::StatusOr<std::string> text = TextOf(name, content);
  if (text.ok()) return *text;
  EXPECT_EQ(core::GetErrorInfo(text.status()).reason(), "BAD_OPTION");
  return "error: " + std::string(text.status().message());
}

v1::RewriteReport Report() {
  v1::RewriteReport report;
  report.set_outcome(v1::OUTCOME_REWRITTEN);
  report.set_summary("2 tensors will be swapped.");
  v1::DeviceReport* device = report.add_devices();
  device->set_swapped_tensor_count(2);
  device->set_unknown_size_count(2);
  report.mutable_forecast_before()->add_devices()->set_peak_bytes(2048);
  report.add_warnings()->set_message("give step.batch_size");
  return report;
}

TEST(MessageTextTest, AMessageAsTheProgramPrintsIt) {
  const v1::RewriteReport report = Report();
  EXPECT_EQ(Text("RewriteReport", report.SerializeAsString()), FormatSummary(report));
  EXPECT_THAT(FormatSummary(report), HasSubstr("  warning  give step.batch_size\n"));
}

TEST(MessageTextTest, ALine) {
  v1::RewriteReport report = Report();
  report.clear_forecast_before();
  EXPECT_EQ(Text("RewriteReport line", report.SerializeAsString()),
            "unknown whether it fits with 2 swaps, -, slow-down unknown, host memory unknown");
  report.set_outcome(v1::OUTCOME_NOTHING_TO_DO);
  EXPECT_EQ(Text("RewriteReport line", report.SerializeAsString()), report.summary());
}

TEST(MessageTextTest, NumbersAndNames) {
  EXPECT_EQ(Text("bytes", "1536"), "1.50 KiB");
  EXPECT_EQ(Text("nanoseconds", "12340000"), "12.3 ms");
  EXPECT_EQ(Text("near names", "leval\nbudget\nlevel\nscope"), "; did you mean 'level'?");
  EXPECT_EQ(Text("near names", "leval"), "");
  EXPECT_EQ(Text("bytes", "1.5"), "error: message is not a decimal number (3 bytes)");
  EXPECT_EQ(Text("nanoseconds", ""), "error: message is not a decimal number (0 bytes)");
}

TEST(MessageTextTest, AnotherNameOrMessage) {
  EXPECT_THAT(Text("Report", ""), AllOf(StartsWith("error: name is 'Report'; give one of "),
                                        HasSubstr("GraphDiff, RunCheck, ")));
  EXPECT_EQ(Text("RunCheck", "\xff"),
            "error: message is not a serialized spillway.v1.RunCheck (1 byte)");
}

// Each kind gives a text or an error for each message, whole, cut or damaged.
TEST(MessageTextTest, AnyBytes) {
  v1::SimulateReport step;
  *step.mutable_forecast() = Report().forecast_before();
  step.add_targets("loss");
  step.add_memory()->add_timeline()->set_bytes(5);
  v1::ExploreReport sizes;
  *sizes.add_sizes()->mutable_unswapped() = step.forecast();
  v1::GraphSummary graph;
  graph.add_largest_tensors()->set_tensor("x:0");
  v1::GraphDiff diff;
  diff.add_swaps()->add_swap_ins()->add_triggers("t");
  v1::RunCheck check;
  check.add_devices()->mutable_step_peak_bytes()->set_seen(7);
  v1::GetCapabilitiesResponse capabilities;
  capabilities.mutable_limits()->set_max_graph_bytes(1 << 20);
  const v1::RewriteReport report = Report();
  const google::protobuf::LogSilencer silencer;  // It logs each text that is not UTF-8.
  Random random(1);
  int texts = 0, errors = 0;
  for (const google::protobuf::Message* message :
       std::initializer_list<const google::protobuf::Message*>{&step, &sizes, &graph, &diff, &check,
                                                               &capabilities, &report}) {
    const std::string whole = message->SerializeAsString();
    for (const char* name :
         {"RewriteReport", "RewriteReport line", "Forecast", "SimulateReport", "ExploreReport",
          "ExploredSize", "GraphSummary", "GraphDiff", "RunCheck", "GetCapabilitiesResponse"}) {
      for (size_t size = 0; size <= whole.size(); ++size) {
        std::string bytes = whole.substr(0, size);
        if (size > 0) bytes[random.Below(static_cast<int>(size))] ^= 1 << random.Below(3);
        (TextOf(name, bytes).ok() ? texts : errors)++;
      }
    }
  }
  EXPECT_GT(texts, 100);
  EXPECT_GT(errors, 100);
}

}  // namespace
}  // namespace spillway::text
