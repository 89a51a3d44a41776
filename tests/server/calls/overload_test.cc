// Admission, the queue, deadlines and cancellation, with rewrites whose duration the test controls.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;

class OverloadTest : public ServerFixture {
 protected:
  void SetUp() override {}  // Each test starts its own server.
  void TearDown() override {
    gate_.Open();
    ServerFixture::TearDown();
    client_.reset();
    server_.reset();  // Before the gate is destroyed.
  }

  // A unary call of `size` bytes in its own thread.
  struct UnaryInBackground {
    grpc::ClientContext context;
    v1::RewriteResponse response;
    grpc::Status status;
    std::thread thread;
    ~UnaryInBackground() { Join(); }
    void Join() {
      if (thread.joinable()) thread.join();
    }
  };
  std::unique_ptr<UnaryInBackground> StartUnary(size_t size,
                                                absl::Duration timeout = absl::InfiniteDuration()) {
    auto call = std::make_unique<UnaryInBackground>();
    if (timeout != absl::InfiniteDuration()) {
      call->context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    }
    call->thread = std::thread([this, size, call = call.get()] {
      v1::RewriteRequest request;
      request.mutable_options()->mutable_scope();
      request.set_graph_def(std::string(size, 'g'));
      call->status = client_->stub().Rewrite(&call->context, request, &call->response);
    });
    return call;
  }

  Gate gate_;
};

TEST_F(OverloadTest, BudgetIsReservedBeforeTheUploadAndRecovers) {
  Options options = TestOptions();
  options.limits.set_max_inflight_bytes(1000);
  options.limits.set_max_graph_bytes(1000);
  options.rewrite = &FakeRewrite;
  Start(options);
  grpc::ClientContext holding_context;
  const std::unique_ptr<Stream> holding = client_->stub().StreamRewrite(&holding_context);
  ASSERT_TRUE(holding->Write(HeaderMessage(900)));  // Not one byte of the graph.
  ASSERT_TRUE(Eventually([&] { return server_->inflight_bytes() == 900; }));

  grpc::ClientContext refused_context;
  const std::unique_ptr<Stream> refused = client_->stub().StreamRewrite(&refused_context);
  ASSERT_TRUE(refused->Write(HeaderMessage(101)));
  const grpc::Status status = ReadAnswer(*refused).status;
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(status).reason(), "OVERLOADED");
  EXPECT_EQ(refused_context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  EXPECT_EQ(server_->inflight_bytes(), 900);
  EXPECT_EQ(Metric("spillway_rejected_requests_total{reason=\"inflight_bytes\"}"), 1);

  // Requests that fit are served meanwhile.
  EXPECT_TRUE(client_->StreamRewrite(std::string(100, 'g'), ScopeOptions(), 100).status.ok());

  holding_context.TryCancel();
  EXPECT_EQ(holding->Finish().error_code(), StatusCode::CANCELLED);
  ASSERT_TRUE(NothingInFlight());
  grpc::ClientContext again_context;
  const std::unique_ptr<Stream> again = client_->stub().StreamRewrite(&again_context);
  ASSERT_TRUE(again->Write(HeaderMessage(1000)));
  EXPECT_TRUE(Eventually([&] { return server_->inflight_bytes() == 1000; }));
  again_context.TryCancel();
}

TEST_F(OverloadTest, UnaryCountsAgainstTheBudgetToo) {
  Options options = TestOptions();
  options.limits.set_max_inflight_bytes(1000);
  options.rewrite = gate_.AsFunction();
  Start(options);
  auto first = StartUnary(900);
  ASSERT_TRUE(Eventually([&] { return server_->inflight_bytes() == 900; }));
  auto second = StartUnary(101);
  second->Join();
  EXPECT_EQ(second->status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(second->status).reason(), "OVERLOADED");
  gate_.Open();
  first->Join();
  EXPECT_TRUE(first->status.ok()) << first->status.error_message();
  EXPECT_EQ(first->response.graph_def().size(), 900u);
}

TEST_F(OverloadTest, FullQueueRefusesAndRecovers) {
  Options options = TestOptions();  // One worker.
  options.max_queued_requests = 1;
  options.rewrite = gate_.AsFunction();
  Start(options);
  auto running = StartUnary(1);
  ASSERT_TRUE(Eventually([&] { return gate_.running() == 1; }));
  auto queued = StartUnary(1);
  ASSERT_TRUE(Eventually([&] { return Metric("spillway_queued_requests") == 1; }));
  auto refused = StartUnary(1);
  refused->Join();
  EXPECT_EQ(refused->status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(refused->status).reason(), "OVERLOADED");
  EXPECT_EQ(Metric("spillway_rejected_requests_total{reason=\"queue_full\"}"), 1);
  gate_.Open();
  running->Join();
  queued->Join();
  EXPECT_TRUE(running->status.ok());
  EXPECT_TRUE(queued->status.ok());
}

TEST_F(OverloadTest, DeadlineReachesTheCore) {
  Options options = TestOptions();
  options.rewrite = gate_.AsFunction();
  Start(options);
  auto call = StartUnary(10, absl::Milliseconds(100));
  call->Join();
  EXPECT_EQ(call->status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return gate_.stopped() == 1; })) << "the work must end too";
  EXPECT_TRUE(Eventually([&] { return EndedByCaller("Rewrite") == 1; }));
}

TEST_F(OverloadTest, CancellationReachesTheCore) {
  Options options = TestOptions();
  options.rewrite = gate_.AsFunction();
  Start(options);
  auto call = StartUnary(10);
  ASSERT_TRUE(Eventually([&] { return gate_.running() == 1; }));
  call->context.TryCancel();
  call->Join();
  EXPECT_EQ(call->status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return gate_.stopped() == 1; }));
  EXPECT_TRUE(Eventually([&] { return Requests("Rewrite", "CANCELLED") == 1; }));
}

TEST_F(OverloadTest, CallWhoseDeadlinePassesInTheQueueNeverRuns) {
  Options options = TestOptions();
  options.rewrite = gate_.AsFunction();
  Start(options);
  auto running = StartUnary(10);
  ASSERT_TRUE(Eventually([&] { return gate_.running() == 1; }));
  // Repeated if the request had not even arrived before its deadline. The deadline ends it, not the
  // gate.
  EXPECT_TRUE(Eventually([&] {
    auto queued = StartUnary(20, absl::Milliseconds(200));
    queued->Join();
    EXPECT_EQ(queued->status.error_code(), StatusCode::DEADLINE_EXCEEDED);
    // The server counts the timeout from the request's arrival, rounded up on the wire.
    EXPECT_TRUE(Eventually([&] { return server_->inflight_requests() == 1; }));
    return Requests("Rewrite", "DEADLINE_EXCEEDED") >= 1;
  }));
  gate_.Open();
  running->Join();
  EXPECT_TRUE(running->status.ok());
  EXPECT_TRUE(NothingInFlight());
  EXPECT_EQ(Metric("spillway_rewrite_outcomes_total{outcome=\"rewritten\",strategy=\"scope\"}"), 1);
}

// Both kinds of calls, while the worker is busy.
TEST_F(OverloadTest, WhoLeavesTheQueueGivesItsBudgetBackAtOnce) {
  Options options = TestOptions();
  options.limits.set_max_inflight_bytes(1000);
  options.max_queued_requests = 2;
  options.rewrite = gate_.AsFunction();
  Start(options);
  auto running = StartUnary(100);
  ASSERT_TRUE(Eventually([&] { return gate_.running() == 1; }));
  auto unary = StartUnary(300);
  grpc::ClientContext stream_context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&stream_context);
  ASSERT_TRUE(stream->Write(HeaderMessage(500)));
  ASSERT_TRUE(stream->Write(ChunkMessage(std::string(500, 'g'))));
  ASSERT_TRUE(stream->WritesDone());
  ASSERT_TRUE(Eventually([&] { return Metric("spillway_queued_requests") == 2; }));
  EXPECT_EQ(server_->inflight_bytes(), 900);

  unary->context.TryCancel();
  stream_context.TryCancel();
  EXPECT_TRUE(Eventually([&] { return server_->inflight_bytes() == 100; }));
  EXPECT_EQ(Metric("spillway_queued_requests"), 0);
  EXPECT_EQ(gate_.running(), 1) << "the worker is busy with the first all the time";
  unary->Join();
  EXPECT_EQ(unary->status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
  gate_.Open();
  running->Join();
  EXPECT_TRUE(running->status.ok());
}

TEST_F(OverloadTest, NoRequestTakesLongerThanTheServerAllows) {
  Options options = TestOptions();
  options.max_request_time = absl::Milliseconds(200);
  options.rewrite = gate_.AsFunction();
  Start(options);
  auto without_deadline = StartUnary(10);
  without_deadline->Join();
  EXPECT_EQ(without_deadline->status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(InfoOf(without_deadline->status).reason(), "STOPPED");
  EXPECT_THAT(without_deadline->status.error_message(),
              testing::HasSubstr("200ms here (--max-request-time)"));
  EXPECT_EQ(gate_.stopped(), 1);
  // Applies to a slow upload as well.
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(1'000'000)));
  EXPECT_TRUE(Eventually([&] { return !stream->Write(ChunkMessage("g")); }));
  const grpc::Status status = ReadAnswer(*stream).status;
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("upload"));
}

TEST_F(OverloadTest, ManyAtOnceAreAllAnswered) {
  Options options = TestOptions();
  options.limits.set_max_concurrent_requests(2);
  Start(options);
  const std::string graph = SmallGraph();
  v1::RewriteRequest request;
  request.set_graph_def(graph);
  *request.mutable_options() = ScopeOptions();
  v1::RewriteResponse expected;
  ASSERT_TRUE(client_->Rewrite(request, &expected).ok());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      if (t % 2 == 0) {
        const StreamAnswer answer = client_->StreamRewrite(graph, ScopeOptions(), 10'000);
        right += answer.status.ok() && answer.graph == expected.graph_def();
      } else {
        v1::RewriteResponse response;
        const grpc::Status status = client_->Rewrite(request, &response);
        right += status.ok() && response.graph_def() == expected.graph_def();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 16);
}

}  // namespace
}  // namespace spillway::server
