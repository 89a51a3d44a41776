// A plan for a graph is reused for the same graph in other bytes.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "rewrite_core/planned_step.h"
#include "rewrite_core/rewriter.h"
#include "tests/server/calls/shared_rewrite_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/proto_graph.h"

namespace spillway::server {
namespace {

// The same graph in other bytes, since each process that uses TensorFlow serializes it differently.
class ReusedPlanTest : public SharedRewriteTest {
 protected:
  void SetUp() override {
    const testing::GraphDef graph =
        testing::ReadProto(testing::ReadTestGraph("mnist_deep/graph_shapes.pb"));
    one_ = testing::WriteProto(graph);
    other_ = testing::WriteProtoBackward(graph);
    ASSERT_NE(one_, other_);
    tuned_.mutable_step()->set_batch_size(64);
    tuned_.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(66 << 20);  // It needs more.
    StartWith(int64_t{64} << 20);
  }
  void StartWith(int64_t cache_bytes) {
    Options options = TestOptions();
    options.limits.set_max_concurrent_requests(2);
    options.cache_bytes = cache_bytes;
    options.rewrite = [this](absl::string_view graph, const v1::RewriteOptions& asked,
                             const v1::Limits& limits, const core::StopToken& stop,
                             core::PlanReuse* reuse) {
      ++made_;
      planned_ += reuse->given == nullptr;
      (void)gate_.AsFunction()(graph, asked, limits, stop, reuse);
      return core::Rewrite(graph, asked, limits, stop, reuse);
    };
    Start(options);
  }
  void TearDown() override {
    EXPECT_TRUE(Eventually([&] { return server_->inflight_requests() == 0; }));
  }

  void ExpectRightAnswer(const Asked& asked, const std::string& graph) {
    ASSERT_TRUE(asked.status.ok()) << asked.status.error_message();
    const auto expected = core::Rewrite(graph, tuned_, core::DefaultLimits(), core::StopToken());
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ(asked.graph, expected->graph_def());
    EXPECT_NE(asked.graph, graph) << "there are swaps";
  }

  std::string one_, other_;
  v1::RewriteOptions tuned_;
  std::atomic<int> planned_{0};
};

TEST_F(ReusedPlanTest, ThePlanIsMadeOnce) {
  gate_.Open();
  for (const bool stream : {false, true}) {
    for (const std::string* graph : {&one_, &other_}) {
      const auto asked = Ask(stream, *graph, tuned_);
      asked->Join();
      ExpectRightAnswer(*asked, *graph);
    }
  }
  EXPECT_EQ(made_, 2) << "the others are kept";
  EXPECT_EQ(planned_, 1);
  EXPECT_EQ(Metric("spillway_reused_plans_total"), 1);
  EXPECT_EQ(Metric("spillway_cached_rewrites_total"), 2);
}

// Ranks arrive concurrently; nothing needs to be cached for them.
TEST_F(ReusedPlanTest, WhoComesMeanwhileWaitsForIt) {
  StartWith(/*cache_bytes=*/0);
  std::vector<std::unique_ptr<Asked>> all;
  for (int i = 0; i < 8; ++i) all.push_back(Ask(i % 4 < 2, i % 2 == 0 ? one_ : other_, tuned_));
  ASSERT_TRUE(AllWait(8));
  EXPECT_EQ(made_, 1);
  gate_.Open();
  for (int i = 0; i < 8; ++i) {
    all[i]->Join();
    ExpectRightAnswer(*all[i], i % 2 == 0 ? one_ : other_);
  }
  EXPECT_EQ(planned_, 1);
}

TEST_F(ReusedPlanTest, OtherOptionsHavePlansOfTheirOwn) {
  gate_.Open();
  v1::RewriteOptions larger = tuned_;
  larger.mutable_step()->set_batch_size(32);
  Ask(false, one_, tuned_)->Join();
  Ask(false, other_, larger)->Join();
  EXPECT_EQ(planned_, 2);
}

}  // namespace
}  // namespace spillway::server
