// Equal rewrites, requested concurrently or shortly after each other, are computed once.
#include <memory>
#include <string>
#include <vector>

#include "tests/server/calls/shared_rewrite_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;

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
                           const v1::Limits& limits, const core::StopToken& stop,
                           core::PlanReuse* reuse) -> absl::StatusOr<v1::RewriteResponse> {
    ++made_;
    (void)gate_.AsFunction()(graph, asked, limits, stop, reuse);
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

class CachedRewriteTest : public SharedRewriteTest {
 protected:
  void SetUp() override {
    Options options = TestOptions();
    options.cache_bytes = 1 << 20;
    StartWith(options);
    gate_.Open();
  }
  // The memory of cached answers is held after all requests have ended.
  void TearDown() override {
    EXPECT_TRUE(Eventually([&] {
      return server_->inflight_requests() == 0 &&
             Metric("spillway_memory_bytes") <= Metric("spillway_cache_bytes");
    }));
  }

  std::string AskAndWait(bool stream, const std::string& graph,
                         const v1::RewriteOptions& options = ScopeOptions()) {
    const auto asked = Ask(stream, graph, options);
    asked->Join();
    EXPECT_TRUE(asked->status.ok()) << asked->status.error_message();
    return asked->graph;
  }
};

TEST_F(CachedRewriteTest, TheSameAgainIsNotMadeAgain) {
  for (const bool stream : {false, true, false, true}) {
    EXPECT_EQ(AskAndWait(stream, "graph"), "graph");
  }
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(Metric("spillway_cached_rewrites_total"), 3);
  EXPECT_GT(Metric("spillway_cache_bytes"), 0);
  // Each is an answered graph; the work was done once.
  EXPECT_EQ(
      Metric("spillway_rewrite_outcomes_total{outcome=\"nothing_to_do\",strategy=\"scope\"}") +
          Metric("spillway_rewrite_outcomes_total{outcome=\"rewritten\",strategy=\"scope\"}"),
      4);
  EXPECT_EQ(Metric("spillway_stage_duration_seconds_count{stage=\"apply\"}"), 1);
}

TEST_F(CachedRewriteTest, AnotherGraphOrOptionIs) {
  v1::RewriteOptions other = ScopeOptions();
  other.mutable_scope()->set_lb(7);
  AskAndWait(false, "graph");
  EXPECT_EQ(AskAndWait(false, "graqh"), "graqh");
  AskAndWait(false, "graph", other);
  EXPECT_EQ(made_, 3);
  EXPECT_EQ(Metric("spillway_cached_rewrites_total"), 0);
}

TEST_F(CachedRewriteTest, ErrorsAreNotKept) {
  Options options = TestOptions();
  options.cache_bytes = 1 << 20;
  options.rewrite = [this](auto&&...) -> absl::StatusOr<v1::RewriteResponse> {
    ++made_;
    return absl::FailedPreconditionError("as it is");
  };
  Start(options);
  for (int i = 0; i < 2; ++i) {
    const auto asked = Ask(false);
    asked->Join();
    EXPECT_EQ(asked->status.error_code(), StatusCode::FAILED_PRECONDITION);
  }
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(Metric("spillway_cache_bytes"), 0);
}

}  // namespace
}  // namespace spillway::server
