// The flags of a connection, as users of the program `spillway` give them.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "tests/client_lib/child_process.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"
#include "tests/testing/test_certs.h"

namespace spillway::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ChildResult RunSpillway(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SPILLWAY_BIN_DIR "/spillway");
  return RunChild(arguments, "");
}

void ExpectOneLine(const ChildResult& result, int exit_code, const std::string& words,
                   const std::string& reason) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_THAT(result.err,
              AllOf(StartsWith("spillway: "), HasSubstr(words), EndsWith(" [" + reason + "]\n")));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(CliConnectionTest, FlagsOfAConnectionNeedAServer) {
  for (const std::vector<std::string>& flag :
       std::vector<std::vector<std::string>>{{"--retries", "3"},
                                             {"--tls"},
                                             {"--tls-ca", "ca"},
                                             {"--tls-cert", "c", "--tls-key", "k"},
                                             {"--tls-server-name", "n"},
                                             {"--token-file", "t"},
                                             {"--token-in-clear"},
                                             {"--request-id", "i"},
                                             {"--hedge-after", "1s"}}) {
    std::vector<std::string> arguments = {"rewrite", kMnistPath, "-o", "/nowhere/out.pb"};
    arguments.insert(arguments.end(), flag.begin(), flag.end());
    const ChildResult result = RunSpillway(arguments);
    ExpectOneLine(result, 2, "--server", "USAGE");
    EXPECT_THAT(result.err, HasSubstr(flag[0]));
  }
}

// As from a variable that is not set: what was asked for is not left out in silence.
TEST(CliConnectionTest, EmptyValuesAreRefused) {
  const TestServer server;
  for (const char* flag : {"--tls-ca", "--tls-cert", "--tls-key", "--tls-server-name", "--timeout",
                           "--token-file", "--request-id"}) {
    const ChildResult result = RunSpillway({"health", "--server", server.target(), flag, ""});
    ExpectOneLine(result, 2, "empty", "USAGE");
    EXPECT_THAT(result.err, HasSubstr(flag));
  }
  ExpectOneLine(RunSpillway({"rewrite", kMnistPath, "-o", "", "--report", "-"}), 2, "empty",
                "USAGE");
  ExpectOneLine(RunSpillway({"rewrite", kMnistPath, "-o", "-", "--patch", ""}), 2, "--patch",
                "USAGE");
  ExpectOneLine(RunSpillway({"anonymize", kMnistPath, "-o", "-", "--mapping", ""}), 2, "--mapping",
                "USAGE");
}

TEST(CliConnectionTest, AnEmptyServerIsNotThisProcess) {
  for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
           {"health", "--server", ""},
           {"capabilities", "--server", ""},
           {"rewrite", kMnistPath, "-o", "-", "--server", ""},
           {"run", "--graph", kMnistPath, "--server", "", "--", "true"}}) {
    ExpectOneLine(RunSpillway(call), 2, "--server", "USAGE");
  }
  // A variable that is set to nothing is as good as none. In a folder of its own: what an earlier
  // run left in the user's cache would be an answer, too.
  const TempDir dir;
  const ChildResult result =
      RunChild({"/usr/bin/env", "SPILLWAY_SERVER=", SPILLWAY_BIN_DIR "/spillway", "run", "--graph",
                kMnistPath, "--batch-size", "8", "--cache-dir", dir / "cache", "--fail-closed",
                "--quiet", "--", "true"},
               "");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(CliConnectionTest, CertificateAndKeyNeedEachOther) {
  ExpectOneLine(RunSpillway({"health", "--server", "127.0.0.1:1", "--tls-cert", "c"}), 2,
                "--tls-key", "USAGE");
  ExpectOneLine(RunSpillway({"health", "--server", "127.0.0.1:1", "--tls-key", "k"}), 2,
                "--tls-cert", "USAGE");
}

TEST(CliConnectionTest, TlsAndMutualTls) {
  const test_certs::TempFolder folder;
  const test_certs::TestCa ca("server CA");
  const test_certs::TestCa client_ca("client CA");
  test_certs::CertRequest request;
  request.names = "DNS:spillway.example";
  const test_certs::CertAndKey pair = ca.Issue(request);
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_key_cert_pairs = {{pair.key, pair.cert}};
  tls.pem_root_certs = client_ca.cert();
  ServerOptions options;
  options.credentials = grpc::SslServerCredentials(tls);
  const TestServer server(options);
  const std::string ca_file = folder.Write("ca.pem", ca.cert());
  const test_certs::CertAndKey own = client_ca.Issue();
  const std::vector<std::string> all = {"health",
                                        "--server",
                                        server.target(),
                                        "--tls-ca",
                                        ca_file,
                                        "--tls-cert",
                                        folder.Write("own.pem", own.cert),
                                        "--tls-key",
                                        folder.Write("own.key", own.key),
                                        "--tls-server-name",
                                        "spillway.example"};
  const ChildResult good = RunSpillway(all);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "SERVING\n");

  // Each mistake: one sentence, and none of gRPC's own lines.
  const std::vector<std::string> without_name(all.begin(), all.end() - 2);
  ExpectOneLine(RunSpillway(without_name), 5, "--tls-server-name", "UNAVAILABLE");
  ExpectOneLine(RunSpillway({"health", "--server", server.target(), "--tls"}), 5, "--tls-ca",
                "UNAVAILABLE");
  ExpectOneLine(RunSpillway({"health", "--server", server.target()}), 5, "may want TLS",
                "UNAVAILABLE");
  ExpectOneLine(RunSpillway({"health", "--server", server.target(), "--tls-ca", "/none"}), 2,
                "/none", "BAD_OPTION");
}

TEST(CliConnectionTest, OneOfSeveralServersIsEnough) {
  std::string gone;
  { gone = TestServer().target(); }
  const TestServer server;
  for (const std::string& servers : {gone + "," + server.target(), server.target() + "," + gone}) {
    for (const char* command : {"capabilities", "health"}) {
      const ChildResult result = RunSpillway({command, "--server", servers});
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.err, "");
    }
  }
  ExpectOneLine(RunSpillway({"capabilities", "--server", server.target() + ","}), 2,
                "empty address", "BAD_OPTION");
}

TEST(CliConnectionTest, WhatTheServerIsToldOfTheCaller) {
  const TestServer server;
  const TempDir dir;
  const std::string traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto told = [&](std::vector<std::string> variables, std::vector<std::string> flags) {
    std::vector<std::string> words = {"/usr/bin/env", "-u", "SPILLWAY_TOKEN", "-u", "TRACEPARENT"};
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(),
                 {SPILLWAY_BIN_DIR "/spillway", "capabilities", "--server", server.target()});
    words.insert(words.end(), flags.begin(), flags.end());
    const ChildResult result = RunChild(words, "");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::string all;
    const auto metadata = server.last_metadata();
    for (const char* key : {"authorization", "x-request-id", "traceparent"}) {
      const auto found = metadata.find(key);
      if (found != metadata.end()) all += found->second + "|";
    }
    return all;
  };
  EXPECT_EQ(told({}, {}), "");
  EXPECT_EQ(told({"SPILLWAY_TOKEN=abc", "TRACEPARENT=" + traceparent}, {"--request-id", "job-17"}),
            "Bearer abc|job-17|" + traceparent + "|");
  EXPECT_EQ(told({"SPILLWAY_TOKEN=abc"}, {"--token-file", dir.Write("token", "def\n")}),
            "Bearer def|");
  EXPECT_EQ(told({"TRACEPARENT=00-of-another-program"}, {}), "");
}

TEST(CliConnectionTest, ATokenIsNotSentInClear) {
  const TempDir dir;
  ExpectOneLine(RunSpillway({"capabilities", "--server", "trainer.example:7070", "--token-file",
                             dir.Write("token", "abc")}),
                2, "--token-in-clear", "BAD_OPTION");
}

TEST(CliConnectionTest, ARewriteMayBeAskedForTwice) {
  ServerOptions options;
  options.fault = Fault::kHangsOnce;
  const TestServer server(options);
  const ChildResult result = RunSpillway({"rewrite", kMnistPath, "--batch-size", "8", "-o", "-",
                                          "--server", server.target(), "--hedge-after", "20ms"});
  EXPECT_EQ(result.exit_code, 9) << result.err;  // The size of what is fed is not all known.
  EXPECT_EQ(server.unary_calls(), 2);
  ExpectOneLine(RunSpillway({"rewrite", kMnistPath, "-o", "-", "--server", server.target(),
                             "--hedge-after", "5"}),
                2, "--hedge-after: '5'", "BAD_OPTION");
}

}  // namespace
}  // namespace spillway::testing
