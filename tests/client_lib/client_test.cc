// The Client over a mock: passed arguments, asynchronous calls, and how a user's test would look.
#include "spillway/client.h"

#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"
#include "spillway/testing/mock_connection.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::MockConnection;
using testing::ReadFile;
using ::testing::Return;
using testing::TestServer;

using Result = absl::StatusOr<v1::RewriteResponse>;

TEST(ClientTest, StripAsksForIt) {
  auto mock = std::make_shared<MockConnection>();
  EXPECT_CALL(*mock, Rewrite)
      .WillOnce([](absl::string_view graph, const v1::RewriteOptions& options, const CallOptions&) {
        EXPECT_EQ(graph, "graph");
        EXPECT_TRUE(options.has_strip());
        return absl::UnavailableError("not today");
      });
  EXPECT_EQ(Client(mock).Strip("graph").status(), absl::UnavailableError("not today"));
}

// A user's code and its test.
std::string GraphToTrain(const Client& client, const std::string& graph) {
  const Result response = client.Rewrite(graph, v1::RewriteOptions());
  return response.ok() ? response->graph_def() : graph;
}

TEST(MockConnectionTest, StandsForAServerInAUsersTest) {
  auto mock = std::make_shared<MockConnection>();
  v1::RewriteResponse response;
  response.set_graph_def("rewritten");
  EXPECT_CALL(*mock, Rewrite(absl::string_view("graph"), _, _))
      .WillOnce(Return(response))
      .WillOnce(Return(absl::UnavailableError("down")));
  const Client client(mock);
  EXPECT_EQ(GraphToTrain(client, "graph"), "rewritten");
  EXPECT_EQ(GraphToTrain(client, "graph"), "graph");
}

TEST(RewriteAsyncTest, GivesTheResultByFutureAndCallback) {
  const std::string graph = ReadFile(kMnistPath);
  const Client client(MakeLocalConnection());
  const Result expected = client.Rewrite(graph, MnistOptions());
  ASSERT_TRUE(expected.ok());
  std::string by_callback;
  std::thread::id thread;
  auto future =
      client.RewriteAsync(graph, MnistOptions(), CallOptions(), [&](const Result& result) {
        by_callback = result->graph_def();
        thread = std::this_thread::get_id();
      });
  const Result result = future.get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->graph_def(), expected->graph_def());
  EXPECT_EQ(by_callback, expected->graph_def());
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(RewriteAsyncTest, CallsRunAtOnce) {
  // Each call waits for the other one to begin: one after the other they would never end.
  auto mock = std::make_shared<MockConnection>();
  absl::Notification first;
  absl::Notification second;
  EXPECT_CALL(*mock, Rewrite)
      .WillRepeatedly([&](absl::string_view graph, const v1::RewriteOptions&, const CallOptions&) {
        (graph == "a" ? first : second).Notify();
        (graph == "a" ? second : first).WaitForNotification();
        return Result(v1::RewriteResponse());
      });
  const Client client(mock);
  auto a = client.RewriteAsync("a", v1::RewriteOptions());
  auto b = client.RewriteAsync("b", v1::RewriteOptions());
  EXPECT_TRUE(a.get().ok());
  EXPECT_TRUE(b.get().ok());
}

TEST(RewriteAsyncTest, TheCallOutlivesItsClient) {
  auto mock = std::make_shared<MockConnection>();
  absl::Notification client_is_gone;
  EXPECT_CALL(*mock, Rewrite).WillOnce([&](absl::string_view, const auto&, const auto&) {
    client_is_gone.WaitForNotification();
    return Result(absl::UnavailableError("down"));
  });
  std::future<Result> future;
  {
    const Client client(std::move(mock));
    future = client.RewriteAsync("graph", v1::RewriteOptions());
  }
  client_is_gone.Notify();
  EXPECT_EQ(future.get().status(), absl::UnavailableError("down"));
}

TEST(RewriteAsyncTest, AnExceptionIsAResultToo) {
  auto mock = std::make_shared<MockConnection>();
  EXPECT_CALL(*mock, Rewrite)
      .WillOnce(
          [](absl::string_view, const auto&, const auto&) -> Result { throw std::bad_alloc(); })
      .WillOnce([](absl::string_view, const auto&, const auto&) -> Result {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      });
  const Client client(mock);
  for (const char* words : {"memory", "thread"}) {
    absl::Status told;
    auto future = client.RewriteAsync("graph", v1::RewriteOptions(), CallOptions(),
                                      [&](const Result& result) { told = result.status(); });
    EXPECT_EQ(future.get().status(), told) << "the callback was not called";
    EXPECT_EQ(told.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(told.message()), HasSubstr(words));
  }
}

TEST(RewriteAsyncTest, IsCancelledFromOutside) {
  testing::ServerOptions hang;
  hang.fault = testing::Fault::kHang;
  TestServer server(hang);
  RemoteOptions remote;
  remote.target = server.target();
  const Client client(MakeRemoteConnection(remote));
  CallOptions call;
  auto future = client.RewriteAsync(ReadFile(kMnistPath), MnistOptions(), call);
  while (server.hanging() == 0) std::this_thread::yield();
  call.cancellation.Cancel();
  EXPECT_TRUE(absl::IsCancelled(future.get().status()));
}

// Progress as "STAGE DONE/TOTAL".
struct Recorder {
  CallOptions Call() {
    CallOptions call;
    call.on_progress = [this](const Progress& progress) {
      EXPECT_FALSE(returned) << "called after the call";
      EXPECT_FALSE(inside.exchange(true)) << "called twice at once";
      seen.push_back(progress);
      inside = false;
    };
    return call;
  }

  std::vector<Stage> Stages() const {
    std::vector<Stage> stages;
    for (const Progress& progress : seen) {
      if (stages.empty() || stages.back() != progress.stage) stages.push_back(progress.stage);
    }
    return stages;
  }

  std::atomic<bool> inside{false};
  std::atomic<bool> returned{false};
  std::vector<Progress> seen;
};

TEST(ProgressTest, ALocalCallRewrites) {
  Recorder recorder;
  ASSERT_TRUE(Client(MakeLocalConnection())
                  .Rewrite(ReadFile(kMnistPath), MnistOptions(), recorder.Call())
                  .ok());
  EXPECT_EQ(recorder.Stages(), std::vector<Stage>{Stage::kRewriting});
}

TEST(ProgressTest, AStreamCountsBytesBothWays) {
  TestServer server;
  RemoteOptions options;
  options.target = server.target();
  options.unary_max_bytes = 0;
  options.chunk_bytes = 10'000;
  const std::string graph = ReadFile(kMnistPath);
  Recorder recorder;
  const Result response =
      Client(MakeRemoteConnection(options)).Rewrite(graph, MnistOptions(), recorder.Call());
  recorder.returned = true;
  ASSERT_TRUE(response.ok()) << response.status();
  const std::vector<Stage> stages = recorder.Stages();
  // The answer may begin before the writer has reported the end of sending.
  if (stages.size() == 3) {
    EXPECT_EQ(stages[1], Stage::kRewriting);
  }
  EXPECT_EQ(stages.front(), Stage::kSending);
  EXPECT_EQ(stages.back(), Stage::kReceiving);
  int64_t sent = -1;
  int64_t received = -1;
  for (const Progress& progress : recorder.seen) {
    if (progress.stage == Stage::kRewriting) continue;
    int64_t& done = progress.stage == Stage::kSending ? sent : received;
    EXPECT_GT(progress.done_bytes, done);
    EXPECT_LE(progress.done_bytes - std::max<int64_t>(done, 0), 256 << 10);
    done = progress.done_bytes;
    EXPECT_EQ(progress.total_bytes, progress.stage == Stage::kSending
                                        ? static_cast<int64_t>(graph.size())
                                        : static_cast<int64_t>(response->graph_def().size()));
  }
  EXPECT_EQ(received, response->graph_def().size());
}

TEST(ProgressTest, TellsOfEachPlanInProcess) {
  v1::RewriteOptions options;
  options.mutable_step()->set_batch_size(64);
  // Less than the step takes: plans have to be tried.
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(68 << 20);
  options.mutable_step()->set_kernel_memory(v1::KERNEL_MEMORY_OFF);
  CallOptions call;
  std::vector<std::pair<int64_t, int64_t>> told;
  call.on_plan = [&told](int64_t tried, int64_t best) { told.push_back({tried, best}); };
  const auto response =
      Client(MakeLocalConnection()).Rewrite(testing::ReadFile(testing::kMnistPath), options, call);
  ASSERT_FALSE(told.empty()) << response.status();
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].first, static_cast<int64_t>(i) + 1);
    if (i == 0 || told[i - 1].second == 0) continue;
    EXPECT_GT(told[i].second, 0);
    EXPECT_LE(told[i].second, told[i - 1].second);
  }
  // The plan that was taken is one of them, and no plan is better than the best.
  EXPECT_TRUE(response.ok()) << response.status();
  EXPECT_GT(told.back().second, 0);
}

TEST(ProgressTest, MayCancelTheCall) {
  TestServer server;
  RemoteOptions options;
  options.target = server.target();
  options.unary_max_bytes = 0;
  options.chunk_bytes = 10'000;
  CallOptions call;
  call.on_progress = [token = call.cancellation](const Progress& progress) mutable {
    if (progress.done_bytes > 0) token.Cancel();
  };
  EXPECT_TRUE(
      absl::IsCancelled(Client(MakeRemoteConnection(options))
                            .Rewrite(testing::GraphWithPadding(10 << 20), MnistOptions(), call)
                            .status()));
}

}  // namespace
}  // namespace spillway
