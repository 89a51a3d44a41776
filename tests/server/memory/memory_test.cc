// Memory is charged to the server as requests allocate it: a request that takes too much is
// refused, others are not, and everything is released.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// A core that allocates 1 MiB for each byte of the graph while `gate` is closed.
RewriteFunction Hungry(Gate& gate) {
  return [&gate](absl::string_view graph_def, const v1::RewriteOptions& options,
                 const v1::Limits& limits, const core::StopToken& stop, core::PlanReuse* reuse) {
    const std::string taken(graph_def.size() * kMiB, 'm');
    asm volatile("" : : "r"(taken.data()) : "memory");  // Or the allocation is optimized away.
    // Like the core, which checks every few thousand steps.
    if (stop.ShouldStop(1)) return absl::StatusOr<v1::RewriteResponse>(stop.status("strategy"));
    return gate.AsFunction()(graph_def, options, limits, stop, reuse);
  };
}

class MemoryTest : public ServerFixture {
 protected:
  void SetUp() override {
#ifndef SPILLWAY_COUNTED_NEW
    GTEST_SKIP() << "sanitizers have their own operator new";
#endif
    Options options = TestOptions();
    options.limits.set_max_concurrent_requests(2);
    options.memory_budget_bytes = 100 * kMiB;
    options.rewrite = Hungry(gate_);
    Start(options);
  }
  void TearDown() override {
    gate_.Open();
    ServerFixture::TearDown();
  }

  grpc::Status Unary(int mib, grpc::ClientContext* context) {
    v1::RewriteRequest request;
    request.mutable_options()->mutable_scope();
    request.set_graph_def(std::string(mib, 'g'));
    v1::RewriteResponse response;
    return client_->stub().Rewrite(context, request, &response);
  }

  Gate gate_;
};

TEST_F(MemoryTest, WhoTakesMoreThanThereIsIsRefused) {
  gate_.Open();
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    const grpc::Status unary = Unary(101, &context);
    EXPECT_EQ(unary.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(InfoOf(unary).reason(), "LIMIT_EXCEEDED");
    EXPECT_THAT(unary.error_message(), HasSubstr("--memory-budget"));
    EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 0u);
    const StreamAnswer streamed = client_->StreamRewrite(std::string(101, 'g'), ScopeOptions(), 50);
    EXPECT_EQ(InfoOf(streamed.status).reason(), "LIMIT_EXCEEDED");
  }
  EXPECT_EQ(Metric("spillway_rejected_requests_total{reason=\"memory\"}"), 6);
  EXPECT_TRUE(Eventually([&] { return server_->memory_bytes() == 0; }));
  grpc::ClientContext context;
  EXPECT_TRUE(Unary(90, &context).ok());
  EXPECT_TRUE(client_->StreamRewrite(std::string(90, 'g'), ScopeOptions(), 50).status.ok());
}

TEST_F(MemoryTest, WhoFindsItTakenIsToComeBack) {
  grpc::Status first;
  grpc::ClientContext first_context;
  std::thread running([&] { first = Unary(60, &first_context); });
  ASSERT_TRUE(Eventually([&] { return gate_.running() == 1; }));
  EXPECT_GE(Metric("spillway_memory_bytes"), 60 * kMiB);
  EXPECT_LE(Metric("spillway_memory_bytes"), 62 * kMiB);
  EXPECT_EQ(Metric("spillway_memory_bytes_limit"), 100 * kMiB);
  grpc::ClientContext context;
  const grpc::Status refused = Unary(61, &context);  // A new size: an equal one would share.
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(refused).reason(), "OVERLOADED") << refused.error_message();
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  gate_.Open();
  running.join();
  EXPECT_TRUE(first.ok()) << first.error_message();
  grpc::ClientContext again;
  EXPECT_TRUE(Unary(60, &again).ok());
}

// An answer's memory is counted until it has been sent, not until the worker is free.
TEST_F(MemoryTest, AnAnswerThatNobodyReadsStaysCharged) {
  Options options = TestOptions();
  options.memory_budget_bytes = 100 * kMiB;
  options.rewrite = [](absl::string_view, const v1::RewriteOptions&, const v1::Limits&,
                       const core::StopToken&, core::PlanReuse*) {
    v1::RewriteResponse response;
    response.set_graph_def(std::string(50 * kMiB, 'a'));
    return response;
  };
  Start(options);
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(5)));
  ASSERT_TRUE(stream->Write(ChunkMessage("graph")));
  ASSERT_TRUE(stream->WritesDone());
  v1::StreamRewriteResponse header;
  ASSERT_TRUE(stream->Read(&header));
  EXPECT_GE(server_->memory_bytes(), 50 * kMiB);
  EXPECT_LE(server_->memory_bytes(), 52 * kMiB);
  EXPECT_TRUE(ReadAnswer(*stream).status.ok());
}

TEST_F(MemoryTest, ASlowUploadIsEnded) {
  Options options = TestOptions();
  options.min_upload_rate = 1 << 30;
  options.clock = &clock_;
  Start(options);
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(1'000'000)));
  ASSERT_TRUE(Eventually([&] { return server_->inflight_bytes() == 1'000'000; }));
  // One byte now and then, so that it never stalls.
  ASSERT_TRUE(Eventually([&] {
    clock_.Advance(absl::Milliseconds(100));
    return !stream->Write(ChunkMessage("g"));
  }));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
}

}  // namespace
}  // namespace spillway::server
