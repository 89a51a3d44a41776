// The clients' view of a server that stops.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "tests/server/fake_core.h"
#include "tests/server/raw_stream.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;

class DrainTest : public ServerFixture {
 protected:
  void SetUp() override {}
  void TearDown() override {
    // The scrape still works after a drain, so that the last counts are not lost.
    if (server_ != nullptr) {
      EXPECT_EQ(Metric("spillway_inflight_bytes"), 0);
    }
    client_.reset();
    server_.reset();
  }
};

TEST_F(DrainTest, HealthWatchersSeeItAndRunningStreamsFinish) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.drain_timeout = kPatience;
  Start(options);
  RawStream all(client_->channel(), "/grpc.health.v1.Health/Watch", HealthRequest(""));
  RawStream service(client_->channel(), "/grpc.health.v1.Health/Watch",
                    HealthRequest("spillway.v1.RewriteService"));
  EXPECT_EQ(all.Next(), kServing);
  EXPECT_EQ(service.Next(), kServing);

  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(5)));
  ASSERT_TRUE(Eventually([&] { return server_->inflight_bytes() == 5; }));

  std::future<bool> drained = std::async(std::launch::async, [&] { return server_->Drain(); });
  EXPECT_EQ(all.Next(), kNotServing);
  EXPECT_EQ(service.Next(), kNotServing);

  // New requests are directed elsewhere.
  grpc::Status refused;
  EXPECT_TRUE(Eventually([&] {
    v1::RewriteRequest request;
    request.set_graph_def("graph");
    v1::RewriteResponse response;
    refused = client_->Rewrite(request, &response);
    return !refused.ok();
  }));
  EXPECT_EQ(refused.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(InfoOf(refused).reason(), "STOPPED");

  ASSERT_TRUE(stream->Write(ChunkMessage("graph")));
  stream->WritesDone();
  const StreamAnswer answer = ReadAnswer(*stream);
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.graph, "graph");
  EXPECT_TRUE(drained.get());
  EXPECT_GE(Metric("spillway_rejected_requests_total{reason=\"draining\"}"), 1);
}

TEST_F(DrainTest, DuringTheDelayRequestsAreStillTaken) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.drain_delay = absl::Seconds(2);
  options.clock = &clock_;
  Start(options);
  RawStream watch(client_->channel(), "/grpc.health.v1.Health/Watch", HealthRequest(""));
  EXPECT_EQ(watch.Next(), kServing);
  std::future<bool> drained = std::async(std::launch::async, [&] { return server_->Drain(); });
  EXPECT_EQ(watch.Next(), kNotServing);
  EXPECT_TRUE(client_->StreamRewrite("graph", ScopeOptions(), 5).status.ok());
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(options.drain_delay);
    return drained.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }));
  EXPECT_TRUE(drained.get());
}

TEST_F(DrainTest, AfterTheTimeoutWorkIsCancelled) {
  Gate gate;
  Options options = TestOptions();
  options.rewrite = gate.AsFunction();
  options.drain_timeout = absl::Milliseconds(50);
  Start(options);
  grpc::Status status;
  std::thread caller([&] {
    v1::RewriteRequest request;
    request.set_graph_def("graph");
    v1::RewriteResponse response;
    status = client_->Rewrite(request, &response);
  });
  ASSERT_TRUE(Eventually([&] { return gate.running() == 1; }));
  EXPECT_FALSE(server_->Drain()) << "something had to be cancelled";
  EXPECT_EQ(gate.stopped(), 1) << "through its stop token";
  caller.join();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(server_->inflight_requests(), 0);
}

TEST_F(DrainTest, AfterTheTimeoutUploadsAreCancelled) {
  Options options = TestOptions();
  options.drain_timeout = absl::Milliseconds(50);
  Start(options);
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(1000)));
  ASSERT_TRUE(Eventually([&] { return server_->inflight_bytes() == 1000; }));
  EXPECT_FALSE(server_->Drain());
  EXPECT_FALSE(ReadAnswer(*stream).status.ok());
}

TEST_F(DrainTest, TwiceIsOnceAndThePortIsFree) {
  Start(TestOptions());
  const std::string listen = address();
  EXPECT_TRUE(server_->Drain());
  EXPECT_TRUE(server_->Drain());
  Options options = TestOptions();
  options.listen = {listen};
  EXPECT_TRUE(Server::BuildAndStart(options).ok());
}

// A bug in the program must not keep a node from being drained.
TEST_F(DrainTest, WorkThatDoesNotStopIsLeft) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<bool> runs{false};
  Options options = TestOptions();
  options.drain_timeout = absl::Milliseconds(100);
  options.rewrite = [&](absl::string_view graph, const v1::RewriteOptions& asked,
                        const v1::Limits& limits, const core::StopToken&, core::PlanReuse* reuse) {
    runs = true;
    released.wait();  // Ignores the stop token.
    return FakeRewrite(graph, asked, limits, core::StopToken(), reuse);
  };
  Start(options);
  std::thread caller(
      [this] { EXPECT_FALSE(client_->StreamRewrite("graph", ScopeOptions(), 5).status.ok()); });
  ASSERT_TRUE(Eventually([&] { return runs.load(); }));
  EXPECT_FALSE(server_->DrainOrLeave(absl::Milliseconds(200)));
  release.set_value();
  caller.join();
  EXPECT_FALSE(server_->Drain()) << "what it was: not all ended in time";
}

TEST_F(DrainTest, DrainOrLeaveEndsWhenAllHasEnded) {
  Options options = TestOptions();
  options.drain_timeout = kPatience;
  Start(options);
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(server_->DrainOrLeave(kPatience));
  EXPECT_LT(absl::Now() - begin, kPatience);
}

}  // namespace
}  // namespace spillway::server
