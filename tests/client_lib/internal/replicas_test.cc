// Several servers behind one target: which get calls, and that none is lost.
#include "client_lib/internal/replicas.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client_lib/internal/addresses.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spillway/client.h"
#include "spillway/remote_connection.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"
#include "tests/testing/sanitizers.h"

namespace spillway {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Fault;
using ::testing::HasSubstr;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::ReadFile;
using testing::ServerOptions;
using testing::TestServer;

// For events that come soon unaided.
constexpr absl::Duration kPatience = absl::Seconds(60);

ServerOptions Unhealthy() {
  ServerOptions options;
  options.healthy = false;
  return options;
}

class ReplicasTest : public ::testing::Test {
 protected:
  RemoteOptions Options(const std::string& target) {
    RemoteOptions options;
    options.target = target;
    options.retry.initial_backoff = absl::Milliseconds(1);
    options.retry.on_retry = [this](const RetryNotice& notice) {
      ++pauses_;
      longest_pause_ = std::max(longest_pause_, notice.pause);
    };
    return options;
  }
  RemoteOptions Both(const TestServer& a, const TestServer& b) {
    return Options(absl::StrCat(a.target(), ",", b.target()));
  }
  absl::Status Rewrite(const Client& client) {
    return client.Rewrite(graph_, MnistOptions()).status();
  }
  // Makes calls, all of which must succeed, until `done`.
  template <typename Done>
  bool RewriteUntil(const Client& client, const Done& done) {
    for (const absl::Time begin = absl::Now(); absl::Now() - begin < kPatience;) {
      const absl::Status status = Rewrite(client);
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) return false;
      if (done()) return true;
    }
    return false;
  }

  const std::string graph_ = ReadFile(kMnistPath);
  int pauses_ = 0;
  absl::Duration longest_pause_;
};

TEST(AddressesTest, ATargetIsSplitAtItsCommas) {
  const auto one = internal::SplitTarget("dns:///host:7070");
  ASSERT_TRUE(one.ok());
  EXPECT_THAT(*one, ElementsAre("dns:///host:7070"));
  const auto several = internal::SplitTarget("a:1,[::1]:2,unix:/run/s");
  ASSERT_TRUE(several.ok());
  EXPECT_THAT(*several, ElementsAre("a:1", "[::1]:2", "unix:/run/s"));
  for (const char* bad : {"a:1,", ",a:1", "a:1,,b:1", ","}) {
    const auto split = internal::SplitTarget(bad);
    EXPECT_EQ(ErrorInfoOf(split.status()).reason(), "BAD_OPTION") << bad;
    EXPECT_THAT(std::string(split.status().message()), HasSubstr(bad));
  }
}

TEST(AddressesTest, WhatNobodyMeansIsNotDialled) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"", "empty"},
      {"localhost", "no port; give HOST:PORT, as localhost:7070"},
      {"localhost:", "no port"},
      {"localhost:99999", "'99999' as its port; give a number from 1 to 65535"},
      {"localhost:0", "'0' as its port"},
      {"localhost:-1", "'-1' as its port"},
      {"localhost:+1", "'+1' as its port"},
      {"localhost:http", "'http' as its port"},
      {"localhost:7070/x", "'7070/x' as its port"},
      {"http://localhost:7070", "http://"},
      {"https://localhost", "TLS as an option"},
      {"grpc://localhost:7070", "grpc://"},
      {"::1:7070", "in brackets"},
      {"[::1]", "no port"},
      {"[::1:7070", "broken IPv6"},
      {"[]:7070", "broken IPv6"},
      {":7070", "no host"},
      {"a b:7070", "space"},
      {"dns:///host", "no port"},
      {"dns:///host:99999", "'99999'"},
      {"dns://host:7070", "slash"},
      {"ipv4:127.0.0.1", "no port"},
      {"unix:", "socket"},
      {"a:1,b", "'b' has no port"},
  };
  for (const auto& [target, says] : kWrong) {
    const auto split = internal::SplitTarget(target);
    EXPECT_EQ(ErrorInfoOf(split.status()).reason(), "BAD_OPTION") << target;
    EXPECT_THAT(std::string(split.status().message()), HasSubstr(says)) << target;
    // So does every call, at once, with any retries.
    RemoteOptions options;
    options.target = target;
    const absl::Status called = Client(MakeRemoteConnection(options)).GetCapabilities().status();
    EXPECT_EQ(called.message(), split.status().message());
    EXPECT_EQ(ErrorInfoOf(called).reason(), "BAD_OPTION") << target;
  }
  for (const char* right : {"localhost:1", "host:65535", "[::1]:7070", "127.0.0.1:7070",
                            "unix:/run/s", "unix:///run/s", "unix-abstract:s", "xds:///service",
                            "dns:host:7070", "dns://8.8.8.8/host:7070", "ipv6:[::1]:7070"}) {
    EXPECT_TRUE(internal::SplitTarget(right).ok()) << right;
  }
}

TEST(AddressesTest, WhatStaysOnThisMachine) {
  for (const char* here :
       {"unix:/run/s", "unix:///run/s", "unix-abstract:s", "localhost:7070", "LocalHost:7070",
        "127.0.0.1:7070", "127.1.2.3:7070", "[::1]:7070", "dns:///localhost:7070",
        "dns:localhost:7070", "dns://8.8.8.8/localhost:7070", "ipv4:127.0.0.1:7070",
        "ipv6:[::1]:7070"}) {
    EXPECT_TRUE(internal::StaysOnMachine(here)) << here;
  }
  for (const char* there :
       {"", "host:7070", "localhost.example:7070", "127.0.0.1.example:7070", "10.0.0.1:7070",
        "128.0.0.1:7070", "[::2]:7070", "[::ffff:10.0.0.1]:7070", "0.0.0.0:7070",
        "dns:///host:7070", "dns://127.0.0.1/host:7070", "ipv4:10.0.0.1:7070", "xds:///localhost",
        "localhost/x:7070"}) {
    EXPECT_FALSE(internal::StaysOnMachine(there)) << there;
  }
}

TEST_F(ReplicasTest, BothGetCallsInTurn) {
  const TestServer a, b;
  const Client client(MakeRemoteConnection(Both(a, b)));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Rewrite(client).ok());
  EXPECT_EQ(a.unary_calls(), 5);
  EXPECT_EQ(b.unary_calls(), 5);
}

// A chance of one in 2^39 that the same one always comes first.
TEST_F(ReplicasTest, ClientsBeginAnywhere) {
  const TestServer a, b;
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(Rewrite(Client(MakeRemoteConnection(Both(a, b)))).ok());
  EXPECT_GT(a.unary_calls(), 0);
  EXPECT_GT(b.unary_calls(), 0);
}

TEST_F(ReplicasTest, ADeadOneLosesNoCallAndCostsNoPause) {
  auto a = std::make_unique<TestServer>();
  const TestServer b;
  const Client client(MakeRemoteConnection(Both(*a, b)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Rewrite(client).ok());
  EXPECT_EQ(b.unary_calls(), 1);
  a.reset();
  for (int i = 0; i < 20; ++i) {
    const absl::Status status = Rewrite(client);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(b.unary_calls(), 21);
  EXPECT_EQ(pauses_, 0);
}

TEST_F(ReplicasTest, OneThatComesBackGetsCallsAgain) {
  auto a = std::make_unique<TestServer>();
  const TestServer b;
  ServerOptions again;
  again.port = std::stoi(std::string(absl::StripPrefix(a->target(), "127.0.0.1:")));
  const Client client(MakeRemoteConnection(Both(*a, b)));
  a.reset();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Rewrite(client).ok());
  a = std::make_unique<TestServer>(again);
  EXPECT_TRUE(RewriteUntil(client, [&] { return a->unary_calls() > 0; }));
}

TEST_F(ReplicasTest, OneThatFailsIsFollowedByTheOtherAtOnce) {
  const TestServer a(WithFault(Fault::kTransportError)), b;
  const Client client(MakeRemoteConnection(Both(a, b)));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Rewrite(client).ok());
  EXPECT_GT(a.unary_calls(), 0);
  EXPECT_EQ(b.unary_calls(), 6);
  EXPECT_EQ(pauses_, 0);
}

TEST_F(ReplicasTest, AStreamGoesToTheOtherToo) {
  const TestServer a(WithFault(Fault::kTransportError)), b;
  RemoteOptions options = Both(a, b);
  options.unary_max_bytes = -1;
  const Client client(MakeRemoteConnection(options));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Rewrite(client).ok());
  EXPECT_GT(a.stream_calls(), 0);
  EXPECT_EQ(b.stream_calls(), 4);
}

// Its own pause, of an hour at most here, is for callers that return to it.
TEST_F(ReplicasTest, AFullOneIsFollowedByTheOtherAfterAShortPause) {
  ServerOptions full = WithFault(Fault::kEarlyError);
  full.pushback_ms = "100000";
  const TestServer a(full), b;
  const Client client(MakeRemoteConnection(Both(a, b)));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Rewrite(client).ok());
  EXPECT_GT(a.unary_calls(), 0);
  EXPECT_EQ(b.unary_calls(), 4);
  EXPECT_EQ(pauses_, a.unary_calls());
  EXPECT_LE(longest_pause_, absl::Milliseconds(1));
}

TEST_F(ReplicasTest, AFullOneThatSaysNoIsObeyed) {
  ServerOptions full = WithFault(Fault::kEarlyError);
  full.pushback_ms = "-1";
  const TestServer a(full), b(full);
  EXPECT_EQ(ErrorInfoOf(Rewrite(Client(MakeRemoteConnection(Both(a, b))))).reason(), "OVERLOADED");
  EXPECT_EQ(a.unary_calls() + b.unary_calls(), 1);
}

TEST_F(ReplicasTest, OneThatDoesNotServeGetsNoCalls) {
  const TestServer a(Unhealthy()), b;
  const Client client(MakeRemoteConnection(Both(a, b)));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Rewrite(client).ok());
  EXPECT_EQ(a.unary_calls(), 0);
  EXPECT_EQ(b.unary_calls(), 6);
  EXPECT_EQ(pauses_, 0);
}

// As when drained: it would still take calls.
TEST_F(ReplicasTest, OneThatStopsServingGetsNoMoreCalls) {
  TestServer a;
  const TestServer b;
  const Client client(MakeRemoteConnection(Both(a, b)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Rewrite(client).ok());
  EXPECT_EQ(a.unary_calls(), 1);
  a.SetHealthy(false);
  int before = -1, same = 0;
  EXPECT_TRUE(RewriteUntil(client, [&] {
    same = a.unary_calls() == before ? same + 1 : 0;
    before = a.unary_calls();
    return same == 6;
  }));
  a.SetHealthy(true);
  EXPECT_TRUE(RewriteUntil(client, [&] { return a.unary_calls() > before; }));
}

TEST_F(ReplicasTest, WhereNoneServesTheErrorSaysSo) {
  const TestServer a(Unhealthy()), b(Unhealthy());
  RemoteOptions options = Both(a, b);
  options.retry.max_attempts = 2;
  const absl::Status status = Rewrite(Client(MakeRemoteConnection(options)));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not serve now"));
  EXPECT_EQ(a.unary_calls() + b.unary_calls(), 0);
  EXPECT_EQ(pauses_, 1) << "one for each attempt at all of them";
}

TEST_F(ReplicasTest, WhereNoneCanBeReachedAnAttemptAsksAll) {
  std::string target;
  {
    const TestServer a, b;
    target = Both(a, b).target;
  }
  RemoteOptions options = Options(target);
  options.retry.max_attempts = 3;
  const absl::Status status = Rewrite(Client(MakeRemoteConnection(options)));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("127.0.0.1:"), HasSubstr("check")));
  EXPECT_EQ(pauses_, 2);
}

TEST_F(ReplicasTest, ABadListIsNamedByEveryCall) {
  const Client client(MakeRemoteConnection(Options("127.0.0.1:1,,127.0.0.1:2")));
  for (const absl::Status& status :
       {Rewrite(client), client.GetCapabilities().status(), client.CheckHealth().status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ErrorInfoOf(status).reason(), "BAD_OPTION");
  }
}

TEST_F(ReplicasTest, HealthIsThatOfTheOneThatServes) {
  auto gone = std::make_unique<TestServer>();
  const TestServer unhealthy(Unhealthy()), good;
  const std::string bad = absl::StrCat(gone->target(), ",", unhealthy.target());
  gone.reset();
  const auto all =
      Client(MakeRemoteConnection(Options(absl::StrCat(bad, ",", good.target())))).CheckHealth();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(*all, ServingStatus::kServing);
  const auto none = Client(MakeRemoteConnection(Options(bad))).CheckHealth();
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, ServingStatus::kNotServing);
}

// All that a name stands for, of which one does not listen if there is an IPv6.
TEST_F(ReplicasTest, ANameOfManyIsOneTarget) {
  const TestServer server;
  const std::string port(absl::StripPrefix(server.target(), "127.0.0.1"));
  const Client client(MakeRemoteConnection(Options(absl::StrCat("dns:///localhost", port))));
  for (int i = 0; i < 4; ++i) {
    const absl::Status status = Rewrite(client);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(server.unary_calls(), 4);
}

TEST_F(ReplicasTest, ANameOfManyThatDoesNotServeGetsNoCalls) {
  const TestServer server(Unhealthy());
  const std::string port(absl::StripPrefix(server.target(), "127.0.0.1"));
  RemoteOptions options = Options(absl::StrCat("dns:///localhost", port));
  options.retry.max_attempts = 1;
  const Client client(MakeRemoteConnection(options));
  EXPECT_EQ(Rewrite(client).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server.unary_calls(), 0);
  const auto health = client.CheckHealth();
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_EQ(*health, ServingStatus::kNotServing);
}

// So that clients find new servers. A call that takes longer than a connection may live ends well.
TEST_F(ReplicasTest, ConnectionsThatAreSentAwayLoseNoCall) {
  ServerOptions options;
  options.max_connection_age = absl::Milliseconds(50);
  const TestServer a(options);
  options.delay = absl::Milliseconds(300);
  const TestServer slow(options);
  for (const std::string& target : {a.target(), Both(a, slow).target}) {
    const Client client(MakeRemoteConnection(Options(target)));
    const int known = a.peers().size();
    EXPECT_TRUE(
        RewriteUntil(client, [&] { return static_cast<int>(a.peers().size()) > known + 2; }));
  }
  EXPECT_GT(slow.unary_calls(), 0);
  EXPECT_EQ(pauses_, 0);
}

}  // namespace
}  // namespace spillway

#ifdef SPILLWAY_ADDRESS_SANITIZER
// c-ares keeps some of its configuration to the end of the program (1.18, through gRPC's resolver
// of dns:///); it has no symbols that would show more.
extern "C" const char* __lsan_default_suppressions() { return "leak:libcares.so\n"; }
#endif
