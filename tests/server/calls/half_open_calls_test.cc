// Calls that never send a message, of every method: they end, and an address has few of them.
#include "server/calls/half_open_calls.h"

#include <prometheus/registry.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/raw_stream.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";

class HalfOpenCallsTest : public ServerFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  HalfOpenCallsTest() {
    options_.limits.set_max_concurrent_streams(10'000);
    options_.clock = &clock_;
  }

  std::unique_ptr<RawStream> Open(const char* method) {
    return std::make_unique<RawStream>(client_->channel(), method, std::nullopt);
  }

  Options options_ = TestOptions();
};

// Every method there is.
INSTANTIATE_TEST_SUITE_P(
    Methods, HalfOpenCallsTest,
    ::testing::Values(kCheck, "/grpc.health.v1.Health/Watch",
                      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                      "/spillway.v1.RewriteService/Rewrite",
                      "/spillway.v1.RewriteService/StreamRewrite",
                      "/spillway.v1.RewriteService/GetCapabilities",
                      "/spillway.v1.RewriteService/Inspect", "/spillway.v1.RewriteService/Simulate",
                      "/spillway.v1.RewriteService/Explore", "/spillway.v1.RewriteService/Diff"));

TEST_P(HalfOpenCallsTest, EndsByTime) {
  options_.idle_timeout = absl::InfiniteDuration();  // Which ends streams later.
  Start(options_);
  const auto call = Open(GetParam());
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(HalfOpenCalls::kTimeout);
    return call->ended();
  })) << "cancelled";
  EXPECT_EQ(call->End().error_code(), StatusCode::CANCELLED);
}

TEST_P(HalfOpenCallsTest, AnAddressHasFew) {
  Start(options_);
  std::vector<std::unique_ptr<RawStream>> calls;
  for (int i = 0; i < HalfOpenCalls::kMostOfHost; ++i) calls.push_back(Open(kCheck));
  // Whichever of them is the last to arrive is refused.
  calls.push_back(Open(GetParam()));
  const auto ended = [&] {
    int count = 0;
    for (const auto& call : calls) count += call->ended() ? 1 : 0;
    return count;
  };
  ASSERT_TRUE(Eventually([&] { return ended() > 0; }));
  for (const auto& call : calls) {
    if (!call->ended()) continue;
    EXPECT_EQ(call->End().error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(call->End().error_message(), HasSubstr("and 4000 may"));
  }
  EXPECT_EQ(ended(), 1) << "one above the limit";
  EXPECT_EQ(Metric("spillway_rejected_requests_total{reason=\"half_open\"}"), 1);
  calls.clear();
  EXPECT_TRUE(Eventually([&] {
    RawStream check(client_->channel(), kCheck, HealthRequest(""));
    return check.Next() == kServing;
  })) << "once there is room";
}

// A call that has sent its message is not half-open, however long its work or its stream takes.
TEST_F(HalfOpenCallsTest, ACallWithAMessageGoesOn) {
  options_.idle_timeout = absl::InfiniteDuration();
  Start(options_);
  RawStream watch(client_->channel(), "/grpc.health.v1.Health/Watch", HealthRequest(""),
                  /*half_closes=*/false);
  ASSERT_EQ(watch.Next(), kServing);
  const auto silent = Open(kCheck);
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(HalfOpenCalls::kTimeout);
    return silent->ended();
  }));
  EXPECT_FALSE(watch.ended());
}

// The message of Rewrite, which comes at the least rate of an upload: gRPC shows it when it is
// whole.
class ArrivingTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRate = 1000;

  ArrivingTest() {
    calls_.SeeReceived([this](const std::string&) { return received_; });
  }

  // Whether a call waits on after so many times the timeout, `bytes` arriving in each.
  bool GoesOn(int64_t bytes, int times, HalfOpenCalls::Message message) {
    bool cancelled = false;
    HalfOpenCalls::Wait wait(calls_, "ipv4:127.0.0.1:1", "127.0.0.1", message,
                             [&cancelled] { cancelled = true; });
    EXPECT_TRUE(wait.status().ok());
    for (int i = 0; i < times; ++i) {
      received_ += bytes;
      clock_.Advance(HalfOpenCalls::kTimeout);
    }
    return !cancelled;
  }

  ManualClock clock_;
  prometheus::Registry registry_;
  Metrics metrics_{registry_, "1"};
  int64_t received_ = 5'000'000;  // Of earlier calls.
  HalfOpenCalls calls_{clock_, metrics_, /*max_message_bytes=*/50'000, kRate};
};

TEST_F(ArrivingTest, ALargeMessageMayTakeAsLongAsItsSize) {
  const int64_t enough = kRate * 10;
  EXPECT_TRUE(GoesOn(enough, 5, HalfOpenCalls::Message::kMayBeLarge));
  EXPECT_FALSE(GoesOn(enough, 6, HalfOpenCalls::Message::kMayBeLarge)) << "none is that large";
  EXPECT_FALSE(GoesOn(enough - 1, 1, HalfOpenCalls::Message::kMayBeLarge)) << "too slow";
  EXPECT_FALSE(GoesOn(enough, 1, HalfOpenCalls::Message::kSmall));
  received_ = -1;  // Unknown.
  EXPECT_TRUE(GoesOn(0, 5, HalfOpenCalls::Message::kMayBeLarge));
  EXPECT_FALSE(GoesOn(0, 6, HalfOpenCalls::Message::kMayBeLarge));
}

}  // namespace
}  // namespace spillway::server
