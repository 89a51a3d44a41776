// The journal of the program: refusals at startup, and that a full disk stops no request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/server/daemon.h"
#include "tests/server/test_client.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> JournalLines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return absl::StrSplit(std::string(std::istreambuf_iterator<char>(file), {}), '\n',
                        absl::SkipEmpty());
}

grpc::StatusCode AskAsJob(TestClient& client, const std::string& job) {
  grpc::ClientContext context;
  context.AddMetadata("x-spillway-job", job);
  v1::RewriteRequest request;
  request.set_graph_def(SmallGraph());
  *request.mutable_options() = ScopeOptions();
  v1::RewriteResponse response;
  return client.stub().Rewrite(&context, request, &response).error_code();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(JournalProgramTest, WhatCannotBeUsedIsOneSentenceAndExitOne) {
  const test_certs::TempFolder folder;
  const std::string none = folder.path("none");
  for (const char* also : {"--listen=127.0.0.1:0", "--check"}) {
    const Finished finished = RunToEnd({"--journal", none, "--metrics-listen=none", also});
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(Count(finished.err, "\n"), 1u) << finished.err;
    EXPECT_THAT(finished.err, AllOf(HasSubstr("--journal"), HasSubstr(none)));
  }
}

TEST(JournalProgramTest, OneServerPerFolder) {
  const test_certs::TempFolder folder;
  Daemon daemon({"--journal", folder.path("")});
  const Finished second =
      RunToEnd({"--journal", folder.path(""), "--listen=127.0.0.1:0", "--metrics-listen=none"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(Count(second.err, "\n"), 1u) << second.err;
  EXPECT_THAT(second.err, AllOf(HasSubstr("another server"), HasSubstr("--journal")));
  EXPECT_EQ(RunToEnd({"--journal", folder.path(""), "--check"}).exit_code, 0);
}

TEST(JournalProgramTest, AllIsWrittenWhenItEnds) {
  const test_certs::TempFolder folder;
  Daemon daemon({"--journal", folder.path("")});
  TestClient client(daemon.address());
  constexpr int kRequests = 20;
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(AskAsJob(client, absl::StrCat("job-", i)), grpc::StatusCode::OK);
  }
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
  const std::vector<std::string> lines = JournalLines(folder.path("journal.jsonl"));
  ASSERT_EQ(lines.size(), size_t{kRequests});
  // In the order in which they end, not that of the answers.
  std::set<std::string> jobs;
  int made = 0;
  for (const std::string& text : lines) {
    const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(line.is_object()) << text;
    jobs.insert(line["job"].get<std::string>());
    EXPECT_EQ(line["outcome"], "rewritten");
    made += line["answered_from"] == "work";
  }
  EXPECT_EQ(jobs.size(), size_t{kRequests});
  EXPECT_EQ(made, 1) << "the others are kept";
}

// A limit on file sizes stands for a full disk: writes are truncated, then refused, until there is
// room.
TEST(JournalProgramTest, AFullDiskLosesLinesAndNoRequest) {
  const test_certs::TempFolder folder;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;  // Two or three lines.
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Daemon daemon({"--journal", folder.path("")});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  TestClient client(daemon.address());
  constexpr int kRequests = 12;
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(AskAsJob(client, absl::StrCat("job-", i)), grpc::StatusCode::OK) << i;
  }
  const auto written = [&] { return Sample(daemon.Scrape(), "spillway_journal_lines_total"); };
  const auto lost = [&] { return Sample(daemon.Scrape(), "spillway_journal_lost_lines_total"); };
  ASSERT_TRUE(Eventually([&] { return written() + lost() == kRequests; }));
  EXPECT_GE(written(), 1);
  EXPECT_GE(lost(), 5);
  const std::vector<std::string> full = JournalLines(folder.path("journal.jsonl"));
  EXPECT_EQ(full.size(), written());
  for (const std::string& line : full) {
    EXPECT_TRUE(absl::StartsWith(line, "{") && absl::EndsWith(line, "}")) << line;
  }
  ASSERT_EQ(prlimit(daemon.process().pid(), RLIMIT_FSIZE, &before, nullptr), 0);
  ASSERT_EQ(AskAsJob(client, "after"), grpc::StatusCode::OK);
  daemon.process().Signal(SIGTERM);
  const std::string log = daemon.process().ReadStderr();
  EXPECT_EQ(daemon.process().Wait(), 0);
  EXPECT_EQ(Count(log, " warning the journal loses lines "), 1u) << log;
  EXPECT_EQ(Count(log, " info the journal works again "), 1u) << log;
  EXPECT_EQ(Count(log, " info request "), size_t{kRequests + 1});
  const std::vector<std::string> all = JournalLines(folder.path("journal.jsonl"));
  ASSERT_EQ(all.size(), full.size() + 1);
  EXPECT_THAT(all.back(), HasSubstr("\"job\":\"after\""));
}

}  // namespace
}  // namespace spillway::server
