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
                                             {"--tls-server-name", "n"}}) {
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
  for (const char* flag :
       {"--tls-ca", "--tls-cert", "--tls-key", "--tls-server-name", "--timeout"}) {
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

}  // namespace
}  // namespace spillway::testing
