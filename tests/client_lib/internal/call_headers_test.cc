// A call's headers about itself: they arrive, but not at wrong places.
#include "client_lib/internal/call_headers.h"

#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spillway/client.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::kMnistPath;
using testing::MnistOptions;
using ::testing::Not;
using ::testing::Pair;
using testing::ReadFile;
using testing::TempDir;
using testing::TestServer;

constexpr char kTraceparent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

RemoteOptions To(const TestServer& server) {
  RemoteOptions options;
  options.target = server.target();
  options.retry.max_attempts = 1;
  return options;
}

TEST(CallHeadersTest, ArriveWithEveryCall) {
  const TestServer server;
  RemoteOptions options = To(server);
  CallOptions call;
  call.request_id = "job-17/step:3";
  call.traceparent = kTraceparent;
  call.token = "abc-._~+/123==";
  call.metadata = {{"x-tenant", "vision group"}, {"x-empty", ""}};
  const std::string graph = ReadFile(kMnistPath);
  const auto expect = [&](const absl::Status& status, const char* name) {
    EXPECT_TRUE(status.ok()) << name << ": " << status;
    EXPECT_THAT(
        server.last_metadata(),
        IsSupersetOf({Pair("x-request-id", "job-17/step:3"), Pair("traceparent", kTraceparent),
                      Pair("authorization", "Bearer abc-._~+/123=="),
                      Pair("x-tenant", "vision group"), Pair("x-empty", "")}))
        << name;
    // So that the next call has to bring its own.
    EXPECT_TRUE(Client(MakeRemoteConnection(options)).GetCapabilities().ok());
    EXPECT_THAT(server.last_metadata(), Not(Contains(Pair("traceparent", kTraceparent))));
  };
  const Client client(MakeRemoteConnection(options));
  expect(client.Rewrite(graph, MnistOptions(), call).status(), "Rewrite");
  expect(client.Inspect(graph, {}, call).status(), "Inspect");
  expect(client.Simulate(graph, {}, call).status(), "Simulate");
  v1::ExploreOptions sizes;
  sizes.set_no_budget(true);
  sizes.add_sizes(8);
  expect(client.Explore(graph, sizes, nullptr, call).status(), "Explore");
  expect(client.Diff(graph, graph, call).status(), "Diff");
  expect(client.GetCapabilities(call).status(), "GetCapabilities");
  RemoteOptions streamed = options;
  streamed.unary_max_bytes = -1;
  expect(Client(MakeRemoteConnection(streamed)).Rewrite(graph, MnistOptions(), call).status(),
         "StreamRewrite");
}

TEST(CallHeadersTest, WithoutThemNoneIsSent) {
  const TestServer server;
  EXPECT_TRUE(Client(MakeRemoteConnection(To(server))).GetCapabilities().ok());
  for (const char* key : {"x-request-id", "traceparent", "authorization"}) {
    EXPECT_EQ(server.last_metadata().count(key), 0u) << key;
  }
}

// Variables of the job, for one test.
class JobVariables {
 public:
  explicit JobVariables(const std::vector<std::pair<const char*, std::string>>& values) {
    Clear();
    for (const auto& [name, value] : values) setenv(name, value.c_str(), 1);
  }
  ~JobVariables() { Clear(); }

 private:
  static void Clear() {
    for (const char* name : {"SPILLWAY_JOB", "SPILLWAY_USER", "SPILLWAY_QUEUE", "SPILLWAY_MODEL"}) {
      unsetenv(name);
    }
  }
};

TEST(CallHeadersTest, TheEnvironmentNamesTheJob) {
  const TestServer server;
  const JobVariables variables({{"SPILLWAY_JOB", "17_3"},
                                {"SPILLWAY_USER", "ann\n\"lee\" \xc3\xa9"},
                                {"SPILLWAY_QUEUE", ""},
                                {"SPILLWAY_MODEL", std::string(1 << 20, 'm')}});
  const Client client(MakeRemoteConnection(To(server)));
  ASSERT_TRUE(client.GetCapabilities().ok());
  auto metadata = server.last_metadata();
  EXPECT_THAT(metadata, IsSupersetOf({Pair("x-spillway-job", "17_3"),
                                      Pair("x-spillway-user", "ann__lee____")}));
  EXPECT_THAT(metadata, Contains(Pair("x-spillway-model", std::string(128, 'm'))));
  EXPECT_EQ(metadata.count("x-spillway-queue"), 0u);
  // The call's own values take precedence, and are sent once.
  CallOptions call;
  call.metadata = {
      {"x-spillway-job", "mine"}, {"x-spillway-job", "other"}, {"x-two", "1"}, {"x-two", "2"}};
  ASSERT_TRUE(client.GetCapabilities(call).ok());
  metadata = server.last_metadata();
  EXPECT_EQ(metadata.count("x-spillway-job"), 1u);
  EXPECT_THAT(metadata,
              IsSupersetOf({Pair("x-spillway-job", "mine"), Pair("x-two", "1"), Pair("x-two", "2"),
                            Pair("x-spillway-user", "ann__lee____")}));
}

TEST(CallHeadersTest, MetadataThatCannotBeSentIsNamedAndNothingIsSent) {
  const TestServer server;
  const Client client(MakeRemoteConnection({server.target()}));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "x"},
      {"X-Tenant", "x"},
      {"x tenant", "x"},
      {"authorization", "Bearer x"},
      {"x-request-id", "x"},
      {"grpc-timeout", "1S"},
      {"trace-bin", "x"},
      {":path", "x"},
      {std::string(65, 'x'), "x"},
      {"x-tenant", "two\r\nlines"},
      {"x-tenant", "\xc3\xa9"},
      {"x-tenant", std::string(1025, 'x')}};
  for (const auto& entry : bad) {
    CallOptions call;
    call.metadata = {{"x-fine", "1"}, entry};
    const absl::Status status = client.GetCapabilities(call).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << entry.first << ": " << status;
    EXPECT_EQ(ErrorReasonOf(status), v1::ERROR_REASON_BAD_OPTION);
    EXPECT_EQ(ErrorInfoOf(status).metadata().at("option"), "metadata");
  }
  CallOptions many;
  many.metadata.assign(33, {"x-tenant", "x"});
  EXPECT_EQ(ErrorReasonOf(client.GetCapabilities(many).status()), v1::ERROR_REASON_BAD_OPTION);
  EXPECT_EQ(server.unary_calls(), 0);
  EXPECT_EQ(ErrorReasonOf(absl::OkStatus()), v1::ERROR_REASON_UNSPECIFIED);
  EXPECT_EQ(ErrorReasonOf(absl::UnknownError("of nobody")), v1::ERROR_REASON_UNSPECIFIED);
}

TEST(CallHeadersTest, WhatCannotBeSentIsNamedAndNothingIsSent) {
  const TestServer server;
  const Client client(MakeRemoteConnection(To(server)));
  struct Bad {
    CallOptions call;
    const char* option;
    const char* words;
  };
  std::vector<Bad> all(4);
  all[0].call.request_id = "two words";
  all[0].option = "request_id";
  all[0].words = "'two words'";
  all[1].call.traceparent = "00-1-2-3";
  all[1].option = "traceparent";
  all[1].words = "'00-1-2-3'";
  all[2].call.token = "secret\r\nx-evil: 1";
  all[2].option = "token";
  all[2].words = "RFC 6750";
  all[3].call.token = std::string(4097, 's');
  all[3].option = "token";
  all[3].words = "4096";
  for (const Bad& bad : all) {
    const absl::Status rewrite = client.Rewrite("graph", MnistOptions(), bad.call).status();
    const absl::Status health = client.CheckHealth("", bad.call).status();
    for (const absl::Status& status : {rewrite, health}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_EQ(ErrorInfoOf(status).reason(), "BAD_OPTION");
      EXPECT_EQ(ErrorInfoOf(status).metadata().at("option"), bad.option);
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(bad.words), Not(HasSubstr("ecret"))));
    }
  }
  EXPECT_EQ(server.unary_calls(), 0);
}

TEST(CallHeadersTest, TheTokensFileIsReadByEveryCall) {
  const TestServer server;
  const TempDir dir;
  const std::string file = dir / "token";
  RemoteOptions options = To(server);
  options.token_file = file;
  const Client client(MakeRemoteConnection(options));
  for (const char* token : {"first", "second"}) {
    dir.Write("token", std::string(token) + "\n");
    EXPECT_TRUE(client.GetCapabilities().ok());
    EXPECT_THAT(server.last_metadata(),
                Contains(Pair("authorization", std::string("Bearer ") + token)));
  }
  CallOptions own;
  own.token = "own";
  EXPECT_TRUE(client.GetCapabilities(own).ok());
  EXPECT_THAT(server.last_metadata(), Contains(Pair("authorization", "Bearer own")));
}

TEST(CallHeadersTest, ATokensFileThatHoldsNoneIsNamed) {
  const TempDir dir;
  const std::string file = dir / "token";
  RemoteOptions options;
  options.token_file = file;
  const auto fault = [&] {
    const absl::Status status =
        internal::MakeCallHeaders(options, {"127.0.0.1:1"}, CallOptions()).status();
    EXPECT_EQ(ErrorInfoOf(status).reason(), "BAD_OPTION");
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(file), Not(HasSubstr("ecret"))));
    return std::string(status.message());
  };
  fault();  // No fault.
  dir.Write("token", "\n");
  EXPECT_THAT(fault(), HasSubstr("holds no token"));
  dir.Write("token", "secret1 secret2");
  EXPECT_THAT(fault(), HasSubstr("holds no token"));
}

TEST(CallHeadersTest, ATokenGoesNowhereInClear) {
  CallOptions call;
  call.token = "secret";
  RemoteOptions options;
  const auto headers = [&](const std::vector<std::string>& addresses) {
    return internal::MakeCallHeaders(options, addresses, call);
  };
  const std::vector<std::string> mixed = {"127.0.0.1:1", "trainer.example:7070"};
  const absl::Status status = headers(mixed).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "BAD_OPTION");
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'trainer.example:7070'"),
                                                   HasSubstr("--tls"), Not(HasSubstr("secret"))));
  EXPECT_TRUE(headers({"127.0.0.1:1", "unix:/run/s"}).ok());
  options.token_in_clear = true;
  EXPECT_TRUE(headers(mixed).ok());
  options.token_in_clear = false;
  options.tls.emplace();
  EXPECT_TRUE(headers(mixed).ok());
  // Headers without secrets go anywhere.
  options.tls.reset();
  call.token.clear();
  call.traceparent = kTraceparent;
  EXPECT_TRUE(headers(mixed).ok());
}

}  // namespace
}  // namespace spillway
