// Two attempts of one rewrite. Nothing here waits for time to pass except the start of the second.
#include "client_lib/internal/hedge.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "spillway/client.h"
#include "spillway/remote_connection.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway {
namespace {

using internal::CallLimits;
using internal::Hedge;
using internal::RewriteAttempt;
using testing::Fault;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::ReadFile;
using testing::TestServer;
using Response = absl::StatusOr<v1::RewriteResponse>;

constexpr absl::Duration kAtOnce = absl::Milliseconds(1);
constexpr absl::Duration kNever = absl::Hours(1);

Response Answer(const std::string& graph) {
  v1::RewriteResponse response;
  response.set_graph_def(graph);
  return response;
}

// Until the attempt is cancelled; CANCELLED.
Response Hang(const CallLimits& limits) {
  absl::Notification cancelled;
  const CancellationCallback on_cancel(limits.cancellation(), [&] { cancelled.Notify(); });
  cancelled.WaitForNotification();
  return absl::CancelledError();
}

std::string GraphOf(const Response& response) {
  return response.ok() ? response->graph_def() : response.status().ToString();
}

TEST(HedgeTest, AnAnswerInTimeIsTheOnlyAttempt) {
  int seconds = 0;
  const auto response = Hedge(
      kNever, CallLimits(CallOptions()), [](const CallLimits&) { return Answer("first"); },
      [&](const CallLimits&) {
        ++seconds;
        return Answer("second");
      });
  EXPECT_EQ(GraphOf(response), "first");
  EXPECT_EQ(seconds, 0);
}

TEST(HedgeTest, AFailureInTimeIsTheOnlyAttempt) {
  const auto response = Hedge(
      kNever, CallLimits(CallOptions()),
      [](const CallLimits&) -> Response { return absl::UnavailableError("gone"); },
      [](const CallLimits&) { return Answer("second"); });
  EXPECT_EQ(response.status(), absl::UnavailableError("gone"));
}

TEST(HedgeTest, TheSecondsAnswerEndsAFirstThatHangs) {
  EXPECT_EQ(GraphOf(Hedge(kAtOnce, CallLimits(CallOptions()), Hang,
                          [](const CallLimits&) { return Answer("second"); })),
            "second");
}

TEST(HedgeTest, TheFirstsAnswerEndsASecondThatHangs) {
  absl::Notification begun;
  EXPECT_EQ(GraphOf(Hedge(
                kAtOnce, CallLimits(CallOptions()),
                [&](const CallLimits&) {
                  begun.WaitForNotification();
                  return Answer("first");
                },
                [&](const CallLimits& limits) {
                  begun.Notify();
                  return Hang(limits);
                })),
            "first");
}

TEST(HedgeTest, AnErrorThatEveryServerHasIsAnAnswer) {
  const auto response =
      Hedge(kAtOnce, CallLimits(CallOptions()), Hang,
            [](const CallLimits&) -> Response { return absl::InvalidArgumentError("graph"); });
  EXPECT_EQ(response.status(), absl::InvalidArgumentError("graph"));
}

TEST(HedgeTest, AServerThatIsAwayOrFullWaitsForTheOther) {
  for (const absl::Status& failure :
       {absl::UnavailableError("gone"), absl::ResourceExhaustedError("no thread here"),
        core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED, "full")}) {
    {
      absl::Notification begun, failed;
      EXPECT_EQ(GraphOf(Hedge(
                    kAtOnce, CallLimits(CallOptions()),
                    [&](const CallLimits&) -> Response {
                      begun.WaitForNotification();
                      failed.Notify();
                      return failure;
                    },
                    [&](const CallLimits&) {
                      begun.Notify();
                      failed.WaitForNotification();
                      return Answer("second");
                    })),
                "second");
    }
    absl::Notification failed;
    EXPECT_EQ(GraphOf(Hedge(
                  kAtOnce, CallLimits(CallOptions()),
                  [&](const CallLimits&) {
                    failed.WaitForNotification();
                    return Answer("first");
                  },
                  [&](const CallLimits&) -> Response {
                    failed.Notify();
                    return failure;
                  })),
              "first");
  }
}

TEST(HedgeTest, CancellingEndsBoth) {
  CallOptions call;
  absl::Notification begun;
  std::thread canceller([&begun, token = call.cancellation]() mutable {
    begun.WaitForNotification();
    token.Cancel();
  });
  const auto response = Hedge(kAtOnce, CallLimits(call), Hang, [&](const CallLimits& limits) {
    begun.Notify();
    return Hang(limits);
  });
  canceller.join();
  EXPECT_EQ(response.status().code(), absl::StatusCode::kCancelled);
}

// How the graph travels.
class HedgedCallTest : public ::testing::TestWithParam<int64_t> {
 protected:
  RemoteOptions Options(const std::string& target) {
    RemoteOptions options;
    options.target = target;
    options.unary_max_bytes = GetParam();
    options.hedge_after = absl::Milliseconds(20);
    options.retry.max_attempts = 1;
    return options;
  }
};

TEST_P(HedgedCallTest, AStuckServerIsOvertaken) {
  const TestServer stuck(WithFault(Fault::kHang)), good;
  const Client client(
      MakeRemoteConnection(Options(absl::StrCat(stuck.target(), ",", good.target()))));
  const std::string graph = ReadFile(kMnistPath);
  // Of two calls that follow each other one asks the stuck one first, once both are connected.
  for (int i = 0; i < 2 || (stuck.hanging() == 0 && i < 100); ++i) {
    CallOptions call;
    std::vector<Stage> stages;
    call.on_progress = [&](const Progress& progress) { stages.push_back(progress.stage); };
    const auto response = client.Rewrite(graph, MnistOptions(), call);
    EXPECT_TRUE(response.ok()) << response.status();
    EXPECT_TRUE(std::is_sorted(stages.begin(), stages.end()));
  }
  EXPECT_GT(stuck.hanging(), 0);
  while (stuck.released() < stuck.hanging()) absl::SleepFor(absl::Milliseconds(1));
}

TEST_P(HedgedCallTest, OneServerIsAskedAgainOnAnotherConnection) {
  const TestServer server(WithFault(Fault::kHangsOnce));
  const Client client(MakeRemoteConnection(Options(server.target())));
  const auto response = client.Rewrite(ReadFile(kMnistPath), MnistOptions());
  EXPECT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.unary_calls() + server.stream_calls(), 2);
  EXPECT_EQ(server.peers().size(), 2u);
}

TEST_P(HedgedCallTest, WithoutTheOptionNobodyIsAskedTwice) {
  const TestServer server(WithFault(Fault::kHangsOnce));
  RemoteOptions options = Options(server.target());
  options.hedge_after = RemoteOptions().hedge_after;
  CallOptions call;
  call.timeout = absl::Milliseconds(300);  // Any time will do: the server never answers.
  EXPECT_EQ(Client(MakeRemoteConnection(options))
                .Rewrite(ReadFile(kMnistPath), MnistOptions(), call)
                .status()
                .code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(server.unary_calls() + server.stream_calls(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, HedgedCallTest, ::testing::Values(-1, 64 << 20),
                         [](const auto& test) { return test.param < 0 ? "Stream" : "Unary"; });

}  // namespace
}  // namespace spillway
