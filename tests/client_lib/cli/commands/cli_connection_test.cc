// The flags of a connection, as users of the program `spillway` give them.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"
#include "tests/testing/test_certs.h"

namespace spillway::testing {
namespace {

// The sentence about an empty --server is in command_lines.txt.
TEST(CliConnectionTest, AnEmptyVariableIsNoServer) {
  // A variable set to nothing is as good as none. In a folder of its own: a result of an earlier
  // run in the user's cache would be an answer, too.
  const TempDir dir;
  const ChildResult result = RunChild(
      {"/usr/bin/env", "SPILLWAY_SERVER=", kProgram, "run", "--graph", kMnistPath, "--batch-size",
       "8", "--cache-dir", dir / "cache", "--fail-closed", "--quiet", "--", "true"},
      "");
  EXPECT_EQ(result.exit_code, 0) << result.err;
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
  const Words all = {"health",
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
  const ChildResult good = Spillway(all);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "SERVING\n");

  // Each mistake: one sentence, and none of gRPC's own lines.
  const Words without_name(all.begin(), all.end() - 2);
  ExpectError(Spillway(without_name), 5, {"--tls-server-name", "[UNAVAILABLE]\n"});
  ExpectError(Spillway({"health", "--server", server.target(), "--tls"}), 5,
              {"--tls-ca", "[UNAVAILABLE]\n"});
  ExpectError(Spillway({"health", "--server", server.target()}), 5,
              {"may want TLS", "[UNAVAILABLE]\n"});
  ExpectError(Spillway({"health", "--server", server.target(), "--tls-ca", "/none"}), 2,
              {"/none", "[BAD_OPTION]\n"});
}

TEST(CliConnectionTest, OneOfSeveralServersIsEnough) {
  std::string gone;
  { gone = TestServer().target(); }
  const TestServer server;
  for (const std::string& servers : {gone + "," + server.target(), server.target() + "," + gone}) {
    for (const char* command : {"capabilities", "health"}) {
      const ChildResult result = Spillway({command, "--server", servers});
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.err, "");
    }
  }
}

TEST(CliConnectionTest, WhatTheServerIsToldOfTheCaller) {
  const TestServer server;
  const TempDir dir;
  const std::string traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto told = [&](const Words& variables, const Words& flags) {
    const ChildResult result =
        RunChild(Words{"/usr/bin/env", "-u", "SPILLWAY_TOKEN", "-u", "TRACEPARENT"} + variables +
                 Words{kProgram, "capabilities", "--server", server.target()} + flags);
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

TEST(CliConnectionTest, ARewriteMayBeAskedForTwice) {
  ServerOptions options;
  options.fault = Fault::kHangsOnce;
  const TestServer server(options);
  const ChildResult result = Spillway({"rewrite", kMnistPath, "--batch-size", "8", "-o", "-",
                                       "--server", server.target(), "--hedge-after", "20ms"});
  EXPECT_EQ(result.exit_code, 9) << result.err;  // Some sizes of feeds are unknown.
  EXPECT_EQ(server.unary_calls(), 2);
}

}  // namespace
}  // namespace spillway::testing
