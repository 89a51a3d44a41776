// Health and reflection: asked without credentials and outside the budget, so each caller's use of
// them is limited.
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/calls/health_service.h"
#include "server/calls/reflection_service.h"
#include "tests/server/raw_stream.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kReflect[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kListServices[] = "\x3a\x01*";

// Of this process.
int Threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

class HealthTest : public ServerFixture {
 protected:
  HealthTest() { options_.limits.set_max_concurrent_streams(10'000); }

  Options options_ = TestOptions();
};

TEST_F(HealthTest, EachConnectionHasAWatchAndFewHaveMore) {
  Start(options_);
  std::vector<std::unique_ptr<RawStream>> watches;
  const auto watch = [&](const std::shared_ptr<grpc::Channel>& channel) {
    watches.push_back(std::make_unique<RawStream>(channel, kWatch, HealthRequest("")));
    return watches.back()->Next();
  };
  for (int i = 0; i < 1 + HealthService::kMaxMoreWatches; ++i) {
    ASSERT_EQ(watch(client_->channel()), kServing) << i;
  }
  EXPECT_EQ(watch(client_->channel()), std::nullopt);
  EXPECT_EQ(watches.back()->End().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  const TestClient other(address());
  EXPECT_EQ(watch(other.channel()), kServing) << "its first";
  EXPECT_EQ(watch(other.channel()), std::nullopt);
  watches.erase(watches.begin());
  EXPECT_TRUE(Eventually([&] { return watch(other.channel()) == kServing; }))
      << "once there is room";
}

TEST_F(HealthTest, AWatchOfAnUnknownServiceSaysSo) {
  RawStream watch(client_->channel(), kWatch, HealthRequest("other"));
  EXPECT_EQ(watch.Next(), (std::string{0x08, 0x03}));
}

TEST_F(HealthTest, AWatchEndsByAge) {
  options_.clock = &clock_;
  Start(options_);
  RawStream watch(client_->channel(), kWatch, HealthRequest(""));
  EXPECT_EQ(watch.Next(), kServing);
  clock_.Advance(HealthService::kMaxWatchAge);
  EXPECT_EQ(watch.Next(), std::nullopt);
  EXPECT_TRUE(watch.End().ok()) << watch.End().error_message();
}

// As Spillway's client asks (client_lib/internal/channel.cc).
TEST_F(HealthTest, ClientsThatWatchThreeServersSeeNoGapWhenWatchesEnd) {
  options_.clock = &clock_;
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::string> addresses;
  for (int i = 0; i < 3; ++i) {
    auto server = Server::BuildAndStart(options_);
    ASSERT_TRUE(server.ok()) << server.status();
    addresses.push_back(absl::StrCat("127.0.0.1:", (*server)->port()));
    servers.push_back(*std::move(server));
  }
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(
      R"({"loadBalancingConfig":[{"round_robin":{}}],)"
      R"("healthCheckConfig":{"serviceName":"spillway.v1.RewriteService"}})");
  const auto channel =
      grpc::CreateCustomChannel(absl::StrCat("ipv4:", absl::StrJoin(addresses, ",")),
                                grpc::InsecureChannelCredentials(), arguments);
  const auto stub = v1::RewriteService::NewStub(channel);
  for (int i = 0; i < 300; ++i) {
    if (i % 50 == 25) clock_.Advance(HealthService::kMaxWatchAge);
    grpc::ClientContext context;
    v1::GetCapabilitiesResponse response;
    const grpc::Status status = stub->GetCapabilities(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
}

TEST_F(HealthTest, ReflectionTakesNoThreads) {
  Start(options_);
  std::vector<std::unique_ptr<RawStream>> streams;
  const auto reflect = [&] {
    streams.push_back(std::make_unique<RawStream>(client_->channel(), kReflect, kListServices,
                                                  /*half_closes=*/false));
    return streams.back()->Next();
  };
  ASSERT_TRUE(reflect().has_value());
  const int threads = Threads();
  for (int i = 1; i < ReflectionService::kMaxStreams; ++i) {
    ASSERT_TRUE(reflect().has_value()) << i;
  }
  EXPECT_FALSE(reflect().has_value());
  EXPECT_EQ(streams.back()->End().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_LT(Threads(), threads + 20);
  streams.erase(streams.begin());
  EXPECT_TRUE(Eventually([&] { return reflect().has_value(); })) << "once there is room";
}

TEST_F(HealthTest, AQuestionOfReflectionIsShort) {
  // file_by_filename (field 3) of 20,000 bytes.
  RawStream stream(client_->channel(), kReflect,
                   absl::StrCat("\x1a\xa0\x9c\x01", std::string(20'000, 'f')));
  EXPECT_FALSE(stream.Next().has_value());
  EXPECT_EQ(stream.End().error_code(), StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(HealthTest, AReflectionThatAsksNothingIsCancelledByTheIdleTimeout) {
  options_.clock = &clock_;
  options_.idle_timeout = absl::Seconds(60);
  Start(options_);
  RawStream stream(client_->channel(), kReflect, kListServices, /*half_closes=*/false);
  ASSERT_TRUE(stream.Next().has_value());
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(options_.idle_timeout);
    return stream.ended();
  }));
  EXPECT_EQ(stream.End().error_code(), StatusCode::CANCELLED);
}

}  // namespace
}  // namespace spillway::server
