// The same rewrite, asked for several times at once, is made once.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;

class SharedRewriteTest : public ServerFixture {
 protected:
  struct Asked {
    grpc::ClientContext context;
    grpc::Status status;
    std::string graph;
    std::thread thread;

    void Join() { thread.join(); }
  };

  void SetUp() override {
    Options options = TestOptions();
    options.limits.set_max_concurrent_requests(2);
    options.rewrite = [this](absl::string_view graph, const v1::RewriteOptions& asked,
                             const v1::Limits& limits, const core::StopToken& stop) {
      ++made_;
      return gate_.AsFunction()(graph, asked, limits, stop);
    };
    Start(options);
  }

  std::unique_ptr<Asked> Ask(bool stream, const std::string& graph = "graph",
                             const v1::RewriteOptions& options = ScopeOptions()) {
    auto asked = std::make_unique<Asked>();
    asked->thread = std::thread([this, stream, graph, options, asked = asked.get()] {
      if (stream) {
        const std::unique_ptr<Stream> call = client_->stub().StreamRewrite(&asked->context);
        v1::StreamRewriteRequest header = HeaderMessage(static_cast<int64_t>(graph.size()));
        *header.mutable_header()->mutable_options() = options;
        call->Write(header);
        call->Write(ChunkMessage(graph));
        call->WritesDone();
        const StreamAnswer answer = ReadAnswer(*call);
        asked->status = answer.status;
        asked->graph = answer.graph;
        return;
      }
      v1::RewriteRequest request;
      request.set_graph_def(graph);
      *request.mutable_options() = options;
      v1::RewriteResponse response;
      asked->status = client_->stub().Rewrite(&asked->context, request, &response);
      asked->graph = response.graph_def();
    });
    return asked;
  }

  // One is being made, and all the others wait for it.
  bool AllWait(int count) {
    return Eventually([&] { return made_ > 0 && server_->shared_requests() == count - 1; });
  }

  Gate gate_;
  std::atomic<int> made_{0};
};

TEST_F(SharedRewriteTest, IsMadeOnceForAll) {
  std::vector<std::unique_ptr<Asked>> all;
  for (int i = 0; i < 16; ++i) all.push_back(Ask(/*stream=*/i % 2 == 0));
  ASSERT_TRUE(AllWait(16));
  EXPECT_EQ(made_, 1);
  gate_.Open();
  for (const auto& asked : all) {
    asked->Join();
    EXPECT_TRUE(asked->status.ok()) << asked->status.error_message();
    EXPECT_EQ(asked->graph, "graph");
  }
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(Metric("spillway_shared_rewrites_total"), 15);
  EXPECT_TRUE(Eventually(
      [&] { return Requests("Rewrite", "OK") + Requests("StreamRewrite", "OK") == 16; }));
}

TEST_F(SharedRewriteTest, OtherRequestsHaveTheWorkerMeanwhile) {
  v1::RewriteOptions other = ScopeOptions();
  other.mutable_scope()->set_lb(7);
  auto first = Ask(false);
  auto same = Ask(false);
  ASSERT_TRUE(AllWait(2));
  auto another = Ask(false, "graph", other);
  ASSERT_TRUE(Eventually([&] { return made_ == 2; })) << "who waits holds no worker";
  gate_.Open();
  for (Asked* asked : {first.get(), same.get(), another.get()}) {
    asked->Join();
    EXPECT_TRUE(asked->status.ok());
  }
  EXPECT_EQ(made_, 2);
}

TEST_F(SharedRewriteTest, TheFirstMayGo) {
  auto first = Ask(false);
  ASSERT_TRUE(AllWait(1));
  auto second = Ask(true);
  ASSERT_TRUE(AllWait(2));
  first->context.TryCancel();
  first->Join();
  EXPECT_EQ(first->status.error_code(), StatusCode::CANCELLED);
  gate_.Open();
  second->Join();
  EXPECT_TRUE(second->status.ok()) << second->status.error_message();
  EXPECT_EQ(second->graph, "graph");
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(gate_.stopped(), 0);
}

TEST_F(SharedRewriteTest, ItEndsWhenAllHaveGone) {
  auto first = Ask(false);
  ASSERT_TRUE(AllWait(1));
  auto second = Ask(true), third = Ask(false);
  ASSERT_TRUE(AllWait(3));
  second->context.TryCancel();
  second->Join();
  EXPECT_TRUE(Eventually([&] { return server_->inflight_requests() == 2; }))
      << "who waited is gone at once";
  first->context.TryCancel();
  third->context.TryCancel();
  first->Join();
  third->Join();
  EXPECT_TRUE(Eventually([&] { return gate_.stopped() == 1; }));
  EXPECT_TRUE(NothingInFlight());
  gate_.Open();
  auto again = Ask(false);
  again->Join();
  EXPECT_TRUE(again->status.ok());
  EXPECT_EQ(made_, 2);
}

TEST_F(SharedRewriteTest, AnErrorIsTheErrorOfAll) {
  Options options = TestOptions();
  options.limits.set_max_concurrent_requests(2);
  options.rewrite = [this](absl::string_view graph, const v1::RewriteOptions& asked,
                           const v1::Limits& limits,
                           const core::StopToken& stop) -> absl::StatusOr<v1::RewriteResponse> {
    ++made_;
    (void)gate_.AsFunction()(graph, asked, limits, stop);
    return absl::FailedPreconditionError("as it is");
  };
  Start(options);
  auto first = Ask(false), second = Ask(true);
  ASSERT_TRUE(AllWait(2));
  gate_.Open();
  for (Asked* asked : {first.get(), second.get()}) {
    asked->Join();
    EXPECT_EQ(asked->status.error_code(), StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(asked->status.error_message(), "as it is");
  }
  EXPECT_EQ(made_, 1);
}

}  // namespace
}  // namespace spillway::server
