// TLS and mTLS from a client's view, and certificates that change under a running server.
#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/server_fixture.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using test_certs::CertAndKey;
using test_certs::TempFolder;
using test_certs::TestCa;

class TlsTest : public ServerFixture {
 protected:
  void SetUp() override {}

  // Starts with TLS; `mutual`: clients must show a certificate of client_ca_.
  void StartTls(bool mutual) {
    Options options = TestOptions();
    options.clock = &clock_;
    Write(server_ca_.Issue());
    options.tls.cert = folder_.path("cert.pem");
    options.tls.key = folder_.path("key.pem");
    if (mutual) options.tls.client_ca = folder_.Write("client_ca.pem", client_ca_.cert());
    Start(options);
  }

  void Write(const CertAndKey& pair) {
    folder_.Write("cert.pem", pair.cert);
    folder_.Write("key.pem", pair.key);
  }

  // A call on a new connection by a client that trusts `ca` and presents `own`.
  grpc::Status Call(const std::string& ca, const CertAndKey& own = {}) {
    return CallWith(grpc::SslCredentials({ca, own.key, own.cert}));
  }
  grpc::Status CallWith(const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub =
        v1::RewriteService::NewStub(grpc::CreateCustomChannel(address(), credentials, arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    v1::GetCapabilitiesResponse response;
    return stub->GetCapabilities(&context, {}, &response);
  }

  // Whether a client limited to `version` completes a handshake.
  bool Handshake(int version) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    // OpenSSL itself refuses old versions unless its security level is lowered.
    SSL_CTX_set_cipher_list(context.get(), "DEFAULT:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context.get(), version);
    const unsigned char http2[] = "\x02h2";
    SSL_CTX_set_alpn_protos(context.get(), http2, sizeof(http2) - 1);
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new_ssl_connect(context.get()),
                                                            &BIO_free_all);
    BIO_set_conn_hostname(bio.get(), address().c_str());
    return BIO_do_handshake(bio.get()) == 1;
  }

  // Passes the interval during which the files are not checked.
  void PassLookInterval() { clock_.Advance(absl::Seconds(1)); }

  const TempFolder folder_;
  const TestCa server_ca_{"server CA"};
  const TestCa client_ca_{"client CA"};
};

TEST_F(TlsTest, ServesWhoTrustsItsCa) {
  StartTls(/*mutual=*/false);
  EXPECT_TRUE(Call(server_ca_.cert()).ok()) << Call(server_ca_.cert()).error_message();
  EXPECT_EQ(Call(client_ca_.cert()).error_code(), StatusCode::UNAVAILABLE) << "another CA";
  EXPECT_EQ(CallWith(grpc::InsecureChannelCredentials()).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Call(server_ca_.cert()).ok()) << "the server goes on";
}

TEST_F(TlsTest, MutualTlsWantsACertificateOfTheRightCa) {
  StartTls(/*mutual=*/true);
  EXPECT_TRUE(Call(server_ca_.cert(), client_ca_.Issue()).ok());
  EXPECT_EQ(Call(server_ca_.cert()).error_code(), StatusCode::UNAVAILABLE) << "none";
  EXPECT_EQ(Call(server_ca_.cert(), server_ca_.Issue()).error_code(), StatusCode::UNAVAILABLE)
      << "one of another CA";
  test_certs::CertRequest expired;
  expired.days = -1;
  EXPECT_EQ(Call(server_ca_.cert(), client_ca_.Issue(expired)).error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Call(server_ca_.cert(), client_ca_.Issue()).ok()) << "the server goes on";
}

TEST_F(TlsTest, Tls12IsTheOldestTaken) {
  StartTls(/*mutual=*/false);
  EXPECT_TRUE(Handshake(TLS1_3_VERSION));
  EXPECT_TRUE(Handshake(TLS1_2_VERSION));
  EXPECT_FALSE(Handshake(TLS1_1_VERSION));
}

TEST_F(TlsTest, ChangedCertificatesAreTakenWithoutARestart) {
  StartTls(/*mutual=*/false);
  ASSERT_TRUE(Call(server_ca_.cert()).ok());
  const TestCa next_ca("next CA");
  const CertAndKey next = next_ca.Issue();
  // In the middle of a rotation: the new certificate with the old key. Connections still work.
  folder_.Write("cert.pem", next.cert);
  PassLookInterval();
  EXPECT_TRUE(Call(server_ca_.cert()).ok());
  EXPECT_FALSE(Call(next_ca.cert()).ok());
  folder_.Write("key.pem", next.key);
  EXPECT_TRUE(Call(server_ca_.cert()).ok()) << "not looked at yet";
  PassLookInterval();
  EXPECT_TRUE(Call(next_ca.cert()).ok());
  EXPECT_FALSE(Call(server_ca_.cert()).ok()) << "the old one is gone";
}

TEST_F(TlsTest, ChangedClientCaIsTakenWithoutARestart) {
  StartTls(/*mutual=*/true);
  ASSERT_TRUE(Call(server_ca_.cert(), client_ca_.Issue()).ok());
  const TestCa next_ca("next CA");
  const CertAndKey next = next_ca.Issue();
  EXPECT_FALSE(Call(server_ca_.cert(), next).ok());
  folder_.Write("client_ca.pem", next_ca.cert());
  PassLookInterval();
  EXPECT_TRUE(Call(server_ca_.cert(), next).ok());
  EXPECT_FALSE(Call(server_ca_.cert(), client_ca_.Issue()).ok()) << "no longer trusted";
}

TEST_F(TlsTest, BadFilesAreErrorsBeforeAnythingListens) {
  Options options = TestOptions();
  options.tls.cert = folder_.path("none");
  options.tls.key = folder_.path("none");
  EXPECT_EQ(Server::BuildAndStart(options).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace spillway::server
