// The log of the program: one line per event, for any request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/server/daemon.h"
#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A graph of one node whose invalid name would end a log line and begin another.
constexpr char kForged[] = "x\n2026-01-01T00:00:00.000Z info forged=\"yes\"\x1b[31m\xff";

std::string HostileGraph() {
  const std::string name(kForged);
  std::string node = absl::StrCat("\x0a", std::string(1, static_cast<char>(name.size())), name);
  return absl::StrCat("\x0a", std::string(1, static_cast<char>(node.size())), node);
}

constexpr char kTraceparent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// The lines that a server with these flags logs for one request with HostileGraph.
std::vector<std::string> LogOfHostileRequest(const std::string& format) {
  Daemon daemon({absl::StrCat("--log-format=", format)});
  TestClient client(daemon.address());
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "job-17");
  context.AddMetadata("traceparent", kTraceparent);
  context.AddMetadata("x-spillway-job", "4711");
  context.AddMetadata("x-spillway-user", "x job=\"forged\"");
  context.AddMetadata("x-spillway-model", std::string(129, 'm'));
  v1::RewriteRequest request;
  request.set_graph_def(HostileGraph());
  v1::RewriteResponse response;
  const grpc::Status status = client.stub().Rewrite(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("forged")) << "or this test tests nothing";
  daemon.process().Signal(SIGTERM);
  std::vector<std::string> lines =
      absl::StrSplit(daemon.process().ReadStderr(), '\n', absl::SkipEmpty());
  EXPECT_EQ(daemon.process().Wait(), 0);
  EXPECT_EQ(lines.size(), 3u) << "the request, draining, drained";
  return lines;
}

TEST(LogTest, JsonIsOneObjectPerLine) {
  int requests = 0;
  for (const std::string& line : LogOfHostileRequest("json")) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_EQ(object["level"], "info");
    EXPECT_THAT(object["time"].get<std::string>(), ::testing::EndsWith("Z"));
    if (object["message"] != "request") continue;
    ++requests;
    EXPECT_EQ(object["id"], "job-17");
    EXPECT_EQ(object["traceparent"], kTraceparent);
    EXPECT_EQ(object["method"], "Rewrite");
    EXPECT_EQ(object["code"], "INVALID_ARGUMENT");
    EXPECT_EQ(object["reason"], "BAD_NODE_NAME");
    EXPECT_EQ(object["job"], "4711");
    EXPECT_FALSE(object.contains("user")) << "it is not plain";
    EXPECT_FALSE(object.contains("model")) << "it is too long";
    EXPECT_EQ(object["bytes_in"], HostileGraph().size());
    EXPECT_TRUE(object["ms"].is_number());
    EXPECT_THAT(object["error"].get<std::string>(), HasSubstr("forged"));
  }
  EXPECT_EQ(requests, 1);
}

TEST(LogTest, TextStaysOnItsLine) {
  int requests = 0;
  for (const std::string& line : LogOfHostileRequest("text")) {
    for (const unsigned char c : line) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << line;
    EXPECT_THAT(line, Not(HasSubstr(" forged=\"yes\""))) << "a quote inside a field is escaped";
    if (line.find(" request ") == std::string::npos) continue;
    ++requests;
    EXPECT_THAT(line, HasSubstr(" id=job-17 "));
    EXPECT_THAT(line, HasSubstr(" job=4711 reason=BAD_NODE_NAME error="));
    EXPECT_THAT(line, Not(HasSubstr("user=")));
  }
  EXPECT_EQ(requests, 1);
}

// protobuf reports an invalid string on stderr by default.
v1::RewriteRequest WithInvalidString() {
  v1::RewriteRequest request;
  request.set_graph_def(HostileGraph());
  request.mutable_options()->mutable_scope()->add_optimizer_scopes("\xff\xfe");
  return request;
}

TEST(LogTest, LibrariesWriteNothingBesideIt) {
  const google::protobuf::LogSilencer here;
  Daemon daemon({"--log-format=json"});
  TestClient client(daemon.address());
  v1::RewriteResponse response;
  EXPECT_EQ(client.Rewrite(WithInvalidString(), &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  daemon.process().Signal(SIGTERM);
  for (const absl::string_view line :
       absl::StrSplit(daemon.process().ReadStderr(), '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  EXPECT_EQ(daemon.process().Wait(), 0);
}

// A pipe holds 64 KiB, and it is not read.
TEST(LogTest, WhoDoesNotReadItStopsNobody) {
  const google::protobuf::LogSilencer here;
  Daemon daemon;
  TestClient client(daemon.address());
  v1::RewriteRequest request;
  request.set_graph_def(HostileGraph());
  v1::RewriteResponse response;
  constexpr int kRequests = 12'000;  // More than the pipe and the queue can hold.
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(client.Rewrite(i % 4 == 0 ? WithInvalidString() : request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << i;
  }
  const double dropped = Sample(daemon.Scrape(), "spillway_log_lines_dropped");
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, kRequests);
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0) << "nor does it hold up the end";
}

}  // namespace
}  // namespace spillway::server
