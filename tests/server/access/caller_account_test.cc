#include "server/access/caller_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <string>

#include "rewrite_core/base/error.h"

namespace spillway::server {
namespace {

class CallerAccountTest : public testing::Test {
 protected:
  CallerAccount Make(const AccessFile::Quota& quota) {
    return {"team-a", metrics_.OfCaller("team-a"), quota, now_};
  }

  // Expects that `verdict` is a refusal by that quota, with that `wait`.
  void ExpectRefused(const CallerAccount::Verdict& verdict, const std::string& quota,
                     absl::Duration wait) {
    EXPECT_EQ(verdict.status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(core::GetErrorReason(verdict.status), v1::ERROR_REASON_OVERLOADED);
    EXPECT_EQ(core::GetErrorInfo(verdict.status).metadata().at("quota"), quota);
    EXPECT_THAT(std::string(verdict.status.message()), testing::HasSubstr("team-a"));
    EXPECT_EQ(verdict.wait, wait);
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  prometheus::Registry registry_;
  Metrics metrics_{registry_, "1.2.3"};
  const CallerCounters counters_ = metrics_.OfCaller("team-a");
};

TEST_F(CallerAccountTest, WithoutQuotasEverythingIsCountedAndNothingRefused) {
  CallerAccount account = Make({});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(account.Begin(now_).status.ok());
    ASSERT_TRUE(account.ChargeGraphs(1 << 30, now_).status.ok());
    ASSERT_TRUE(account.MayWork(now_).status.ok());
    account.ChargeCpu(absl::Seconds(2), now_);
  }
  EXPECT_EQ(counters_.requests->Value(), 1000);
  EXPECT_EQ(counters_.graph_bytes->Value(), 1000.0 * (1 << 30));
  EXPECT_EQ(counters_.cpu_seconds->Value(), 2000);
}

TEST_F(CallerAccountTest, RequestsPerSecondWithABurst) {
  AccessFile::Quota quota;
  quota.set_requests_per_second(2);
  quota.set_burst_seconds(3);
  CallerAccount account = Make(quota);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(account.Begin(now_).status.ok()) << i;
  ExpectRefused(account.Begin(now_), "requests_per_second", absl::Milliseconds(500));
  EXPECT_EQ(counters_.rejected[static_cast<int>(QuotaKind::kRequests)]->Value(), 1);
  EXPECT_EQ(counters_.requests->Value(), 6) << "what is refused is not let in";
  now_ += absl::Milliseconds(500);
  EXPECT_TRUE(account.Begin(now_).status.ok());
  EXPECT_FALSE(account.Begin(now_).status.ok());
}

TEST_F(CallerAccountTest, ARateBelowOneRequestLetsOneIn) {
  AccessFile::Quota quota;
  quota.set_requests_per_second(0.01);
  CallerAccount account = Make(quota);
  EXPECT_TRUE(account.Begin(now_).status.ok());
  ExpectRefused(account.Begin(now_), "requests_per_second", absl::Seconds(100));
}

TEST_F(CallerAccountTest, RequestsInFlight) {
  AccessFile::Quota quota;
  quota.set_requests_in_flight(2);
  CallerAccount account = Make(quota);
  ASSERT_TRUE(account.Begin(now_).status.ok());
  ASSERT_TRUE(account.Begin(now_).status.ok());
  ExpectRefused(account.Begin(now_), "requests_in_flight", absl::ZeroDuration());
  account.End();
  EXPECT_TRUE(account.Begin(now_).status.ok());
  EXPECT_FALSE(account.Begin(now_).status.ok());
}

TEST_F(CallerAccountTest, GraphBytesAreOverdrawnOnceAndPaidOff) {
  AccessFile::Quota quota;
  quota.set_graph_bytes_per_second(100);  // And 1,000 accumulated.
  CallerAccount account = Make(quota);
  ASSERT_TRUE(account.Begin(now_).status.ok());
  ASSERT_TRUE(account.Begin(now_).status.ok());
  ASSERT_TRUE(account.ChargeGraphs(3000, now_).status.ok()) << "larger than what may be saved";
  ExpectRefused(account.ChargeGraphs(1, now_), "graph_bytes_per_second", absl::Seconds(20));
  ExpectRefused(account.Begin(now_), "graph_bytes_per_second", absl::Seconds(20));
  EXPECT_EQ(counters_.graph_bytes->Value(), 3000);
  now_ += absl::Seconds(20);
  EXPECT_TRUE(account.Begin(now_).status.ok());
}

TEST_F(CallerAccountTest, CpuTimeIsOwedAndPaidOff) {
  AccessFile::Quota quota;
  quota.set_cpu_seconds_per_second(0.5);
  quota.set_burst_seconds(2);
  CallerAccount account = Make(quota);
  ASSERT_TRUE(account.Begin(now_).status.ok());
  ASSERT_TRUE(account.MayWork(now_).status.ok());
  account.ChargeCpu(absl::Seconds(4), now_);
  ExpectRefused(account.MayWork(now_), "cpu_seconds_per_second", absl::Seconds(6));
  ExpectRefused(account.Begin(now_), "cpu_seconds_per_second", absl::Seconds(6));
  now_ += absl::Seconds(6);
  EXPECT_TRUE(account.MayWork(now_).status.ok());
  EXPECT_TRUE(account.Begin(now_).status.ok());
}

TEST_F(CallerAccountTest, AnotherQuotaForgivesNothing) {
  AccessFile::Quota quota;
  quota.set_requests_per_second(1);
  quota.set_burst_seconds(1);
  CallerAccount account = Make(quota);
  ASSERT_TRUE(account.Begin(now_).status.ok());
  quota.set_burst_seconds(5);
  quota.set_requests_in_flight(1);
  account.SetQuota(quota, now_);
  ExpectRefused(account.Begin(now_), "requests_in_flight", absl::ZeroDuration());
  account.End();
  ExpectRefused(account.Begin(now_), "requests_per_second", absl::Seconds(1));
  account.SetQuota({}, now_);
  EXPECT_TRUE(account.Begin(now_).status.ok()) << "no limit any more";
}

}  // namespace
}  // namespace spillway::server
