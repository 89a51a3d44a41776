// Access control over real connections: tokens, certificates, quotas, and a file that changes.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/base/caller.h"
#include "spillway/v1/error.pb.h"
#include "tests/server/fake_core.h"
#include "tests/server/raw_stream.h"
#include "tests/server/server_fixture.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using test_certs::CertRequest;
using test_certs::TempFolder;
using test_certs::TestCa;

constexpr char kPushback[] = "grpc-retry-pushback-ms";

// The token "abc"; its SHA-256 is FIPS 180-2's example.
constexpr char kBearer[] = "Bearer abc";
constexpr char kTokenOfAlice[] =
    "name: \"alice\" "
    "token_sha256: \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"";

class AccessTest : public ServerFixture {
 protected:
  void SetUp() override {}
  void TearDown() override {
    gate_.Open();
    ServerFixture::TearDown();
    client_.reset();
    server_.reset();  // Before the gate is destroyed.
  }

  // Options of a server whose clock is controlled by the test.
  Options AccessOptions(const std::string& access) {
    Options options = TestOptions();
    options.access_file = folder_.Write("callers", access);
    options.clock = &clock_;
    return options;
  }
  void StartWith(const std::string& access) { Start(AccessOptions(access)); }

  static v1::RewriteRequest Request() {
    v1::RewriteRequest request;
    request.set_graph_def(SmallGraph());
    *request.mutable_options() = ScopeOptions();
    return request;
  }

  // A unary call with this metadata `authorization`; empty: none.
  grpc::Status Rewrite(const std::string& authorization,
                       const v1::RewriteRequest& request = Request()) {
    grpc::ClientContext context;
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    v1::RewriteResponse response;
    const grpc::Status status = client_->stub().Rewrite(&context, request, &response);
    const auto pushback = context.GetServerTrailingMetadata().find(kPushback);
    pushback_ms_ = pushback == context.GetServerTrailingMetadata().end()
                       ? -1
                       : std::stoi(std::string(pushback->second.data(), pushback->second.size()));
    return status;
  }

  // Expects that `status` reports a caller beyond `quota`.
  void ExpectBeyond(const grpc::Status& status, const std::string& quota) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(InfoOf(status).reason(), "OVERLOADED");
    EXPECT_EQ(InfoOf(status).metadata().at("quota"), quota);
  }

  double Rejected(const std::string& reason) {
    return Metric(absl::StrCat("spillway_rejected_requests_total{reason=\"", reason, "\"}"));
  }

  // Expects that a stream of this method is refused before it sends anything.
  template <typename Stream>
  void ExpectRefused(Stream stream) {
    EXPECT_EQ(stream->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  }

  const TempFolder folder_;
  Gate gate_;
  int pushback_ms_ = -1;
};

TEST_F(AccessTest, TheRightTokenIsServedAndCounted) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " }"));
  const grpc::Status status = Rewrite(kBearer);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Metric("spillway_caller_requests_total{caller=\"alice\"}"), 1);
  EXPECT_EQ(Metric("spillway_caller_graph_bytes_total{caller=\"alice\"}"), SmallGraph().size());
  EXPECT_TRUE(Eventually(
      [&] { return Metric("spillway_caller_cpu_seconds_total{caller=\"alice\"}") > 0; }));
  EXPECT_EQ(Rejected("unknown_caller"), 0);
}

TEST_F(AccessTest, WhoIsNotKnownIsRefusedBeforeTheRequestIsParsed) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " }"));
  v1::RewriteRequest no_graph;
  no_graph.set_graph_def("not a graph");
  for (const char* wrong : {"", "Bearer t0pSecret", "Basic t0pSecret"}) {
    const grpc::Status status = Rewrite(wrong, no_graph);
    EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED) << wrong;
    EXPECT_EQ(InfoOf(status).reason(), "UNKNOWN_CALLER");
    EXPECT_EQ(status.error_message().find("t0pSecret"), std::string::npos);
  }
  EXPECT_EQ(Rewrite(kBearer, no_graph).error_code(), StatusCode::INVALID_ARGUMENT)
      << "or this test tests nothing";
  EXPECT_EQ(Rejected("unknown_caller"), 3);
  EXPECT_TRUE(Eventually([&] { return Requests("Rewrite", "UNAUTHENTICATED", "unknown") == 3; }));
  EXPECT_EQ(Metric("spillway_input_bytes_total{method=\"Rewrite\"}"), no_graph.graph_def().size());
}

TEST_F(AccessTest, EveryMethodWantsToKnowWhoCalls) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " }"));
  v1::RewriteService::Stub& stub = client_->stub();
  grpc::ClientContext contexts[7];
  ExpectRefused(stub.StreamRewrite(&contexts[0]));
  ExpectRefused(stub.Inspect(&contexts[1]));
  ExpectRefused(stub.Explore(&contexts[2]));
  v1::SimulateResponse simulated;
  ExpectRefused(stub.Simulate(&contexts[3], &simulated));
  v1::DiffResponse diff;
  ExpectRefused(stub.Diff(&contexts[4], &diff));
  v1::GetCapabilitiesResponse capabilities;
  const grpc::Status status = stub.GetCapabilities(&contexts[5], {}, &capabilities);
  EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(InfoOf(status).reason(), "UNKNOWN_CALLER");
  EXPECT_FALSE(capabilities.has_limits());
  EXPECT_EQ(Rejected("unknown_caller"), 6);
  contexts[6].AddMetadata("authorization", kBearer);
  EXPECT_TRUE(stub.GetCapabilities(&contexts[6], {}, &capabilities).ok());
  EXPECT_TRUE(capabilities.has_limits());
}

// Probes have no credentials.
TEST_F(AccessTest, HealthIsToldToEverybody) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " }"));
  RawStream check(client_->channel(), "/grpc.health.v1.Health/Check", HealthRequest(""));
  EXPECT_EQ(check.Next(), kServing);
}

TEST_F(AccessTest, ReflectionIsForKnownCallers) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " }"));
  RawStream reflection(client_->channel(),
                       "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                       "\x3a\x01*");
  EXPECT_EQ(reflection.Next(), std::nullopt);
  EXPECT_EQ(reflection.End().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Rejected("unknown_caller"), 1);
}

TEST_F(AccessTest, CertificatesAreKnownByCommonNameOrAlternativeName) {
  const TestCa ca("test CA");
  const auto own = ca.Issue();
  Options options = AccessOptions(R"(
      caller { name: "by-common-name" certificate: "alice" quota { requests_in_flight: 1 } }
      caller { name: "by-alternative-name" certificate: "bob.example" })");
  options.tls.cert = folder_.Write("cert.pem", own.cert);
  options.tls.key = folder_.Write("key.pem", own.key);
  options.tls.client_ca = folder_.Write("ca.pem", ca.cert());
  Start(options);
  const auto call = [&](const std::string& common_name, const std::string& names) {
    CertRequest request;
    request.common_name = common_name;
    request.names = names;
    const auto pair = ca.Issue(request);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::RewriteService::NewStub(grpc::CreateCustomChannel(
        address(), grpc::SslCredentials({ca.cert(), pair.key, pair.cert}), arguments));
    grpc::ClientContext context;
    context.AddMetadata(kProxiedPeerKey, "forged");
    context.AddMetadata(kProxiedCertificateKey, "alice");
    v1::RewriteResponse response;
    return stub->Rewrite(&context, Request(), &response);
  };
  EXPECT_TRUE(call("alice", "").ok());
  EXPECT_EQ(Metric("spillway_caller_requests_total{caller=\"by-common-name\"}"), 1);
  EXPECT_TRUE(call("robert", "DNS:x.example,DNS:bob.example").ok());
  EXPECT_EQ(Metric("spillway_caller_requests_total{caller=\"by-alternative-name\"}"), 1);
  const grpc::Status status = call("mallory", "");
  EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED)
      << "what it claims of a proxy is believed on a Unix socket alone";
  EXPECT_NE(status.error_message().find("mallory"), std::string::npos);
  EXPECT_EQ(call("alice", "DNS:x.example").error_code(), StatusCode::UNAUTHENTICATED)
      << "a common name beside names that a CA has looked at";
  EXPECT_EQ(call("robert", "email:bob.example").error_code(), StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessTest, OnAUnixSocketTheProxySaysWhoseCertificateItSaw) {
  Options options = AccessOptions(R"(caller { name: "alice" certificate: "alice.example" })");
  const std::string socket = absl::StrCat("unix:", folder_.path("s"));
  options.listen = {socket};
  Start(options);
  TestClient client(socket);
  const auto call = [&](const char* certificate) {
    grpc::ClientContext context;
    context.AddMetadata(kProxiedPeerKey, "ipv4:192.0.2.1:50000");
    context.AddMetadata(kProxiedCertificateKey, certificate);
    v1::RewriteResponse response;
    return client.stub().Rewrite(&context, Request(), &response);
  };
  EXPECT_TRUE(call("alice.example").ok());
  EXPECT_EQ(call("bob.example").error_code(), StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessTest, BeyondRequestsPerSecondUntilTheTimeThatItSays) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice,
                         " quota { requests_per_second: 0.5 burst_seconds: 4 } }"
                         "caller { name: \"guests\" anybody: true }"));
  EXPECT_TRUE(Rewrite(kBearer).ok());
  EXPECT_TRUE(Rewrite(kBearer).ok());
  ExpectBeyond(Rewrite(kBearer), "requests_per_second");
  EXPECT_EQ(pushback_ms_, 2000);
  EXPECT_TRUE(Rewrite("").ok()) << "others have their own";
  clock_.Advance(absl::Milliseconds(1999));
  ExpectBeyond(Rewrite(kBearer), "requests_per_second");
  EXPECT_EQ(pushback_ms_, 1);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Rewrite(kBearer).ok());
  EXPECT_EQ(Rejected("quota"), 2);
  EXPECT_EQ(Metric("spillway_caller_rejected_requests_total{caller=\"alice\",quota=\"requests_per_"
                   "second\"}"),
            2);
}

TEST_F(AccessTest, BeyondRequestsInFlightUntilOneHasEnded) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " quota { requests_in_flight: 1 } }"));
  grpc::ClientContext context;
  context.AddMetadata("authorization", kBearer);
  const auto holding = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(holding->Write(HeaderMessage(100)));
  ASSERT_TRUE(Eventually([&] { return server_->inflight_bytes() == 100; }));
  ExpectBeyond(Rewrite(kBearer), "requests_in_flight");
  EXPECT_GT(pushback_ms_, 0);
  context.TryCancel();
  EXPECT_EQ(holding->Finish().error_code(), StatusCode::CANCELLED);
  ASSERT_TRUE(NothingInFlight());
  EXPECT_TRUE(Rewrite(kBearer).ok());
}

TEST_F(AccessTest, BeyondGraphBytesUntilTheyArePaidOff) {
  const int64_t bytes = static_cast<int64_t>(SmallGraph().size());
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " quota { graph_bytes_per_second: ", bytes,
                         " burst_seconds: 1 } }"));
  EXPECT_TRUE(Rewrite(kBearer).ok());
  EXPECT_TRUE(Rewrite(kBearer).ok()) << "nothing was owed";
  ExpectBeyond(Rewrite(kBearer), "graph_bytes_per_second");
  EXPECT_EQ(pushback_ms_, 1000);
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Rewrite(kBearer).ok());
}

// Two are admitted while nothing is owed; the first to announce its bytes gets them.
TEST_F(AccessTest, GraphBytesAreChargedWhenTheyAreAnnounced) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " quota { graph_bytes_per_second: 100 } }"));
  grpc::ClientContext contexts[2];
  std::unique_ptr<Stream> streams[2];
  for (int i = 0; i < 2; ++i) {
    contexts[i].AddMetadata("authorization", kBearer);
    streams[i] = client_->stub().StreamRewrite(&contexts[i]);
  }
  ASSERT_TRUE(Eventually([&] { return server_->inflight_requests() == 2; }));
  ASSERT_TRUE(streams[0]->Write(HeaderMessage(1'000'000)));
  ASSERT_TRUE(Eventually([&] { return server_->inflight_bytes() == 1'000'000; }));
  ASSERT_TRUE(streams[1]->Write(HeaderMessage(1)));
  ExpectBeyond(ReadAnswer(*streams[1]).status, "graph_bytes_per_second");
  EXPECT_EQ(server_->inflight_bytes(), 1'000'000) << "it holds nothing of the budget";
  contexts[0].TryCancel();
}

TEST_F(AccessTest, BeyondCpuTimeUntilItIsPaidOff) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice,
                         " quota { cpu_seconds_per_second: 1e-6 burst_seconds: 1 } }"));
  EXPECT_TRUE(Rewrite(kBearer).ok());
  ExpectBeyond(Rewrite(kBearer), "cpu_seconds_per_second");
  EXPECT_GT(pushback_ms_, 0);
  // Repeated, since the worker's later work may be charged later.
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(absl::Hours(1000));
    return Rewrite(kBearer).ok();
  }));
}

// The request that waits for a worker was admitted while nothing was owed.
TEST_F(AccessTest, WorkThatWaitsIsHeldAgainstTheCpuTimeOwedByThen) {
  Options options = AccessOptions(absl::StrCat(
      "caller { ", kTokenOfAlice, " quota { cpu_seconds_per_second: 1e-6 burst_seconds: 1 } }"));
  options.rewrite = [held = gate_.AsFunction()](
                        absl::string_view graph, const v1::RewriteOptions& rewrite_options,
                        const v1::Limits& limits, const core::StopToken& stop,
                        core::PlanReuse* reuse) {
    (void)core::Rewrite(SmallGraph(), ScopeOptions(), limits, core::StopToken(),
                        nullptr);  // This takes CPU time.
    return held(graph, rewrite_options, limits, stop, reuse);
  };
  Start(options);
  grpc::Status first;
  std::thread running([&] {
    v1::RewriteRequest request;
    request.set_graph_def("first");
    grpc::ClientContext context;
    context.AddMetadata("authorization", kBearer);
    v1::RewriteResponse response;
    first = client_->stub().Rewrite(&context, request, &response);
  });
  EXPECT_TRUE(Eventually([&] { return gate_.running() == 1; }));
  grpc::Status second;
  std::thread waiting([&] {
    v1::RewriteRequest request;
    request.set_graph_def("second");
    second = Rewrite(kBearer, request);
  });
  EXPECT_TRUE(Eventually([&] { return Metric("spillway_queued_requests") == 1; }));
  gate_.Open();
  running.join();
  waiting.join();
  EXPECT_TRUE(first.ok()) << first.error_message();
  ExpectBeyond(second, "cpu_seconds_per_second");
}

// A name has one share of the workers, from however many hosts it calls.
TEST_F(AccessTest, AnotherNameDoesNotWaitForAllHostsOfOne) {
  Options options = AccessOptions(
      absl::StrCat("caller { ", kTokenOfAlice, " } caller { name: \"others\" anybody: true }"));
  const std::string socket = absl::StrCat("unix:", folder_.path("s"));
  options.listen = {socket};
  absl::Notification may_end;
  absl::Mutex mu;
  std::vector<std::string> served;
  options.rewrite = [&](absl::string_view graph, const v1::RewriteOptions&, const v1::Limits&,
                        const core::StopToken&, core::PlanReuse*) {
    {
      absl::MutexLock lock(&mu);
      served.emplace_back(graph);
    }
    may_end.WaitForNotification();
    return absl::StatusOr<v1::RewriteResponse>(v1::RewriteResponse());
  };
  Start(options);
  TestClient client(socket);
  std::vector<std::thread> calls;
  const auto call = [&](const std::string& graph, bool is_alice, const std::string& host) {
    calls.emplace_back([&client, graph, is_alice, host] {
      grpc::ClientContext context;
      context.AddMetadata(kProxiedPeerKey, absl::StrCat("ipv4:", host, ":50000"));
      if (is_alice) context.AddMetadata("authorization", kBearer);
      v1::RewriteRequest request;
      request.set_graph_def(graph);
      *request.mutable_options() = ScopeOptions();
      v1::RewriteResponse response;
      EXPECT_TRUE(client.stub().Rewrite(&context, request, &response).ok()) << graph;
    });
  };
  call("first", true, "192.0.2.1");
  EXPECT_TRUE(Eventually([&] {
    absl::MutexLock lock(&mu);
    return served.size() == 1;
  }));
  const auto wait_until_queued = [&](int count) {
    EXPECT_TRUE(Eventually([&] { return Metric("spillway_queued_requests") == count; }));
  };
  call("alice's", true, "192.0.2.2");
  wait_until_queued(1);
  call("alice's other", true, "192.0.2.3");
  wait_until_queued(2);
  call("somebody's", false, "192.0.2.4");
  EXPECT_TRUE(Eventually([&] {
    absl::MutexLock lock(&mu);
    return served.size() == 2;
  })) << "while alice has the only worker";
  may_end.Notify();
  for (std::thread& thread : calls) thread.join();
  EXPECT_THAT(served, testing::ElementsAre("first", "somebody's", "alice's", "alice's other"));
}

// Requests for which the server itself has no room are not charged.
TEST_F(AccessTest, WhatTheServerHasNoRoomForCostsNothing) {
  Options options = AccessOptions(absl::StrCat(
      "caller { ", kTokenOfAlice, " quota { requests_per_second: 1e-3 burst_seconds: 2000 } }"));
  options.limits.set_max_inflight_bytes(SmallGraph().size() - 1);
  options.limits.set_max_graph_bytes(SmallGraph().size() - 1);
  Start(options);
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = Rewrite(kBearer);
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(InfoOf(status).metadata().count("quota"), 0) << i;
  }
}

// The time of a worker is charged even on failure: here a graph whose digest is not the announced
// one.
TEST_F(AccessTest, WorkThatFailsIsPaidFor) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " }"));
  const std::string bytes(4 << 20, 'g');
  grpc::ClientContext context;
  context.AddMetadata("authorization", kBearer);
  const auto stream = client_->stub().StreamRewrite(&context);
  stream->Write(HeaderMessage(bytes.size(), std::string(32, 'd')));
  for (size_t at = 0; at < bytes.size(); at += 1 << 20) {
    stream->Write(ChunkMessage(absl::string_view(bytes).substr(at, 1 << 20)));
  }
  stream->WritesDone();
  EXPECT_EQ(InfoOf(stream->Finish()).reason(), "BAD_STREAM");
  EXPECT_TRUE(Eventually(
      [&] { return Metric("spillway_caller_cpu_seconds_total{caller=\"alice\"}") > 0; }));
}

TEST_F(AccessTest, AChangedFileIsTakenWithoutARestartAndABrokenOneIsNot) {
  StartWith(absl::StrCat("caller { ", kTokenOfAlice, " }"));
  EXPECT_TRUE(Rewrite(kBearer).ok());
  folder_.Write("callers", "caller { name: \"bob\"");
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Rewrite(kBearer).ok()) << "a broken file: the old callers are kept";
  folder_.Write("callers", "caller { name: \"bob\" certificate: \"bob\" }");
  EXPECT_TRUE(Rewrite(kBearer).ok()) << "not looked at yet";
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Rewrite(kBearer).error_code(), StatusCode::UNAUTHENTICATED);
  folder_.Write("callers", absl::StrCat("caller { ", kTokenOfAlice, " }"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Rewrite(kBearer).ok());
}

TEST_F(AccessTest, ABrokenFileIsAnErrorBeforeAnythingListens) {
  const Options options = AccessOptions("caller { name: \"bob\" }");
  EXPECT_EQ(Server::BuildAndStart(options).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Server::Check(options).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace spillway::server
