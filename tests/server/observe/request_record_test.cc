#include "server/observe/request_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/civil_time.h"
#include "rewrite_core/base/error.h"

namespace spillway::server {
namespace {

using testing::HasSubstr;
using testing::Not;

absl::Time End() {
  return absl::FromCivil(absl::CivilSecond(2026, 1, 31, 12, 0, 0), absl::UTCTimeZone()) +
         absl::Milliseconds(250);
}

// A rewrite of two GPUs, of which the second is the fuller one.
v1::RewriteReport TwoGpuReport() {
  v1::RewriteReport report;
  report.set_outcome(v1::OUTCOME_REWRITTEN);
  v1::DeviceReport& swaps = *report.add_devices();
  swaps.set_swapped_tensor_count(14);
  swaps.set_swap_out_bytes(3000);
  swaps.set_swap_in_bytes(5000);
  for (const int i : {0, 1}) {
    v1::DeviceForecast& before = *report.mutable_forecast_before()->add_devices();
    before.set_device(i == 0 ? "/gpu:0" : "/gpu:1");
    before.set_peak_bytes(i == 0 ? 7000 : 9000);
    before.set_budget_bytes(8000);
    v1::DeviceForecast& after = *report.mutable_forecast_after()->add_devices();
    after.set_device(before.device());
    after.set_peak_bytes(i == 0 ? 7000 : 6000);
  }
  v1::DeviceFit& fit = *report.add_fits();
  fit.set_device("/gpu:1");
  fit.set_budget_bytes(8000);
  fit.set_need_bytes(7200);
  fit.set_full_speed_step_time_ns(1'000'000);
  report.mutable_forecast_after()->set_step_time_ns(1'051'234);
  report.mutable_forecast_after()->set_host_peak_bytes(2500);
  report.mutable_forecast_after()->set_fit(v1::FIT_FITS);
  report.mutable_hardware()->mutable_hardware()->set_preset("t4");
  return report;
}

RequestRecord Swapping() {
  RequestRecord record;
  record.method = Method::kStreamRewrite;
  record.strategy = v1::STRATEGY_LEVEL;
  record.bytes_in = 10;
  record.bytes_out = 20;
  record.duration = absl::Microseconds(1250);
  record.caller.peer = "ipv4:127.0.0.1:50412";
  record.id = "8c5f0f0e5d1c2b3a";
  record.job = {"4711_3", "alice", "gpu", "resnet50"};
  record.rewrite =
      RecordOf(absl::OkStatus(), TwoGpuReport(), v1::RewriteOptions(), AnsweredFrom::kCache);
  return record;
}

TEST(RequestRecordTest, ALineOfTheJournalHasAllThatIsKnown) {
  EXPECT_EQ(JournalLine(Swapping(), End()),
            R"({"time":"2026-01-31T12:00:00.250Z","method":"StreamRewrite","strategy":"level",)"
            R"("code":"OK","bytes_in":10,"bytes_out":20,"ms":1.3,"peer":"ipv4:127.0.0.1:50412",)"
            R"("id":"8c5f0f0e5d1c2b3a","job":"4711_3","user":"alice","queue":"gpu",)"
            R"("model":"resnet50","outcome":"rewritten","answered_from":"cache","machine":"t4",)"
            R"("fit":"fits","swapped_tensors":14,"swap_out_bytes":3000,"swap_in_bytes":5000,)"
            R"("gpus":2,"peak_before_bytes":9000,"peak_after_bytes":6000,"budget_bytes":8000,)"
            R"("need_bytes":7200,"host_peak_bytes":2500,"step_before_ns":1000000,)"
            R"("step_after_ns":1051234,"slowdown":1.0512})");
}

TEST(RequestRecordTest, WhatIsNotKnownIsLeftOut) {
  RequestRecord record;
  record.method = Method::kInspect;
  record.caller.peer = "unix:";
  record.id = "x";
  EXPECT_EQ(JournalLine(record, End()),
            R"({"time":"2026-01-31T12:00:00.250Z","method":"Inspect","strategy":"none",)"
            R"("code":"OK","bytes_in":0,"bytes_out":0,"ms":0.0,"peer":"unix:","id":"x"})");
}

TEST(RequestRecordTest, TheLogSaysTheSameAndWhyItFailed) {
  RequestRecord record = Swapping();
  const std::string line = JournalLine(record, End());
  LogFields fields = FieldsOf(record);
  LogFields with_time = {{"time", "2026-01-31T12:00:00.250Z"}};
  with_time.update(fields);
  EXPECT_EQ(with_time.dump(), line);
  record.code = absl::StatusCode::kInvalidArgument;
  record.reason = v1::ERROR_REASON_CYCLE;
  record.error = "node 'secret/layer' is on a cycle";
  fields = FieldsOf(record);
  EXPECT_EQ(fields["reason"], "CYCLE");
  EXPECT_EQ(fields["error"], record.error);
  EXPECT_THAT(JournalLine(record, End()), HasSubstr(R"("reason":"CYCLE")"));
  EXPECT_THAT(JournalLine(record, End()), Not(HasSubstr("secret"))) << "nothing of the graph";
}

// The address reported by a proxy.
TEST(RequestRecordTest, ALineIsOneLineOfAsciiWhateverComesIn) {
  RequestRecord record;
  record.caller.peer = "a\nb\"\xff\xe2\x82\xac";
  const std::string line = JournalLine(record, End());
  for (const unsigned char c : line) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << line;
  EXPECT_TRUE(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false).is_object()) << line;
}

TEST(RewriteRecordTest, OfWhatDoesNotFitTheErrorTellsWhatWouldDo) {
  const absl::Status error =
      core::Error(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT, "too much",
                  {{"budget_bytes", "8000"}, {"smallest_budget_bytes", "10000"}});
  v1::RewriteOptions options;
  options.mutable_step()->mutable_hardware()->set_preset("a10");
  const auto record = RecordOf(error, v1::RewriteReport(), options, AnsweredFrom::kShared);
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(record->does_not_fit());
  EXPECT_EQ(OutcomeName(record->outcome), "does_not_fit");
  EXPECT_EQ(record->need_ratio(), 1.25);
  EXPECT_EQ(record->slowdown(), std::nullopt);
  EXPECT_EQ(record->figures.machine, "a10");
  RequestRecord request;
  request.code = absl::StatusCode::kFailedPrecondition;
  request.reason = v1::ERROR_REASON_DOES_NOT_FIT;
  request.rewrite = record;
  EXPECT_THAT(JournalLine(request, End()),
              HasSubstr(R"("reason":"DOES_NOT_FIT","outcome":"does_not_fit",)"
                        R"("answered_from":"shared","machine":"a10","fit":"does_not_fit",)"
                        R"("budget_bytes":8000,"need_bytes":10000})"));
}

TEST(RewriteRecordTest, WhereNothingWouldDoThereIsNoRatio) {
  const absl::Status error =
      core::Error(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT, "too much",
                  {{"budget_bytes", "8000"}});
  const auto record = RecordOf(error, {}, {}, AnsweredFrom::kWork);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->need_ratio(), std::nullopt);
  EXPECT_EQ(record->figures.machine, "p100_pcie") << "the default";
}

TEST(RewriteRecordTest, OtherErrorsHaveNone) {
  EXPECT_FALSE(RecordOf(absl::CancelledError("gone"), {}, {}, AnsweredFrom::kWork).has_value());
  EXPECT_FALSE(
      RecordOf(core::InvalidError(v1::ERROR_REASON_CYCLE, "a cycle"), {}, {}, AnsweredFrom::kWork)
          .has_value());
}

// A kept graph already has swaps, whose cost is unknown.
TEST(RewriteRecordTest, WhatIsKeptHasNoSlowdown) {
  v1::RewriteReport report = TwoGpuReport();
  for (const v1::Outcome outcome : {v1::OUTCOME_KEPT, v1::OUTCOME_FOREIGN}) {
    report.set_outcome(outcome);
    EXPECT_EQ(RecordOf(absl::OkStatus(), report, {}, AnsweredFrom::kWork)->slowdown(),
              std::nullopt);
  }
}

}  // namespace
}  // namespace spillway::server
