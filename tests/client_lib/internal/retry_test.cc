// When a call is tried again, and how long it waits. No test here really waits for a pause.
#include "client_lib/internal/retry.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "spillway/client.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway {
namespace {

using internal::CallLimits;
using internal::Pushback;
using internal::RetryHooks;
using internal::RetryLoop;
using ::testing::ElementsAre;
using testing::Fault;
using ::testing::Ge;
using ::testing::IsEmpty;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::ReadFile;
using testing::ServerOptions;
using testing::TestServer;

const absl::Status kUnavailable = absl::UnavailableError("gone");

absl::Status Overloaded() {
  return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED, "full");
}

// Runs a call of which every attempt fails, and notes the pauses that it would have made.
struct FailingCall {
  RetryOptions options;
  CallOptions call;
  double random = 0.5;
  Pushback pushback;
  std::vector<absl::Duration> pauses;

  absl::Status Run(absl::Status failure) {
    const CallLimits limits(call);
    RetryLoop loop(options, limits,
                   {[this] { return random; },
                    [this](absl::Duration pause, const CancellationToken& token) {
                      pauses.push_back(pause);
                      return !token.cancelled();
                    }});
    absl::Status status;
    do {
      status = failure;
    } while (loop.PauseAfter(&status, pushback));
    return status;
  }
};

TEST(RetryLoopTest, TheBoundOfThePauseGrowsBy60PercentUpToTheLargest) {
  FailingCall call;
  call.random = 1;  // The bound itself.
  call.options.max_attempts = 6;
  call.options.max_backoff = absl::Seconds(3);
  EXPECT_EQ(call.Run(kUnavailable), kUnavailable);
  ASSERT_EQ(call.pauses.size(), 5u);
  const double expected[] = {1, 1.6, 2.56, 3, 3};
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(absl::ToDoubleSeconds(call.pauses[i]), expected[i], 1e-6);
  }
}

TEST(RetryLoopTest, ThePauseIsAnyPartOfItsBound) {
  FailingCall call;
  call.random = 0.25;
  call.options.max_attempts = 2;
  EXPECT_EQ(call.Run(kUnavailable), kUnavailable);
  EXPECT_THAT(call.pauses, ElementsAre(absl::Milliseconds(250)));
  const RetryHooks hooks = internal::DefaultRetryHooks();
  double least = 1, most = 0;
  for (int i = 0; i < 1000; ++i) {
    const double random = hooks.random();
    EXPECT_THAT(random, ::testing::AllOf(Ge(0), ::testing::Lt(1)));
    least = std::min(least, random);
    most = std::max(most, random);
  }
  // The chance that a thousand numbers all miss a tenth of the range is below 1e-45.
  EXPECT_LT(least, 0.1);
  EXPECT_GT(most, 0.9);
}

TEST(RetryLoopTest, WithoutADeadlineTheAttemptsAreBounded) {
  FailingCall call;
  EXPECT_EQ(call.Run(kUnavailable), kUnavailable);
  EXPECT_EQ(call.pauses.size(), 4u);
  call.pauses.clear();
  call.options.max_attempts = 1;
  EXPECT_EQ(call.Run(kUnavailable), kUnavailable);
  EXPECT_THAT(call.pauses, IsEmpty());
}

TEST(RetryLoopTest, OtherErrorsAreFinal) {
  for (const absl::Status& status :
       {absl::InvalidArgumentError("x"), absl::InternalError("x"), absl::DeadlineExceededError("x"),
        absl::CancelledError("x"), absl::ResourceExhaustedError("x")}) {
    FailingCall call;
    call.pushback = absl::ZeroDuration();  // Not even then.
    EXPECT_EQ(call.Run(status), status);
    EXPECT_THAT(call.pauses, IsEmpty()) << status;
  }
}

TEST(RetryLoopTest, AnOverloadedServerIsAskedAgainWhenItSaysWhen) {
  FailingCall call;
  call.options.max_attempts = 2;
  EXPECT_EQ(call.Run(Overloaded()), Overloaded());
  EXPECT_THAT(call.pauses, IsEmpty());
  call.pushback = absl::Seconds(7);
  EXPECT_EQ(call.Run(Overloaded()), Overloaded());
  EXPECT_THAT(call.pauses, ElementsAre(absl::Milliseconds(7500)));
}

TEST(RetryLoopTest, AServerThatAsksForAMonthGetsTheLargestPause) {
  FailingCall call;
  call.options.max_attempts = 2;
  call.pushback = absl::Hours(24 * 30);
  EXPECT_EQ(call.Run(kUnavailable), kUnavailable);
  EXPECT_THAT(call.pauses, ElementsAre(absl::Seconds(120) + absl::Milliseconds(500)));
}

TEST(RetryLoopTest, AServerThatSaysNoIsObeyed) {
  FailingCall call;
  call.pushback = absl::Milliseconds(-1);
  EXPECT_EQ(call.Run(kUnavailable), kUnavailable);
  EXPECT_THAT(call.pauses, IsEmpty());
}

TEST(RetryLoopTest, APauseThatTheDeadlineWouldEndIsNotBegun) {
  FailingCall call;
  call.call.timeout = absl::Seconds(60);
  call.options.initial_backoff = call.options.max_backoff = absl::Seconds(50);
  EXPECT_EQ(call.Run(kUnavailable),
            kUnavailable);  // Pauses of 25 s: the clock does not move, so all fit.
  EXPECT_EQ(call.pauses.size(), 4u);
  call.pauses.clear();
  call.options.initial_backoff = call.options.max_backoff = absl::Seconds(121);
  EXPECT_EQ(call.Run(kUnavailable), kUnavailable);
  EXPECT_THAT(call.pauses, IsEmpty());
}

TEST(RetryLoopTest, ACancelledPauseEndsTheCall) {
  FailingCall call;
  call.call.cancellation.Cancel();
  const absl::Status status = call.Run(kUnavailable);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(call.pauses.size(), 1u);
}

// The real pause: it would last for an hour.
TEST(RetryLoopTest, CancellingWakesTheSleeper) {
  const CancellationToken token;
  std::thread canceller([copy = token]() mutable { copy.Cancel(); });
  EXPECT_FALSE(internal::DefaultRetryHooks().sleep(absl::Hours(1), token));
  canceller.join();
  EXPECT_TRUE(internal::DefaultRetryHooks().sleep(absl::Milliseconds(1), CancellationToken()));
}

// Against servers. The pauses are a thousandth of the default's.
RemoteOptions FastRetries(const std::string& target) {
  RemoteOptions options;
  options.target = target;
  options.retry.initial_backoff = absl::Milliseconds(1);
  return options;
}

// A port without a listener until a server starts.
int FreePort() {
  TestServer server;
  return std::stoi(server.target().substr(server.target().rfind(':') + 1));
}

// The limit that distinguishes a stream from a unary call.
class RetriedCallTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(RetriedCallTest, AServerThatComesUpLaterIsFound) {
  ServerOptions server_options;
  server_options.port = FreePort();
  std::unique_ptr<TestServer> server;
  RemoteOptions options = FastRetries("127.0.0.1:" + std::to_string(server_options.port));
  options.unary_max_bytes = GetParam();
  std::vector<int> attempts;
  options.retry.on_retry = [&](const RetryNotice& notice) {
    attempts.push_back(notice.next_attempt);
    EXPECT_EQ(notice.error.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(notice.max_attempts, 5);
    if (notice.next_attempt == 3) server = std::make_unique<TestServer>(server_options);
  };
  const Client client(MakeRemoteConnection(options));
  const auto response = client.Rewrite(ReadFile(kMnistPath), MnistOptions());
  EXPECT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(attempts, ElementsAre(2, 3));
  EXPECT_EQ(server->unary_calls() + server->stream_calls(), 1);
  EXPECT_EQ(server->stream_calls(), GetParam() < 0 ? 1 : 0);
}

TEST_P(RetriedCallTest, EveryAttemptReachesTheServer) {
  ServerOptions server_options;
  server_options.fault = Fault::kTransportError;
  TestServer server(server_options);
  RemoteOptions options = FastRetries(server.target());
  options.unary_max_bytes = GetParam();
  options.retry.max_attempts = 3;
  const Client client(MakeRemoteConnection(options));
  const auto response = client.Rewrite(ReadFile(kMnistPath), MnistOptions());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server.unary_calls() + server.stream_calls(), 3);
}

TEST_P(RetriedCallTest, AWrongGraphIsSentOnce) {
  TestServer server;
  RemoteOptions options = FastRetries(server.target());
  options.unary_max_bytes = GetParam();
  const Client client(MakeRemoteConnection(options));
  const auto response = client.Rewrite("no graph", MnistOptions());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.unary_calls() + server.stream_calls(), 1);
}

TEST_P(RetriedCallTest, AnOverloadedServerThatSaysWhenIsAskedAgain) {
  ServerOptions server_options;
  server_options.fault = Fault::kEarlyError;
  server_options.pushback_ms = "1";
  TestServer server(server_options);
  RemoteOptions options = FastRetries(server.target());
  options.unary_max_bytes = GetParam();
  std::vector<absl::Duration> pauses;
  options.retry.on_retry = [&](const RetryNotice& notice) { pauses.push_back(notice.pause); };
  options.retry.max_attempts = 3;
  const auto response =
      Client(MakeRemoteConnection(options)).Rewrite(ReadFile(kMnistPath), MnistOptions());
  EXPECT_EQ(ErrorInfoOf(response.status()).reason(), "OVERLOADED");
  EXPECT_EQ(server.unary_calls() + server.stream_calls(), 3);
  for (const absl::Duration pause : pauses) EXPECT_GE(pause, absl::Milliseconds(1));
}

INSTANTIATE_TEST_SUITE_P(All, RetriedCallTest, ::testing::Values(-1, 64 << 20),
                         [](const auto& test) { return test.param < 0 ? "Stream" : "Unary"; });

TEST(RetryTest, ADeadlineIsNotSleptThrough) {
  RemoteOptions options;
  options.target = "127.0.0.1:" + std::to_string(FreePort());
  options.retry.initial_backoff = options.retry.max_backoff = absl::Hours(10000);
  CallOptions call;
  call.timeout = absl::Seconds(20);
  const absl::Time begin = absl::Now();
  // A pause chosen at random is shorter than 20 s once in 1.8 million runs.
  EXPECT_EQ(Client(MakeRemoteConnection(options)).GetCapabilities(call).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(15));
}

TEST(RetryTest, CancellingEndsThePause) {
  RemoteOptions options;
  options.target = "127.0.0.1:" + std::to_string(FreePort());
  options.retry.initial_backoff = options.retry.max_backoff = absl::Hours(10000);
  CallOptions call;
  std::thread canceller;
  options.retry.on_retry = [&](const RetryNotice&) {
    canceller = std::thread([token = call.cancellation]() mutable { token.Cancel(); });
  };
  const absl::Status status = Client(MakeRemoteConnection(options)).GetCapabilities(call).status();
  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "STOPPED");
}

TEST(RetryTest, HealthIsAskedOnce) {
  RemoteOptions options = FastRetries("127.0.0.1:" + std::to_string(FreePort()));
  int retries = 0;
  options.retry.on_retry = [&](const RetryNotice&) { ++retries; };
  EXPECT_EQ(Client(MakeRemoteConnection(options)).CheckHealth().status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(retries, 0);
}

}  // namespace
}  // namespace spillway
