// Each limit: requests above it are refused with the right code; others are served, before and
// after. (Bytes in flight and the queue: overload_test.cc.)
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "rewrite_core/rewriter.h"
#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class LimitsTest : public ServerFixture {
 protected:
  void SetUp() override {
    request_.set_graph_def(SmallGraph());
    request_.mutable_options()->mutable_scope();
  }

  grpc::Status Rewrite() { return client_->Rewrite(request_, &response_); }

  // SmallGraph is refused with LIMIT_EXCEEDED, naming `number`; another graph is not.
  void ExpectRefused(const Options& options, const std::string& number) {
    Start(options);
    const grpc::Status status = Rewrite();
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(InfoOf(status).reason(), "LIMIT_EXCEEDED") << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(number));
    grpc::ClientContext context;
    v1::GetCapabilitiesResponse capabilities;
    EXPECT_TRUE(client_->stub().GetCapabilities(&context, {}, &capabilities).ok());
    EXPECT_EQ(capabilities.limits().SerializeAsString(), options.limits.SerializeAsString());
  }

  v1::RewriteRequest request_;
  v1::RewriteResponse response_;
};

TEST_F(LimitsTest, Nodes) {
  Options options = TestOptions();
  options.limits.set_max_node_count(10);
  ExpectRefused(options, "10");
}

TEST_F(LimitsTest, Inputs) {
  Options options = TestOptions();
  options.limits.set_max_input_count(11);
  ExpectRefused(options, "11");
}

TEST_F(LimitsTest, UnaryMessage) {
  Options options = TestOptions();
  options.limits.set_max_unary_bytes(1200);
  ExpectRefused(options, "1200");
}

TEST_F(LimitsTest, SearchSteps) {
  Options options = TestOptions();
  options.limits.set_max_search_steps(3);
  Start(options);
  *request_.mutable_options() = ScopeOptions();
  const grpc::Status status = Rewrite();
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(status).reason(), "SEARCH_TOO_LONG");
}

// Values omitted from a request, in both kinds of calls; given ones stay.
TEST_F(LimitsTest, DefaultsOfTheServer) {
  Options options = TestOptions();
  absl::Mutex mutex;
  std::vector<v1::Recompute> seen;
  options.rewrite = [&](absl::string_view graph, const v1::RewriteOptions& asked,
                        const v1::Limits& limits, const core::StopToken& stop,
                        core::PlanReuse* reuse) {
    {
      absl::MutexLock lock(&mutex);
      seen.push_back(asked.budget().recompute());
    }
    return FakeRewrite(graph, asked, limits, stop, reuse);
  };
  options.default_recompute = v1::RECOMPUTE_ALL;
  options.cache_bytes = 0;
  Start(options);
  v1::RewriteOptions budget, off;
  budget.mutable_budget();
  off.mutable_budget()->set_recompute(v1::RECOMPUTE_OFF);
  for (const v1::RewriteOptions& asked : {v1::RewriteOptions(), budget, off, ScopeOptions()}) {
    *request_.mutable_options() = asked;
    EXPECT_TRUE(Rewrite().ok());
    EXPECT_TRUE(client_->StreamRewrite("graph", asked, 100).status.ok());
  }
  const absl::MutexLock lock(&mutex);
  EXPECT_THAT(seen, ::testing::ElementsAre(v1::RECOMPUTE_ALL, v1::RECOMPUTE_ALL, v1::RECOMPUTE_ALL,
                                           v1::RECOMPUTE_ALL, v1::RECOMPUTE_OFF, v1::RECOMPUTE_OFF,
                                           v1::RECOMPUTE_UNSPECIFIED, v1::RECOMPUTE_UNSPECIFIED));
}

TEST_F(LimitsTest, TheServersOffload) {
  Options options = TestOptions();
  absl::Mutex mutex;
  std::vector<v1::Offload> seen;
  options.rewrite = [&](absl::string_view graph, const v1::RewriteOptions& asked,
                        const v1::Limits& limits, const core::StopToken& stop,
                        core::PlanReuse* reuse) {
    {
      absl::MutexLock lock(&mutex);
      seen.push_back(asked.budget().offload());
    }
    return FakeRewrite(graph, asked, limits, stop, reuse);
  };
  options.default_offload = v1::OFFLOAD_OPTIMIZER;
  options.cache_bytes = 0;
  Start(options);
  v1::RewriteOptions off, patch, placed;
  off.mutable_budget()->set_offload(v1::OFFLOAD_OFF);
  // Not for live graphs: a patch with it would be refused, and the plug-in's variables exist.
  patch.add_outputs(v1::OUTPUT_PATCH);
  placed.set_inline_calls(v1::INLINE_CALLS_NEVER);
  for (const v1::RewriteOptions& asked :
       {v1::RewriteOptions(), off, patch, placed, ScopeOptions()}) {
    *request_.mutable_options() = asked;
    EXPECT_TRUE(Rewrite().ok());
  }
  const absl::MutexLock lock(&mutex);
  EXPECT_THAT(
      seen, ::testing::ElementsAre(v1::OFFLOAD_OPTIMIZER, v1::OFFLOAD_OFF, v1::OFFLOAD_UNSPECIFIED,
                                   v1::OFFLOAD_UNSPECIFIED, v1::OFFLOAD_UNSPECIFIED));
}

// Even if the caller does not request it; but edits can be taken out.
TEST_F(LimitsTest, AServerThatMakesDryRunsOnly) {
  const auto rewritten =
      core::Rewrite(SmallGraph(), ScopeOptions(), core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(rewritten.ok() && rewritten->graph_def() != SmallGraph());
  Options options = TestOptions();
  options.dry_run = true;
  Start(options);
  *request_.mutable_options() = ScopeOptions();
  ASSERT_TRUE(Rewrite().ok());
  EXPECT_EQ(response_.report().outcome(), v1::OUTCOME_DRY_RUN);
  EXPECT_EQ(response_.graph_def(), SmallGraph());
  const auto stream = client_->StreamRewrite(SmallGraph(), ScopeOptions(), 100);
  ASSERT_TRUE(stream.status.ok());
  EXPECT_EQ(stream.header.report().outcome(), v1::OUTCOME_DRY_RUN);
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse capabilities;
  EXPECT_TRUE(client_->stub().GetCapabilities(&context, {}, &capabilities).ok());
  EXPECT_TRUE(capabilities.dry_run());
  request_.set_graph_def(rewritten->graph_def());
  request_.mutable_options()->mutable_strip();
  ASSERT_TRUE(Rewrite().ok());
  EXPECT_EQ(response_.report().outcome(), v1::OUTCOME_STRIPPED);
  EXPECT_EQ(response_.graph_def(), SmallGraph());
}

TEST_F(LimitsTest, StreamedGraphAndChunk) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.limits.set_max_graph_bytes(1000);
  options.limits.set_max_chunk_bytes(100);
  Start(options);
  const auto refused = [&](size_t bytes, size_t chunk) {
    const grpc::Status status =
        client_->StreamRewrite(std::string(bytes, 'g'), ScopeOptions(), chunk).status;
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    return InfoOf(status).reason();
  };
  EXPECT_EQ(refused(1001, 100), "LIMIT_EXCEEDED");
  EXPECT_EQ(refused(500, 101), "LIMIT_EXCEEDED");
  EXPECT_TRUE(client_->StreamRewrite(std::string(1000, 'g'), ScopeOptions(), 100).status.ok());
}

// Half an upload is held by its caller; a second one of the same is too much, of another is not.
TEST_F(LimitsTest, BytesOfACaller) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.max_caller_bytes = 1500;
  Start(options);
  const std::string graph(1000, 'g');
  grpc::ClientContext context;
  const std::unique_ptr<Stream> half = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(half->Write(HeaderMessage(1000)));
  ASSERT_TRUE(half->Write(ChunkMessage(graph.substr(0, 500))));
  EXPECT_TRUE(Eventually([&] { return Metric("spillway_inflight_bytes") == 1000; }));
  const grpc::Status second = client_->StreamRewrite(graph, ScopeOptions(), 100).status;
  EXPECT_EQ(second.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(second).reason(), "OVERLOADED");
  EXPECT_THAT(second.error_message(), HasSubstr("--max-caller-bytes"));
  EXPECT_EQ(Metric("spillway_rejected_requests_total{reason=\"caller_bytes\"}"), 1);
  TestClient other(server_->port(), /*host=*/2);
  EXPECT_TRUE(other.StreamRewrite(graph, ScopeOptions(), 100).status.ok());
  ASSERT_TRUE(half->Write(ChunkMessage(graph.substr(500))));
  half->WritesDone();
  EXPECT_TRUE(ReadAnswer(*half).status.ok());
  EXPECT_TRUE(NothingInFlight());
  EXPECT_TRUE(client_->StreamRewrite(graph, ScopeOptions(), 100).status.ok()) << "given back";
}

TEST_F(LimitsTest, Metadata) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.limits.set_max_metadata_bytes(2000);
  Start(options);
  const auto call = [&](size_t bytes) {
    grpc::ClientContext context;
    context.AddMetadata("x-long", std::string(bytes, 'm'));
    return client_->stub().Rewrite(&context, request_, &response_).error_code();
  };
  EXPECT_EQ(call(1000), StatusCode::OK);
  EXPECT_EQ(call(2000), StatusCode::RESOURCE_EXHAUSTED);
  // gRPC 1.51 sometimes closes the connection after that (in a tenth of the runs), and the call
  // affected is UNAVAILABLE. The server continues.
  EXPECT_TRUE(Eventually([&] { return call(1000) == StatusCode::OK; }));
}

// Options are small: larger ones are refused before they are parsed, by every kind of call.
TEST_F(LimitsTest, OptionBytes) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.limits.set_max_option_bytes(2000);
  Start(options);
  v1::RewriteOptions many;
  while (many.ByteSizeLong() <= 2000) many.mutable_step()->add_feeds();
  const auto expect_refused = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(InfoOf(status).reason(), "LIMIT_EXCEEDED");
    EXPECT_THAT(status.error_message(), testing::HasSubstr("at most 2000"));
  };
  *request_.mutable_options() = many;
  expect_refused(Rewrite());
  expect_refused(client_->StreamRewrite("graph", many, 100).status);
  // A profile is large, but only bytes.
  *request_.mutable_options() = ScopeOptions();
  request_.mutable_options()->mutable_step()->set_profile(std::string(5000, 'p'));
  EXPECT_TRUE(Rewrite().ok());
  EXPECT_TRUE(client_->StreamRewrite("graph", request_.options(), 100).status.ok());
}

// Two bytes on the wire take a hundred in memory.
TEST_F(LimitsTest, OptionsCountInTheBudget) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.limits.set_max_inflight_bytes(1 << 20);
  Start(options);
  request_.set_graph_def("graph");
  for (int i = 0; i < 50'000; ++i) request_.mutable_options()->mutable_step()->add_feeds();
  grpc::Status status = Rewrite();
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(status).reason(), "LIMIT_EXCEEDED");
  status = client_->StreamRewrite("graph", request_.options(), 100).status;
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(status).reason(), "LIMIT_EXCEEDED");
}

// A megabyte on the wire could take a gigabyte.
TEST_F(LimitsTest, CompressedRequestsAreRefused) {
  Start(TestOptions());
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::RewriteRequest request;
    request.set_graph_def(std::string(1 << 20, '\0'));
    EXPECT_EQ(client_->stub().Rewrite(&context, request, &response_).error_code(),
              StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(LimitsTest, StreamsOfAConnectionWaitForEachOther) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.limits.set_max_concurrent_streams(1);
  Start(options);
  ASSERT_TRUE(Rewrite().ok()) << "the client knows the limit once it is connected";
  grpc::ClientContext holding_context;
  const std::unique_ptr<Stream> holding = client_->stub().StreamRewrite(&holding_context);
  ASSERT_TRUE(holding->Write(HeaderMessage(5)));
  ASSERT_TRUE(Eventually([&] { return server_->inflight_requests() == 1; }));

  grpc::ClientContext waiting_context;
  waiting_context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(200)));
  EXPECT_EQ(client_->stub().Rewrite(&waiting_context, request_, &response_).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Requests("Rewrite", "OK"), 1) << "the second never came to the server";
  TestClient other(address());
  EXPECT_TRUE(other.Rewrite(request_, &response_).ok()) << "another connection has its own";

  ASSERT_TRUE(holding->Write(ChunkMessage("graph")));
  holding->WritesDone();
  EXPECT_TRUE(ReadAnswer(*holding).status.ok());
  EXPECT_TRUE(Rewrite().ok());
}

}  // namespace
}  // namespace spillway::server
