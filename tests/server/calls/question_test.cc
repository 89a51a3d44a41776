// Inspect, Simulate, Explore and Diff from a client's view: the core's answers, by chunks of any
// size, with the limits, the budget, cancellation and the metrics of a rewrite.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/inspect/explore.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/server/calls/question_client.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class QuestionTest : public ServerFixture {
 protected:
  double Answered(const std::string& method, const std::string& code = "OK") const {
    return Requests(method, code, "none");
  }
  double Bytes(const std::string& direction, const std::string& method) const {
    return Metric(absl::StrCat("spillway_", direction, "_bytes_total{method=\"", method, "\"}"));
  }

  const std::string graph_ = SmallGraph();
  const v1::Limits limits_ = core::DefaultLimits();
};

std::string RewrittenOf(const std::string& graph) {
  auto response = core::Rewrite(graph, ScopeOptions(), core::DefaultLimits(), core::StopToken());
  EXPECT_TRUE(response.ok()) << response.status();
  return response->graph_def();
}

// Two sizes that a graph with an open batch may have.
v1::ExploreOptions TwoSizes() {
  v1::ExploreOptions options;
  options.set_no_budget(true);
  options.add_sizes(2);
  options.add_sizes(1);
  return options;
}

TEST_F(QuestionTest, InspectGivesWhatTheCoreGivesForEveryChunkSize) {
  const auto expected = core::Inspect(graph_, {}, limits_, core::StopToken());
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto question = Question<v1::InspectRequest>(v1::InspectOptions(), graph_);
  double bytes = 0;
  for (const size_t chunk_bytes : {size_t{700}, size_t{64} << 10, graph_.size()}) {
    const auto answer = Inspect(*client_, Upload(question, {graph_}, chunk_bytes));
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    ASSERT_EQ(answer.messages.size(), 1u);
    EXPECT_EQ(answer.messages[0].summary().SerializeAsString(), expected->SerializeAsString());
    bytes += answer.messages[0].ByteSizeLong();
  }
  EXPECT_TRUE(Eventually([&] { return Answered("Inspect") == 3; }));
  EXPECT_EQ(Bytes("input", "Inspect"), 3.0 * graph_.size());
  EXPECT_EQ(Bytes("output", "Inspect"), bytes);
  EXPECT_EQ(Metric("spillway_request_duration_seconds_count{method=\"Inspect\"}"), 3);
}

TEST_F(QuestionTest, InspectListsEveryTensorInSeveralMessages) {
  const std::string graph = LargeGraph();
  v1::InspectOptions options;
  options.set_tensors(true);
  std::vector<std::string> expected;
  const absl::Status status =
      core::Inspect(graph, options, limits_, core::StopToken(), [&](v1::InspectResponse&& part) {
        expected.push_back(part.SerializeAsString());
        return true;
      });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_GT(expected.size(), 2u) << "or the graph is too small for this test";
  const auto answer =
      Inspect(*client_, Upload(Question<v1::InspectRequest>(options, graph), {graph}, 1 << 20));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  std::vector<std::string> sent;
  for (const auto& message : answer.messages) sent.push_back(message.SerializeAsString());
  EXPECT_EQ(sent, expected);
}

TEST_F(QuestionTest, SimulateGivesWhatTheCoreGives) {
  v1::SimulateOptions options;
  options.mutable_step()->set_batch_size(8);
  options.set_memory(true);
  const auto expected = core::SimulateGraph(graph_, options, limits_, core::StopToken());
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_GT(expected->memory_size(), 0);
  v1::SimulateResponse response;
  const grpc::Status status = Simulate(
      *client_, Upload(Question<v1::SimulateRequest>(options, graph_), {graph_}), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.report().SerializeAsString(), expected->SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Answered("Simulate") == 1; }));
  EXPECT_EQ(Bytes("output", "Simulate"), response.ByteSizeLong());
}

TEST_F(QuestionTest, ExploreSendsEachSizeOnceAndThenTheReport) {
  const v1::ExploreOptions options = TwoSizes();
  std::vector<std::string> rows;
  const auto expected = core::Explore(
      graph_, options, limits_, core::StopToken(),
      [&](const v1::ExploredSize& size) { rows.push_back(size.SerializeAsString()); });
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_EQ(rows.size(), 2u);
  const auto answer =
      Explore(*client_, Upload(Question<v1::ExploreRequest>(options, graph_), {graph_}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.messages.size(), 3u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(answer.messages[i].size().SerializeAsString(), rows[i]);
  }
  EXPECT_EQ(answer.messages[2].report().SerializeAsString(), expected->SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Answered("Explore") == 1; }));
}

// Recomputation in plans, if the caller does not specify it.
TEST_F(QuestionTest, ExploreHasTheServersDefault) {
  Options server = TestOptions();
  server.default_recompute = v1::RECOMPUTE_ALL;
  std::vector<v1::Recompute> seen;
  server.explore = [&seen](absl::string_view, const v1::ExploreOptions& asked, auto&&...) {
    seen.push_back(asked.recompute());
    return v1::ExploreReport();
  };
  Start(server);
  v1::ExploreOptions sizes_alone = TwoSizes(), planned = TwoSizes(), off = TwoSizes();
  planned.set_swapping(true);
  off.set_swapping(true);
  off.set_recompute(v1::RECOMPUTE_OFF);
  for (const v1::ExploreOptions& asked : {sizes_alone, planned, off}) {
    EXPECT_TRUE(Explore(*client_, Upload(Question<v1::ExploreRequest>(asked, graph_), {graph_}))
                    .status.ok());
  }
  EXPECT_EQ(seen, (std::vector<v1::Recompute>{v1::RECOMPUTE_UNSPECIFIED, v1::RECOMPUTE_ALL,
                                              v1::RECOMPUTE_OFF}));
}

TEST_F(QuestionTest, DiffGivesWhatTheCoreGivesForGraphsOfManyChunks) {
  const std::string rewritten = RewrittenOf(graph_);
  const auto expected = core::DiffGraphs(graph_, rewritten, limits_, core::StopToken());
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_GT(expected->swaps_size(), 0);
  v1::DiffResponse response;
  const grpc::Status status =
      Diff(*client_, Upload(DiffQuestion(graph_, rewritten), {graph_, rewritten}, 1000), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.diff().SerializeAsString(), expected->SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Answered("Diff") == 1; }));
  EXPECT_EQ(Bytes("input", "Diff"), static_cast<double>(graph_.size() + rewritten.size()));
}

// The core's message, for any method.
TEST_F(QuestionTest, ErrorsOfTheCoreKeepCodeReasonAndSentence) {
  const std::string bad = "not a graph";
  const absl::Status expected =
      core::Inspect(bad, v1::InspectOptions(), limits_, core::StopToken()).status();
  const auto check = [&](const grpc::Status& status, const std::string& prefix) {
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(InfoOf(status).reason(), "MALFORMED_GRAPH");
    EXPECT_EQ(status.error_message(), absl::StrCat(prefix, expected.message()));
  };
  v1::SimulateResponse simulated;
  v1::DiffResponse diff;
  check(Inspect(*client_, Upload(Question<v1::InspectRequest>(v1::InspectOptions(), bad), {bad}))
            .status,
        "");
  check(Simulate(*client_, Upload(Question<v1::SimulateRequest>(v1::SimulateOptions(), bad), {bad}),
                 &simulated),
        "");
  check(Explore(*client_, Upload(Question<v1::ExploreRequest>(TwoSizes(), bad), {bad})).status, "");
  check(Diff(*client_, Upload(DiffQuestion(graph_, bad), {graph_, bad}), &diff), "graph B: ");
  for (const char* method : {"Inspect", "Simulate", "Explore", "Diff"}) {
    EXPECT_TRUE(Eventually([&] { return Answered(method, "INVALID_ARGUMENT") == 1; })) << method;
  }
}

TEST_F(QuestionTest, OptionsOfANewerClientAreRefused) {
  v1::SimulateOptions options;
  options.GetReflection()->MutableUnknownFields(&options)->AddVarint(4000, 1);
  v1::SimulateResponse response;
  const grpc::Status status = Simulate(
      *client_, Upload(Question<v1::SimulateRequest>(options, graph_), {graph_}), &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(InfoOf(status).reason(), "UNKNOWN_OPTION");
}

// Fields beside the options are checked as strictly.
TEST_F(QuestionTest, HeadersOfANewerClientAreRefused) {
  v1::DiffResponse diff;
  const auto refused = [&](const v1::DiffRequest& header, const std::string& words) {
    const grpc::Status status = Diff(*client_, Upload(header, {graph_, graph_}), &diff);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(InfoOf(status).reason(), "UNKNOWN_OPTION");
    EXPECT_THAT(status.error_message(), HasSubstr(words));
  };
  const auto add_news = [](google::protobuf::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(4000, 1);
  };
  v1::DiffRequest header = DiffQuestion(graph_, graph_);
  add_news(header.mutable_header());
  refused(header, "DiffHeader has field 4000");
  header = DiffQuestion(graph_, graph_);
  add_news(header.mutable_header()->mutable_graph_b());
  refused(header, "GraphHeader has field 4000");
  header.Clear();
  add_news(&header);
  refused(header, "DiffRequest has field 4000");
}

TEST_F(QuestionTest, StreamsThatBreakTheProtocolAreRefused) {
  const auto refused = [](const grpc::Status& status, const std::string& words) {
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(InfoOf(status).reason(), "BAD_STREAM");
    EXPECT_THAT(status.error_message(), HasSubstr(words));
  };
  refused(Inspect(*client_, {}).status, "without a header");
  refused(Explore(*client_, {Chunk<v1::ExploreRequest>("x")}).status, "starts with a chunk");
  v1::SimulateResponse simulated;
  refused(Simulate(*client_, {v1::SimulateRequest()}, &simulated), "neither header nor chunk");
  v1::DiffResponse diff;
  const v1::DiffRequest question = DiffQuestion("aa", "bbb");
  using Diffs = std::vector<v1::DiffRequest>;
  const auto chunk = [](absl::string_view bytes) { return Chunk<v1::DiffRequest>(bytes); };
  refused(Diff(*client_, Diffs{question, chunk("aab")}, &diff), "graph A: more bytes arrived");
  refused(Diff(*client_, Diffs{question, chunk("aa"), chunk("bbbb")}, &diff),
          "graph B: more bytes arrived");
  refused(Diff(*client_, Diffs{question, chunk("aa")}, &diff),
          "graph B: the stream ended after 0 of the 3");
  refused(Diff(*client_, Diffs{question, chunk("aa"), chunk("bbX")}, &diff),
          "graph B: the graph that arrived has another SHA-256");
  v1::DiffRequest one = question;
  one.mutable_header()->clear_graph_b();
  refused(Diff(*client_, Diffs{one}, &diff), "graph B: total_size_bytes is 0");
}

TEST_F(QuestionTest, LimitsAreThoseOfARewrite) {
  Options options = TestOptions();
  options.limits.set_max_graph_bytes(static_cast<int64_t>(graph_.size()));
  options.limits.set_max_node_count(10);
  options.max_response_bytes = 10;
  Start(options);
  const auto refused = [](const grpc::Status& status, const std::string& words) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(InfoOf(status).reason(), "LIMIT_EXCEEDED");
    EXPECT_THAT(status.error_message(), HasSubstr(words));
  };
  const std::string larger = graph_ + "x";
  refused(Inspect(*client_, {Question<v1::InspectRequest>(v1::InspectOptions(), larger)}).status,
          "at most");
  refused(Inspect(*client_,
                  Upload(Question<v1::InspectRequest>(v1::InspectOptions(), graph_), {graph_}))
              .status,
          "max_node_count");
  v1::DiffResponse diff;
  refused(Diff(*client_, {DiffQuestion("a", larger)}, &diff), "graph B: the graph has");
  // One node: within the limits, but no message of 10 bytes can hold it.
  const std::string tiny = std::string("\x0a\x09\x0a\x01n\x12\x04NoOp", 11);
  const grpc::Status status =
      Inspect(*client_, Upload(Question<v1::InspectRequest>(v1::InspectOptions(), tiny), {tiny}))
          .status;
  EXPECT_EQ(status.error_code(), StatusCode::OUT_OF_RANGE) << status.error_message();
  EXPECT_EQ(InfoOf(status).reason(), "RESULT_TOO_LARGE");
}

// Neither alone is above the budget.
TEST_F(QuestionTest, BothGraphsOfADiffCountTogether) {
  Options options = TestOptions();
  options.limits.set_max_inflight_bytes(1000);
  options.limits.set_max_graph_bytes(1000);
  Start(options);
  const std::string a(600, 'a'), b(400, 'b');
  v1::DiffResponse response;
  grpc::Status status = Diff(*client_, {DiffQuestion(a, b + "b")}, &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(status).reason(), "LIMIT_EXCEEDED");
  grpc::ClientContext context;
  const auto holding = client_->stub().Diff(&context, &response);
  ASSERT_TRUE(holding->Write(DiffQuestion(a, b)));
  EXPECT_TRUE(Eventually([&] { return server_->inflight_bytes() == 1000; }));
  // Smaller uploads have room of their own.
  const std::string more(1000 / CallerShares::kPartOfShare + 1, 'g');
  const auto refused =
      Inspect(*client_, {Question<v1::InspectRequest>(v1::InspectOptions(), more)});
  EXPECT_EQ(refused.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(refused.status).reason(), "OVERLOADED");
  EXPECT_EQ(Metric("spillway_rejected_requests_total{reason=\"inflight_bytes\"}"), 2);
  context.TryCancel();
  (void)holding->Finish();
}

}  // namespace
}  // namespace spillway::server
