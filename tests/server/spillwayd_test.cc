// The program itself: its output, its exit codes, its signals, its metrics as parsed by promtool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rewrite_core/rewriter.h"
#include "tests/server/daemon.h"
#include "tests/server/raw_stream.h"
#include "tests/server/test_client.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int CountLines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(SpillwaydTest, ServesAndCountsAndPromtoolHasNothingToSay) {
  Daemon daemon;
  TestClient client(daemon.address());
  const std::string graph = SmallGraph();
  const StreamAnswer answer = client.StreamRewrite(graph, ScopeOptions(), 10'000);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.header.graph().sha256(), DigestOf(answer.graph));
  v1::RewriteRequest request;
  request.set_graph_def(graph);
  *request.mutable_options() = ScopeOptions();
  v1::RewriteResponse response;
  ASSERT_TRUE(client.Rewrite(request, &response).ok());
  EXPECT_TRUE(response.graph_def() == answer.graph);
  request.clear_graph_def();
  EXPECT_EQ(client.Rewrite(request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  std::string scrape;
  EXPECT_TRUE(Eventually([&] {
    scrape = daemon.Scrape();
    return Sample(scrape, "spillway_inflight_requests") == 0;
  }));
  const auto requests = [&](const std::string& code, const std::string& method) {
    return Sample(scrape, absl::StrCat("spillway_requests_total{code=\"", code, "\",method=\"",
                                       method, "\",strategy=\"scope\"}"));
  };
  EXPECT_EQ(requests("OK", "StreamRewrite"), 1);
  EXPECT_EQ(requests("OK", "Rewrite"), 1);
  EXPECT_EQ(requests("INVALID_ARGUMENT", "Rewrite"), 1);
  EXPECT_EQ(Sample(scrape, "spillway_input_bytes_total{method=\"StreamRewrite\"}"), graph.size());
  EXPECT_EQ(Sample(scrape, absl::StrCat("spillway_build_info{version=\"", core::Version(), "\"}")),
            1);
  EXPECT_GT(Sample(scrape, "process_resident_memory_bytes"), 1e6);
  EXPECT_GT(Sample(scrape, "process_open_fds"), 3);

  ChildProcess promtool({"promtool", "check", "metrics"});
  promtool.WriteStdin(scrape);
  const std::string lint = promtool.ReadStdout() + promtool.ReadStderr();
  const int code = promtool.Wait();
  if (code == -1000 || code == 127) {
    GTEST_SKIP() << "promtool is not installed (Debian: package prometheus): metrics not linted";
  }
  EXPECT_EQ(code, 0) << lint;
  EXPECT_EQ(lint, "");
}

TEST(SpillwaydTest, TakesAsManyDescriptorsAsItMay) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max <= 64) GTEST_SKIP() << "no more than 64 descriptors here";
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  Daemon daemon;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(Sample(daemon.Scrape(), "process_max_fds"), before.rlim_max);
}

TEST(SpillwaydTest, LogsOneLinePerRequestToStderrOnly) {
  Daemon daemon;
  TestClient client(daemon.address());
  v1::RewriteRequest request;
  request.mutable_options()->mutable_scope();
  v1::RewriteResponse response;
  EXPECT_FALSE(client.Rewrite(request, &response).ok());
  daemon.process().Signal(SIGTERM);
  const std::string log = daemon.process().ReadStderr();
  EXPECT_EQ(daemon.process().ReadStdout(), "") << "nothing but the two lines at the start";
  EXPECT_EQ(daemon.process().Wait(), 0);
  EXPECT_THAT(log, HasSubstr("method=Rewrite strategy=scope code=INVALID_ARGUMENT bytes_in=0 "
                             "bytes_out=0 ms="));
  size_t lines = 0;
  for (size_t at = 0; (at = log.find(" request method=", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 1u) << log;
}

TEST(SpillwaydTest, SigtermLetsARunningStreamFinish) {
  for (const int number : {SIGTERM, SIGINT}) {
    Daemon daemon;
    TestClient client(daemon.address());
    RawStream health(client.channel(), "/grpc.health.v1.Health/Watch", HealthRequest(""));
    EXPECT_EQ(health.Next(), kServing);
    const std::string graph = SmallGraph();
    grpc::ClientContext context;
    const std::unique_ptr<Stream> stream = client.stub().StreamRewrite(&context);
    ASSERT_TRUE(stream->Write(HeaderMessage(graph.size(), DigestOf(graph))));
    ASSERT_TRUE(stream->Write(ChunkMessage(graph.substr(0, 1000))));
    ASSERT_TRUE(Eventually(
        [&] { return Sample(daemon.Scrape(), "spillway_inflight_bytes") == graph.size(); }));
    daemon.process().Signal(number);
    EXPECT_EQ(health.Next(), kNotServing);
    ASSERT_TRUE(stream->Write(ChunkMessage(graph.substr(1000))));
    stream->WritesDone();
    const StreamAnswer answer = ReadAnswer(*stream);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.header.graph().sha256(), DigestOf(answer.graph));
    EXPECT_GT(answer.graph.size(), 0u);
    EXPECT_EQ(daemon.process().Wait(), 0);
  }
}

TEST(SpillwaydTest, DrainTimeoutEndsWhatDoesNotEnd) {
  Daemon daemon({"--drain-timeout=50ms"});
  TestClient client(daemon.address());
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client.stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(1000)));
  ASSERT_TRUE(
      Eventually([&] { return Sample(daemon.Scrape(), "spillway_inflight_bytes") == 1000; }));
  daemon.process().Signal(SIGTERM);
  EXPECT_FALSE(ReadAnswer(*stream).status.ok());
  EXPECT_EQ(daemon.process().Wait(), 0);
}

TEST(SpillwaydTest, SecondSignalEndsItAtOnce) {
  Daemon daemon({"--drain-timeout=1h"});
  TestClient client(daemon.address());
  RawStream health(client.channel(), "/grpc.health.v1.Health/Watch", HealthRequest(""));
  EXPECT_EQ(health.Next(), kServing);
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client.stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(1000)));
  ASSERT_TRUE(
      Eventually([&] { return Sample(daemon.Scrape(), "spillway_inflight_bytes") == 1000; }));
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(health.Next(), kNotServing);
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 3);
  EXPECT_THAT(daemon.process().ReadStderr(), HasSubstr("second signal"));
  context.TryCancel();
}

TEST(SpillwaydTest, KilledClientGivesItsBudgetBack) {
  Daemon daemon;
  // A separate client process would need another program; dropping the connection abruptly looks
  // the same to the server.
  auto client = std::make_unique<TestClient>(daemon.address());
  auto context = std::make_unique<grpc::ClientContext>();
  std::unique_ptr<Stream> stream = client->stub().StreamRewrite(context.get());
  ASSERT_TRUE(stream->Write(HeaderMessage(5000)));
  ASSERT_TRUE(
      Eventually([&] { return Sample(daemon.Scrape(), "spillway_inflight_bytes") == 5000; }));
  stream.reset();
  context.reset();
  client.reset();
  EXPECT_TRUE(Eventually([&] {
    const std::string scrape = daemon.Scrape();
    return Sample(scrape, "spillway_inflight_bytes") == 0 &&
           Sample(scrape, "spillway_inflight_requests") == 0;
  }));
}

TEST(SpillwaydTest, PortThatNeedsRightsIsOneSentenceAndExitOne) {
  ChildProcess process({"setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all",
                        "--bounding-set=-all", kProgram, "--listen=127.0.0.1:1",
                        "--metrics-listen=none"});
  const std::string error = process.ReadStderr();
  const int code = process.Wait();
  if (code != 1 || error.find("spillwayd: ") != 0) {
    GTEST_SKIP() << "cannot run spillwayd as another user here: " << code << " " << error;
  }
  EXPECT_THAT(error, AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("Permission denied")));
}

// The token "abc"; its SHA-256 is FIPS 180-2's example.
constexpr char kAlice[] =
    "caller { name: \"alice\" "
    "token_sha256: \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\" }\n";

TEST(SpillwaydTest, WhatEndsTheStartIsOneSentence) {
  Daemon daemon;
  const std::string metrics = absl::StrCat("127.0.0.1:", daemon.metrics_port());
  const test_certs::TempFolder folder;
  const std::string callers =
      folder.Write("callers", absl::StrCat(kAlice, "caller { nmae: \"bob\" }\n"));
  struct Start {
    std::vector<std::string> flags;
    int exit_code;
    std::vector<std::string> words;
  };
  for (const auto& [flags, exit_code, words] : std::vector<Start>{
           {{"--bogus"}, 2, {"--bogus"}},
           {{"--listen", daemon.address(), "--metrics-listen", "127.0.0.1:0"},
            1,
            {daemon.address(), "--listen"}},
           {{"--listen", "127.0.0.1:0", "--metrics-listen", metrics},
            1,
            {metrics, "--metrics-listen"}},
           // 192.0.2.0/24 is kept for documentation (RFC 5737).
           {{"--listen", "192.0.2.1:7070", "--insecure", "--metrics-listen", "none"},
            1,
            {"192.0.2.1:7070"}},
           {{"--listen", "0.0.0.0:0", "--metrics-listen", "none"},
            2,
            {"--listen 0.0.0.0:0", "--insecure"}},
           {{"--tls-cert", "/none.pem", "--tls-key", "/none.key"}, 1, {"--tls-cert", "/none.pem"}},
           {{absl::StrCat("--access-file=", callers), "--listen=127.0.0.1:0"},
            1,
            {"--access-file", callers, "line 2: there is no such field"}},
           {{absl::StrCat("--access-file=", callers), "--check"},
            1,
            {"--access-file", callers, "line 2: there is no such field"}}}) {
    const Finished finished = RunToEnd(flags);
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(CountLines(finished.err), 1) << finished.err;
    for (const std::string& word : words) EXPECT_THAT(finished.err, HasSubstr(word));
  }
}

TEST(SpillwaydTest, CheckPrintsTheCallers) {
  const test_certs::TempFolder folder;
  const std::string file = folder.Write("callers", kAlice);
  const Finished finished = RunToEnd({absl::StrCat("--access-file=", file), "--check"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, AllOf(HasSubstr(absl::StrCat("--access-file=", file, "\n")),
                                  HasSubstr("\ncaller alice certificates=0 tokens=1 ")));
}

// The log has callers by the operator's names, each fault of a file once, and no token.
TEST(SpillwaydTest, LogsNamesAndFaultsAndNoTokens) {
  const test_certs::TempFolder folder;
  const std::string file = folder.Write("callers", kAlice);
  Daemon daemon({absl::StrCat("--access-file=", file), "--log-level=debug"});
  TestClient client(daemon.address());
  const auto call = [&](const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    v1::RewriteResponse response;
    return client.stub().Rewrite(&context, {}, &response).error_code();
  };
  EXPECT_EQ(call("abc"), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(call("t0pSecret"), grpc::StatusCode::UNAUTHENTICATED);
  folder.Write("callers", absl::StrCat(kAlice, "caller { name: \"bob\" token_sha256: t0pSecret }"));
  // Checked at least twice: another process uses the real clock, so only a real wait triggers the
  // next check. The wait exceeds the interval between checks, so a slow machine does not matter.
  for (int i = 0; i < 2; ++i) {
    absl::SleepFor(absl::Milliseconds(1100));
    EXPECT_EQ(call("abc"), grpc::StatusCode::INVALID_ARGUMENT);
  }
  daemon.process().Signal(SIGTERM);
  const std::string log = daemon.process().ReadStderr();
  EXPECT_EQ(daemon.process().Wait(), 0);
  EXPECT_THAT(log, HasSubstr(" caller=alice"));
  EXPECT_THAT(log, HasSubstr(" code=UNAUTHENTICATED "));
  const std::string warning = "callers not reloaded: the previous ones stay in force";
  const size_t first = log.find(warning);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(warning, first + 1), std::string::npos) << "once";
  EXPECT_THAT(log.substr(first), HasSubstr("line 2: "));
  EXPECT_EQ(log.find("t0pSecret"), std::string::npos) << log;
}

TEST(SpillwaydTest, TokensOnPlainTextForOthersAreWarnedOf) {
  const test_certs::TempFolder folder;
  const std::string tokens = folder.Write("tokens", kAlice);
  const std::string none = folder.Write("none", "caller { name: \"x\" anybody: true }");
  const auto log_of = [](const std::string& address, const std::string& file) {
    ChildProcess process({kProgram, "--metrics-listen=none", "--insecure", "--listen=" + address,
                          "--access-file=" + file});
    EXPECT_THAT(process.ReadLine(), HasSubstr("listening on"));
    process.Signal(SIGTERM);
    return process.ReadStderr();
  };
  const std::string warning = "tokens cross the network without encryption";
  EXPECT_THAT(log_of("0.0.0.0:0", tokens), HasSubstr(warning));
  EXPECT_THAT(log_of("0.0.0.0:0", none), Not(HasSubstr(warning)));
  EXPECT_THAT(log_of("127.0.0.1:0", tokens), Not(HasSubstr(warning)));
}

TEST(SpillwaydTest, SocketOfAKilledServerIsTakenOver) {
  const test_certs::TempFolder folder;
  const std::string address = "unix:" + folder.path("spillwayd.sock");
  {
    ChildProcess killed({kProgram, "--listen", address, "--metrics-listen=none"});
    EXPECT_THAT(killed.ReadLine(), HasSubstr(address));
    killed.Signal(SIGKILL);
    EXPECT_EQ(killed.Wait(), -SIGKILL);
  }
  ChildProcess process({kProgram, "--listen", address, "--metrics-listen=none"});
  EXPECT_THAT(process.ReadLine(), HasSubstr(address));
  TestClient client(address);
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse response;
  EXPECT_TRUE(client.stub().GetCapabilities(&context, {}, &response).ok());
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 0);
}

TEST(SpillwaydTest, HelpAndVersionGoToStdout) {
  const Finished help = RunToEnd({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--max-inflight-bytes"));
  EXPECT_EQ(help.err, "");
  const Finished version = RunToEnd({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, absl::StrCat("spillwayd ", core::Version(), "\n"));
}

// Its sockets do not get the numbers of the streams that it writes to.
TEST(SpillwaydTest, RunsWithoutStandardStreams) {
  const test_certs::TempFolder folder;
  const std::string socket = folder.path("socket");
  ChildProcess process({"/bin/sh", "-c", "exec \"$0\" \"$@\" <&- >&- 2>&-", kProgram,
                        absl::StrCat("--listen=unix:", socket), "--metrics-listen=none",
                        "--log-level=debug"});
  v1::RewriteRequest request;
  request.set_graph_def(SmallGraph());
  *request.mutable_options() = ScopeOptions();
  ASSERT_TRUE(Eventually([&] { return access(socket.c_str(), F_OK) == 0; }));
  TestClient client(absl::StrCat("unix:", socket));
  v1::RewriteResponse response;
  EXPECT_TRUE(Eventually([&] { return client.Rewrite(request, &response).ok(); }));
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 0);
}

// Programs read these two lines, for any flags; the rest is in the log.
TEST(SpillwaydTest, ADryRunPrintsTheSameTwoLines) {
  Daemon daemon({"--dry-run"});
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().ReadStdout(), "");
  EXPECT_THAT(daemon.process().ReadStderr(),
              HasSubstr("dry run: every graph is returned unchanged"));
  EXPECT_EQ(daemon.process().Wait(), 0);
}

TEST(SpillwaydTest, MetricsCanBeOff) {
  ChildProcess process({kProgram, "--listen=127.0.0.1:0", "--metrics-listen=none"});
  EXPECT_THAT(process.ReadLine(), HasSubstr("listening on 127.0.0.1:"));
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ReadStdout(), "");
  EXPECT_EQ(process.Wait(), 0);
}

}  // namespace
}  // namespace spillway::server
