// The names of a caller's job and the outcome of its requests, in the server's journal and metrics.
#include <grpcpp/test/server_context_test_spouse.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewrite_core/base/error.h"
#include "server/base/request_id.h"
#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

// The metadata as gRPC would deliver it, including values that its clients refuse to send.
JobNames NamesWith(const std::string& job, const std::string& key = "x-spillway-job") {
  grpc::ServerContext context;
  grpc::testing::ServerContextTestSpouse spouse(&context);
  spouse.AddClientMetadata(key, job);
  return JobNamesOf(context);
}

TEST(JobNamesTest, TakesPlainOnesAndDropsOthers) {
  EXPECT_EQ(NamesWith("4711_3").job, "4711_3");
  EXPECT_EQ(NamesWith(std::string(128, 'j')).job, std::string(128, 'j'));
  EXPECT_EQ(NamesWith("alice", "x-spillway-user").user, "alice");
  EXPECT_EQ(NamesWith("gpu", "x-spillway-queue").queue, "gpu");
  EXPECT_EQ(NamesWith("resnet50", "x-spillway-model").model, "resnet50");
  for (const std::string& bad :
       {std::string(129, 'j'), std::string(1 << 20, 'j'), std::string("two words"),
        std::string("a\nb"), std::string("a\rb"), std::string("a\"b"), std::string("a\\b"),
        std::string("a\0b", 3), std::string("\xff"), std::string()}) {
    EXPECT_EQ(NamesWith(bad).job, "") << bad.substr(0, 20);
  }
  EXPECT_EQ(NamesWith("4711", "x-spillway-job-bin").job, "") << "another key";
}

class JobJournalTest : public ServerFixture {
 protected:
  void SetUp() override {}

  void StartWith(RewriteFunction rewrite) {
    Options options = TestOptions();
    options.journal = folder_.path("");
    options.cache_bytes = 1 << 20;
    options.rewrite = std::move(rewrite);
    Start(options);
  }
  void TearDown() override {}  // Answers stay cached.

  using Metadata = std::vector<std::pair<std::string, std::string>>;
  grpc::Status Ask(const Metadata& metadata = {}, const std::string& graph = "graph") {
    grpc::ClientContext context;
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    v1::RewriteRequest request;
    request.set_graph_def(graph);
    *request.mutable_options() = ScopeOptions();
    v1::RewriteResponse response;
    return client_->stub().Rewrite(&context, request, &response);
  }

  // Waits for this many lines of the journal and returns them.
  std::vector<nlohmann::json> Lines(size_t count) {
    std::vector<nlohmann::json> lines;
    EXPECT_TRUE(Eventually([&] {
      lines.clear();
      std::ifstream file(folder_.path("journal.jsonl"));
      for (std::string line; std::getline(file, line);) {
        lines.push_back(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
      }
      return lines.size() >= count;
    })) << lines.size();
    EXPECT_EQ(lines.size(), count);
    lines.resize(count);
    return lines;
  }

  const test_certs::TempFolder folder_;
};

TEST_F(JobJournalTest, HasTheNamesOfTheJobAndWhoDidTheWork) {
  StartWith(&FakeRewrite);
  EXPECT_TRUE(Ask({{"x-spillway-job", "4711"},
                   {"x-spillway-user", "alice"},
                   {"x-spillway-queue", "gpu"},
                   {"x-spillway-model", "resnet50"},
                   {"x-request-id", "r-1"}})
                  .ok());
  Lines(1);  // Lines come in the order in which requests end, not that of the answers.
  EXPECT_TRUE(Ask({{"x-spillway-job", "4712"}, {"x-spillway-user", "not plain"}}).ok());
  const auto lines = Lines(2);
  EXPECT_EQ(lines[0]["job"], "4711");
  EXPECT_EQ(lines[0]["user"], "alice");
  EXPECT_EQ(lines[0]["queue"], "gpu");
  EXPECT_EQ(lines[0]["model"], "resnet50");
  EXPECT_EQ(lines[0]["id"], "r-1");
  EXPECT_EQ(lines[0]["code"], "OK");
  EXPECT_EQ(lines[0]["outcome"], "rewritten");
  EXPECT_EQ(lines[0]["answered_from"], "work");
  EXPECT_EQ(lines[0]["swapped_tensors"], 5);
  EXPECT_EQ(lines[0]["swap_out_bytes"], 2001);
  EXPECT_EQ(lines[1]["job"], "4712");
  EXPECT_FALSE(lines[1].contains("user"));
  EXPECT_EQ(lines[1]["answered_from"], "cache");
  EXPECT_EQ(lines[1]["outcome"], "rewritten");
  // Each is counted, since each is a job that asked.
  EXPECT_EQ(
      Metric(
          "spillway_rewrite_swap_bytes_per_step_count{outcome=\"rewritten\",strategy=\"scope\"}"),
      2);
  EXPECT_EQ(Metric("spillway_rewrites_by_machine_total{machine=\"none\"}"), 2);
  EXPECT_TRUE(Eventually([&] { return Metric("spillway_journal_lines_total") == 2; }));
  EXPECT_EQ(Metric("spillway_journal_lost_lines_total"), 0);
}

TEST_F(JobJournalTest, AMegabyteOfJobIsRefusedAndTheServerGoesOn) {
  StartWith(&FakeRewrite);
  EXPECT_FALSE(Ask({{"x-spillway-job", std::string(1 << 20, 'j')}}).ok());
  // gRPC may have closed the connection: a retry is allowed.
  EXPECT_TRUE(Eventually([&] { return Ask({{"x-spillway-job", "4711"}}).ok(); }));
  EXPECT_EQ(Metric("spillway_journal_lost_lines_total"), 0);
}

TEST_F(JobJournalTest, HasFailuresWithTheirReasonAndNothingOfTheGraph) {
  StartWith([](absl::string_view, const v1::RewriteOptions&, const v1::Limits&,
               const core::StopToken&, core::PlanReuse*) -> absl::StatusOr<v1::RewriteResponse> {
    return core::Error(
        absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
        "node 'secret/layer' does not fit",
        {{"node", "secret/layer"}, {"budget_bytes", "1000"}, {"smallest_budget_bytes", "1100"}});
  });
  EXPECT_EQ(Ask({{"x-spillway-job", "4711"}}).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  const auto lines = Lines(1);
  EXPECT_EQ(lines[0]["job"], "4711");
  EXPECT_EQ(lines[0]["code"], "FAILED_PRECONDITION");
  EXPECT_EQ(lines[0]["reason"], "DOES_NOT_FIT");
  EXPECT_EQ(lines[0]["outcome"], "does_not_fit");
  EXPECT_EQ(lines[0]["budget_bytes"], 1000);
  EXPECT_EQ(lines[0]["need_bytes"], 1100);
  EXPECT_THAT(lines[0].dump(), ::testing::Not(::testing::HasSubstr("secret")));
  EXPECT_EQ(Metric("spillway_request_errors_total{fault=\"caller\",reason=\"does_not_fit\"}"), 1);
  const std::string labels = "{outcome=\"does_not_fit\",strategy=\"scope\"}";
  EXPECT_EQ(Metric("spillway_rewrite_outcomes_total" + labels), 1);
  EXPECT_NEAR(Metric("spillway_rewrite_need_ratio_sum" + labels), 1.1, 1e-9);
}

TEST_F(JobJournalTest, WhoGoesAwayIsStoppedAndHasNoOutcome) {
  Gate gate;
  StartWith(gate.AsFunction());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  v1::RewriteRequest request;
  request.set_graph_def("graph");
  *request.mutable_options() = ScopeOptions();
  v1::RewriteResponse response;
  EXPECT_FALSE(client_->stub().Rewrite(&context, request, &response).ok());
  const auto lines = Lines(1);
  EXPECT_EQ(lines[0]["reason"], "STOPPED");
  EXPECT_FALSE(lines[0].contains("outcome"));
  EXPECT_EQ(Metric("spillway_request_errors_total{fault=\"stopped\",reason=\"stopped\"}"), 1);
}

}  // namespace
}  // namespace spillway::server
