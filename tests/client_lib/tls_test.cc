// Encrypted connections: that they work, and that their errors show users the reason.
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "spillway/client.h"
#include "spillway/remote_connection.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"
#include "tests/testing/test_certs.h"

namespace spillway {
namespace {

using test_certs::CertAndKey;
using test_certs::CertRequest;
using test_certs::TempFolder;
using test_certs::TestCa;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::ReadFile;
using testing::ServerOptions;
using testing::TestServer;

class ClientTlsTest : public ::testing::Test {
 protected:
  // A server with `pair`; `client_ca`: it wants a certificate from there.
  void Serve(const CertAndKey& pair, const std::string& client_ca = "") {
    grpc::SslServerCredentialsOptions tls(
        client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_key_cert_pairs = {{pair.key, pair.cert}};
    tls.pem_root_certs = client_ca;
    ServerOptions options;
    options.credentials = grpc::SslServerCredentials(tls);
    server_ = std::make_unique<TestServer>(options);
  }

  // A client of the server that trusts ca_; nothing is retried silently.
  RemoteOptions Options() {
    RemoteOptions options;
    options.target = server_->target();
    options.tls.emplace();
    options.tls->ca_file = ca_file_;
    options.retry.on_retry = [this](const RetryNotice&) { ++retries_; };
    return options;
  }
  void Show(const CertAndKey& own, RemoteOptions* options) {
    options->tls->cert_file = folder_.Write("own.pem", own.cert);
    options->tls->key_file = folder_.Write("own.key", own.key);
  }
  absl::Status Ask(const RemoteOptions& options) {
    return Client(MakeRemoteConnection(options)).GetCapabilities().status();
  }
  // It fails for good, at once, with these words.
  void ExpectLasting(const RemoteOptions& options, const std::string& words) {
    retries_ = 0;
    const absl::Status status = Ask(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(options.target), HasSubstr(words)));
    EXPECT_EQ(retries_, 0) << "it would fail the same way";
  }

  const TempFolder folder_;
  const TestCa ca_{"server CA"};
  const TestCa other_ca_{"other CA"};
  const std::string ca_file_ = folder_.Write("ca.pem", ca_.cert());
  std::unique_ptr<TestServer> server_;
  int retries_ = 0;
};

TEST_F(ClientTlsTest, CallsWorkWithTheRightAuthority) {
  Serve(ca_.Issue());
  Client client(MakeRemoteConnection(Options()));
  const auto response = client.Rewrite(ReadFile(kMnistPath), MnistOptions());
  EXPECT_TRUE(response.ok()) << response.status();
  const auto health = client.CheckHealth();
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_EQ(*health, ServingStatus::kServing);
  RemoteOptions streaming = Options();
  streaming.unary_max_bytes = -1;
  EXPECT_TRUE(
      Client(MakeRemoteConnection(streaming)).Rewrite(ReadFile(kMnistPath), MnistOptions()).ok());
  EXPECT_EQ(server_->stream_calls(), 1);
}

TEST_F(ClientTlsTest, AnotherAuthoritySaysSo) {
  Serve(other_ca_.Issue());
  ExpectLasting(Options(), "not from an authority that this client trusts");
  RemoteOptions of_the_machine = Options();
  of_the_machine.tls->ca_file = "";
  ExpectLasting(of_the_machine, "not from an authority that this client trusts");
}

TEST_F(ClientTlsTest, ExpiredCertificateSaysSo) {
  CertRequest request;
  request.days = -1;
  Serve(ca_.Issue(request));
  ExpectLasting(Options(), "not valid today");
}

TEST_F(ClientTlsTest, AnotherNameSaysSoAndMayBeGiven) {
  CertRequest request;
  request.names = "DNS:spillway.example";
  Serve(ca_.Issue(request));
  ExpectLasting(Options(), "for another name");
  RemoteOptions options = Options();
  options.tls->server_name = "spillway.example";
  EXPECT_EQ(Ask(options), absl::OkStatus());
  options.tls->server_name = "other.example";
  ExpectLasting(options, "for another name");
}

TEST_F(ClientTlsTest, ServerWithoutTlsSaysSo) {
  server_ = std::make_unique<TestServer>();
  ExpectLasting(Options(), "does not speak TLS");
}

TEST_F(ClientTlsTest, PlainTextClientIsToldOfTls) {
  Serve(ca_.Issue());
  RemoteOptions options = Options();
  options.tls.reset();
  options.retry.max_attempts = 1;
  const absl::Status status = Ask(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it may want TLS"));
}

TEST_F(ClientTlsTest, MutualTls) {
  Serve(ca_.Issue(), other_ca_.cert());
  RemoteOptions options = Options();
  options.retry.max_attempts = 2;  // A server that stops looks the same.
  options.retry.initial_backoff = absl::Milliseconds(1);
  const auto refused = [&] {
    const absl::Status status = Ask(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("or a client certificate"));
  };
  refused();
  EXPECT_EQ(retries_, 1) << "and no more";
  Show(ca_.Issue(), &options);  // Of an authority that the server does not trust.
  refused();
  Show(other_ca_.Issue(), &options);
  EXPECT_EQ(Ask(options), absl::OkStatus());
}

TEST_F(ClientTlsTest, RenewedCertificateIsUsedForTheNextConnection) {
  Serve(ca_.Issue(), other_ca_.cert());
  RemoteOptions options = Options();
  options.retry.initial_backoff = absl::Milliseconds(1);
  Show(ca_.Issue(), &options);
  const CertAndKey right = other_ca_.Issue();
  options.retry.on_retry = [&](const RetryNotice&) {
    ++retries_;
    folder_.Write("own.pem", right.cert);
    folder_.Write("own.key", right.key);
  };
  EXPECT_EQ(Ask(options), absl::OkStatus());
  EXPECT_EQ(retries_, 1);
}

// One client, which is not tried again by itself: each call takes the files as they are.
TEST_F(ClientTlsTest, AFileThatIsRepairedIsTakenByTheSameClient) {
  Serve(ca_.Issue());
  RemoteOptions options = Options();
  options.retry.max_attempts = 1;
  options.tls->ca_file = folder_.path("late.pem");
  Client client(MakeRemoteConnection(options));
  EXPECT_EQ(client.GetCapabilities().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client.CheckHealth().status().code(), absl::StatusCode::kInvalidArgument);
  folder_.Write("late.pem", ca_.cert());
  EXPECT_EQ(client.CheckHealth().status(), absl::OkStatus());
  EXPECT_EQ(client.GetCapabilities().status(), absl::OkStatus());
}

TEST_F(ClientTlsTest, AnotherAuthorityIsTakenByTheSameClient) {
  Serve(ca_.Issue());
  for (const int attempts : {1, 5}) {
    for (const bool by_health : {false, true}) {
      RemoteOptions options = Options();
      options.retry.max_attempts = attempts;
      options.tls->ca_file = folder_.Write("changing.pem", other_ca_.cert());
      Client client(MakeRemoteConnection(options));
      const absl::Status wrong =
          by_health ? client.CheckHealth().status() : client.GetCapabilities().status();
      EXPECT_EQ(wrong.code(), absl::StatusCode::kUnavailable) << wrong;
      folder_.Write("changing.pem", ca_.cert());
      EXPECT_EQ(client.GetCapabilities().status(), absl::OkStatus())
          << attempts << " attempts, by health: " << by_health;
    }
  }
}

TEST_F(ClientTlsTest, FilesThatCannotBeUsedAreNamedAtEachCall) {
  Serve(ca_.Issue());
  const CertAndKey own = other_ca_.Issue();
  const std::string cert = folder_.Write("cert.pem", own.cert);
  const std::string key = folder_.Write("key.pem", own.key);
  const std::string none = folder_.path("none");
  const std::string text = folder_.Write("text", "not PEM\n");
  struct Case {
    TlsOptions tls;
    std::string file;
    const char* words;
  };
  const Case cases[] = {
      {{none, "", "", ""}, none, "No such file"},
      {{folder_.path("."), "", "", ""}, folder_.path("."), "not a regular file"},
      {{text, "", "", ""}, text, "no certificate in PEM"},
      {{ca_file_, none, key, ""}, none, "No such file"},
      {{ca_file_, text, key, ""}, text, "no certificate in PEM"},
      {{ca_file_, cert, none, ""}, none, "No such file"},
      {{ca_file_, cert, text, ""}, text, "no private key in PEM"},
      {{ca_file_, cert, folder_.Write("other.pem", ca_.Issue().key), ""},
       "other.pem",
       "not the key of the certificate"},
      {{ca_file_, cert, "", ""}, "", "need each other"},
      {{ca_file_, "", key, ""}, "", "need each other"},
  };
  for (const Case& bad : cases) {
    RemoteOptions options = Options();
    options.tls = bad.tls;
    Client client(MakeRemoteConnection(options));
    for (const absl::Status& status :
         {client.GetCapabilities().status(), client.CheckHealth().status(),
          client.Rewrite(ReadFile(kMnistPath), MnistOptions()).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(bad.file), HasSubstr(bad.words)));
    }
  }
}

TEST(OtherVersionTest, ServerWithoutOurServiceSaysSoAtOnce) {
  ServerOptions server_options;
  server_options.has_service = false;
  const TestServer server(server_options);
  RemoteOptions options;
  options.target = server.target();
  int retries = 0;
  options.retry.on_retry = [&](const RetryNotice&) { ++retries; };
  Client client(MakeRemoteConnection(options));
  options.unary_max_bytes = -1;
  Client streaming(MakeRemoteConnection(options));
  for (const absl::Status& status :
       {client.GetCapabilities().status(),
        client.Rewrite(ReadFile(kMnistPath), MnistOptions()).status(),
        streaming.Rewrite(ReadFile(kMnistPath), MnistOptions()).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(server.target()), HasSubstr("does not speak spillway.v1"),
                      HasSubstr("same major version")));
  }
  EXPECT_EQ(retries, 0);
}

}  // namespace
}  // namespace spillway
