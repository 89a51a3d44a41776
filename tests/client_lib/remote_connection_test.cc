// A server's peculiarities: transport of the graph, and errors of the server or the network.
#include "spillway/remote_connection.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spillway/client.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway {
namespace {

using ::testing::AllOf;
using testing::Fault;
using testing::GraphWithPadding;
using ::testing::HasSubstr;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::ReadFile;
using testing::ServerOptions;
using testing::TestServer;

constexpr int64_t kNever = -1;  // As unary_max_bytes: everything is streamed.

Client MakeClient(const TestServer& server, int64_t unary_max_bytes = 2 << 20) {
  RemoteOptions options;
  options.target = server.target();
  options.unary_max_bytes = unary_max_bytes;
  options.retry.max_attempts = 1;  // retry_test.cc has the others.
  return Client(MakeRemoteConnection(options));
}

TEST(RemoteConnectionTest, ASmallGraphGoesInOneMessageAndALargeOneInAStream) {
  TestServer server;
  const std::string graph = ReadFile(kMnistPath);
  const int64_t size = graph.size();
  EXPECT_TRUE(MakeClient(server, size).Rewrite(graph, MnistOptions()).ok());
  EXPECT_EQ(server.unary_calls(), 1);
  EXPECT_EQ(server.stream_calls(), 0);
  EXPECT_TRUE(MakeClient(server, size - 1).Rewrite(graph, MnistOptions()).ok());
  EXPECT_EQ(server.unary_calls(), 1);
  EXPECT_EQ(server.stream_calls(), 1);
}

TEST(RemoteConnectionTest, AGraphAboveTheUnaryLimitOfAnyServerJustWorks) {
  TestServer server;
  const std::string graph = GraphWithPadding(20 << 20);
  const auto response = MakeClient(server).Rewrite(graph, MnistOptions());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_GE(response->graph_def().size(), graph.size());
  EXPECT_EQ(server.unary_calls(), 0);
  EXPECT_EQ(server.largest_chunk_bytes(), 512 << 10);
}

TEST(RemoteConnectionTest, AServerWithALowerLimitGetsAStreamAfterAll) {
  ServerOptions options;
  options.max_message_bytes = 600 << 10;  // More than a chunk, less than the graph.
  TestServer server(options);
  const std::string graph = GraphWithPadding(1 << 20);
  const auto response = MakeClient(server).Rewrite(graph, MnistOptions());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.stream_calls(), 1);
}

TEST(RemoteConnectionTest, AnOverloadedServerIsNotAskedTwice) {
  TestServer server(WithFault(Fault::kEarlyError));
  const auto response = MakeClient(server).Rewrite(ReadFile(kMnistPath), MnistOptions());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server.unary_calls(), 1);
  EXPECT_EQ(server.stream_calls(), 0);
}

// The server does not read on: the client must notice while it still writes.
TEST(RemoteConnectionTest, AnEarlyErrorEndsAStreamThatIsStillWriting) {
  TestServer server(WithFault(Fault::kEarlyError));
  const auto response =
      MakeClient(server, kNever).Rewrite(GraphWithPadding(32 << 20), MnistOptions());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(response.status().message(), "no room now");
  const v1::ErrorInfo info = ErrorInfoOf(response.status());
  EXPECT_EQ(info.reason(), "OVERLOADED");
  EXPECT_EQ(info.metadata().at("inflight_bytes"), "7");
}

struct DamagedAnswer {
  const char* name;
  Fault fault;
  const char* message;
};

class DamagedAnswerTest : public ::testing::TestWithParam<DamagedAnswer> {};

TEST_P(DamagedAnswerTest, IsAnErrorThatSaysWhat) {
  TestServer server(WithFault(GetParam().fault));
  const auto response = MakeClient(server, kNever).Rewrite(ReadFile(kMnistPath), MnistOptions());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrorInfoOf(response.status()).reason(), "BAD_STREAM");
  EXPECT_THAT(std::string(response.status().message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedAnswerTest,
    ::testing::Values(DamagedAnswer{"Short", Fault::kShortAnswer, "bytes instead of"},
                      DamagedAnswer{"Long", Fault::kLongAnswer, "more than the"},
                      DamagedAnswer{"Huge", Fault::kHugeAnswer, "announces 1099511627776 bytes"},
                      DamagedAnswer{"WrongChecksum", Fault::kWrongChecksum, "CRC-32C"},
                      DamagedAnswer{"NoChecksum", Fault::kNoChecksum, "CRC-32C"},
                      DamagedAnswer{"NoHeader", Fault::kNoHeader, "no header"},
                      DamagedAnswer{"TwoHeaders", Fault::kTwoHeaders, "two headers"},
                      DamagedAnswer{"Nothing", Fault::kNoAnswer, "no header"}),
    [](const auto& test) { return std::string(test.param.name); });

struct DamagedQuestion {
  const char* name;
  Fault fault;
  const char* inspect;
  const char* others;  // Simulate, Explore and Diff; null: the fault is none of theirs.
};

class DamagedQuestionTest : public ::testing::TestWithParam<DamagedQuestion> {};

TEST_P(DamagedQuestionTest, IsAnErrorThatSaysWhat) {
  TestServer server(WithFault(GetParam().fault));
  const Client client = MakeClient(server);
  const std::string graph = ReadFile(kMnistPath);
  const auto expect = [](const absl::Status& status, const char* message) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_EQ(ErrorInfoOf(status).reason(), "BAD_STREAM");
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  expect(client.InspectTensors(graph, {}, nullptr).status(), GetParam().inspect);
  v1::ExploreOptions sizes;
  sizes.set_no_budget(true);
  sizes.add_sizes(8);
  if (GetParam().others == nullptr) return;
  expect(client.Explore(graph, sizes).status(), GetParam().others);
  if (GetParam().fault != Fault::kNoAnswer) return;  // Those with one message have no second one.
  expect(client.Simulate(graph, {}).status(), "no report");
  expect(client.Diff(graph, graph).status(), "no diff");
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedQuestionTest,
    ::testing::Values(DamagedQuestion{"NoSummary", Fault::kNoHeader, "no summary", nullptr},
                      DamagedQuestion{"Twice", Fault::kTwoHeaders, "two summaries", "goes on"},
                      DamagedQuestion{"Nothing", Fault::kNoAnswer, "no summary", "no report"}),
    [](const auto& test) { return std::string(test.param.name); });

// The second attempt answers from its beginning.
TEST(RemoteConnectionTest, WhatWasToldIsNotToldAgainByTheNextAttempt) {
  RemoteOptions remote;
  remote.retry.initial_backoff = absl::ZeroDuration();
  const std::string graph = ReadFile(kMnistPath);
  {
    TestServer server(WithFault(Fault::kBreaksOff));
    remote.target = server.target();
    std::vector<std::string> names;
    const auto summary = Client(MakeRemoteConnection(remote))
                             .InspectTensors(graph, {}, [&names](const v1::TensorList& list) {
                               for (const auto& tensor : list.tensors()) {
                                 names.push_back(tensor.tensor());
                               }
                             });
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(server.questions(), 2);
    EXPECT_GT(names.size(), 300u);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  }
  TestServer server(WithFault(Fault::kBreaksOff));
  remote.target = server.target();
  v1::ExploreOptions sizes;
  sizes.set_no_budget(true);
  sizes.add_sizes(8);
  sizes.add_sizes(16);
  std::vector<int64_t> told;
  const auto report = Client(MakeRemoteConnection(remote))
                          .Explore(graph, sizes, [&told](const v1::ExploredSize& size) {
                            told.push_back(size.size());
                          });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(server.questions(), 2);
  EXPECT_THAT(told, ::testing::UnorderedElementsAre(8, 16));
}

TEST(RemoteConnectionTest, AQuestionGoesInChunksAndTellsItsProgress) {
  TestServer server;
  RemoteOptions remote;
  remote.target = server.target();
  remote.chunk_bytes = 10'000;
  const std::string graph = ReadFile(kMnistPath);
  CallOptions call;
  std::vector<Progress> seen;
  call.on_progress = [&seen](const Progress& progress) { seen.push_back(progress); };
  ASSERT_TRUE(Client(MakeRemoteConnection(remote)).Diff(graph, graph, call).ok());
  EXPECT_EQ(server.largest_chunk_bytes(), 10'000);
  const int64_t both = 2 * graph.size();
  ASSERT_GT(seen.size(), 3u);
  EXPECT_EQ(seen[0].done_bytes, 0);
  EXPECT_EQ(seen[0].total_bytes, both);
  EXPECT_EQ(seen[seen.size() - 2].done_bytes, both);
  EXPECT_EQ(seen.back().stage, Stage::kRewriting);
}

TEST(RemoteConnectionTest, AQuestionThatHangsIsFreed) {
  TestServer server(WithFault(Fault::kHang));
  CallOptions call;
  call.timeout = absl::Milliseconds(100);  // Any time will do: the server never answers.
  const Client client = MakeClient(server);
  const std::string graph = ReadFile(kMnistPath);
  for (const absl::Status& status :
       {client.Inspect(graph, {}, call).status(), client.Simulate(graph, {}, call).status(),
        client.Explore(graph, {}, nullptr, call).status(),
        client.Diff(graph, graph, call).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(ErrorInfoOf(status).reason(), "STOPPED");
  }
}

// How the graph travels makes no difference to how a call ends.
class StoppedCallTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(StoppedCallTest, CancellingFreesACallThatHangsAndTheServer) {
  TestServer server(WithFault(Fault::kHang));
  const Client client = MakeClient(server, GetParam());
  CallOptions call;
  std::thread canceller([&server, token = call.cancellation]() mutable {
    while (server.hanging() == 0) absl::SleepFor(absl::Milliseconds(1));
    token.Cancel();
  });
  const auto response = client.Rewrite(GraphWithPadding(8 << 20), MnistOptions(), call);
  canceller.join();
  EXPECT_EQ(response.status().code(), absl::StatusCode::kCancelled) << response.status();
  EXPECT_EQ(ErrorInfoOf(response.status()).reason(), "STOPPED");
  while (server.released() == 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST_P(StoppedCallTest, TheDeadlineFreesACallThatHangsAndTheServer) {
  TestServer server(WithFault(Fault::kHang));
  const Client client = MakeClient(server, GetParam());
  CallOptions call;
  call.timeout = absl::Milliseconds(300);  // Any time will do: the server never answers.
  const auto response = client.Rewrite(ReadFile(kMnistPath), MnistOptions(), call);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded) << response.status();
  EXPECT_EQ(ErrorInfoOf(response.status()).reason(), "STOPPED");
  EXPECT_THAT(std::string(response.status().message()), HasSubstr(server.target()));
  while (server.released() < server.hanging()) absl::SleepFor(absl::Milliseconds(1));
}

INSTANTIATE_TEST_SUITE_P(All, StoppedCallTest, ::testing::Values(kNever, 64 << 20),
                         [](const auto& test) { return test.param < 0 ? "Stream" : "Unary"; });

// gRPC 1.51 would wait for ever (channel.cc). For a slow connection that is the time of the
// answer's first message.
TEST(RemoteConnectionTest, AStopBetweenTheHeadersAndTheAnswerEndsTheCall) {
  TestServer server(WithFault(Fault::kHangsInAnswer));
  const Client client = MakeClient(server, kNever);
  const std::string graph = GraphWithPadding(8 << 20);
  // Long enough for the headers to arrive, and anything longer will do.
  const absl::Duration headers = absl::Milliseconds(200);
  CallOptions timed;
  timed.timeout = headers;
  EXPECT_EQ(client.Rewrite(graph, MnistOptions(), timed).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  CallOptions cancelled;
  std::thread canceller([headers, token = cancelled.cancellation]() mutable {
    absl::SleepFor(headers);
    token.Cancel();
  });
  EXPECT_EQ(client.Rewrite(graph, MnistOptions(), cancelled).status().code(),
            absl::StatusCode::kCancelled);
  canceller.join();
}

TEST(RemoteConnectionTest, AServerKeepsNoPlanOfASearchThatWasEnded) {
  TestServer server;
  CallOptions call;
  call.keep_best = true;
  const auto refused = MakeClient(server).Rewrite(ReadFile(kMnistPath), MnistOptions(), call);
  EXPECT_EQ(ErrorInfoOf(refused.status()).reason(), "CONFLICTING_OPTIONS") << refused.status();
  EXPECT_EQ(server.unary_calls(), 0);
}

TEST(RemoteConnectionTest, AnUnreachableServerIsNamedWithWhatToDo) {
  std::string target;
  {
    TestServer server;
    target = server.target();
  }
  // The server there has ended.
  RemoteOptions options;
  options.target = target;
  options.retry.max_attempts = 1;
  const Client client(MakeRemoteConnection(options));
  for (const absl::Status& status :
       {client.Rewrite(ReadFile(kMnistPath), MnistOptions()).status(),
        client.GetCapabilities().status(), client.CheckHealth().status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(target), HasSubstr("check")));
  }
}

TEST(RemoteConnectionTest, AnErrorOfTheTransportNamesTheServer) {
  TestServer server(WithFault(Fault::kTransportError));
  const auto response = MakeClient(server).GetCapabilities();
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(response.status().message()),
              AllOf(HasSubstr(server.target()), HasSubstr("Socket closed")));
}

TEST(RemoteConnectionTest, AnOlderServerIsSaidToBeOne) {
  TestServer server(WithFault(Fault::kOlder));
  const Client client = MakeClient(server);
  const std::string graph = ReadFile(kMnistPath);
  const std::string version = client.GetCapabilities()->version();
  const auto expect = [&](const absl::Status& status, const std::string& method) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(server.target()), HasSubstr("is of version " + version),
                      HasSubstr("no " + method + " yet"), HasSubstr("update the server")));
  };
  expect(client.Inspect(graph, {}).status(), "Inspect");
  expect(client.Simulate(graph, {}).status(), "Simulate");
  expect(client.Explore(graph, {}).status(), "Explore");
  expect(client.Diff(graph, graph).status(), "Diff");
}

TEST(RemoteConnectionTest, WhatANewerServerSaysBesidesIsPassedOver) {
  TestServer newer(WithFault(Fault::kNewer));
  TestServer today;
  const std::string graph = ReadFile(kMnistPath);
  v1::ExploreOptions sizes;
  sizes.set_no_budget(true);
  sizes.add_sizes(8);
  const auto ask = [&](const TestServer& server) {
    const Client client = MakeClient(server, kNever);
    std::vector<std::string> answers;
    const auto add = [&answers](const auto& answer, auto field) {
      answers.push_back(answer.ok() ? field(*answer) : answer.status().ToString());
    };
    add(client.Rewrite(graph, MnistOptions()), [](const auto& r) { return r.graph_def(); });
    add(client.Inspect(graph, {}), [](const auto& r) { return r.SerializeAsString(); });
    std::vector<int64_t> told;
    add(client.Explore(graph, sizes, [&](const auto& size) { told.push_back(size.size()); }),
        [](const auto& r) { return r.SerializeAsString(); });
    EXPECT_THAT(told, ::testing::ElementsAre(8));
    return answers;
  };
  EXPECT_EQ(ask(newer), ask(today));
}

TEST(RemoteConnectionTest, AnUnhealthyServerIsNotServing) {
  ServerOptions options;
  options.healthy = false;
  TestServer server(options);
  const auto status = MakeClient(server).CheckHealth();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(*status, ServingStatus::kNotServing);
}

}  // namespace
}  // namespace spillway
