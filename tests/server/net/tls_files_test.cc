#include "server/net/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using test_certs::CertAndKey;
using test_certs::CertRequest;
using test_certs::TempFolder;
using test_certs::TestCa;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsFilesTest : public ::testing::Test {
 protected:
  // Returns the error, which names `flag` and `file`.
  void ExpectFault(const TlsFiles& files, const std::string& flag, const std::string& file,
                   const std::string& what) {
    const absl::Status status = LoadTlsFiles(files).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(flag), HasSubstr(file), HasSubstr(what)));
  }

  const TempFolder folder_;
  const TestCa ca_{"test CA"};
  const CertAndKey pair_ = ca_.Issue();
  const std::string cert_ = folder_.Write("cert.pem", pair_.cert);
  const std::string key_ = folder_.Write("key.pem", pair_.key);
  const std::string ca_file_ = folder_.Write("ca.pem", ca_.cert());
};

TEST_F(TlsFilesTest, GoodFilesComeBackAsTheyAre) {
  const auto material = LoadTlsFiles({cert_, key_, ca_file_});
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_EQ(material->cert, pair_.cert);
  EXPECT_EQ(material->key, pair_.key);
  EXPECT_EQ(material->client_ca, ca_.cert());
  // A chain, and a bundle.
  const std::string chain = folder_.Write("chain.pem", pair_.cert + ca_.cert());
  EXPECT_TRUE(LoadTlsFiles({chain, key_, chain}).ok());
}

TEST_F(TlsFilesTest, MissingFilesAreNamed) {
  const std::string none = folder_.path("none");
  ExpectFault({none, key_, ""}, "--tls-cert", none, "No such file");
  ExpectFault({cert_, none, ""}, "--tls-key", none, "No such file");
  ExpectFault({cert_, key_, none}, "--tls-client-ca", none, "No such file");
  ExpectFault({folder_.path("."), key_, ""}, "--tls-cert", folder_.path("."), "not a regular file");
}

TEST_F(TlsFilesTest, WhatIsNotPemIsNamed) {
  const std::string text = folder_.Write("text", "not PEM\n");
  const std::string empty = folder_.Write("empty", "");
  for (const std::string& file : {text, empty, key_}) {
    ExpectFault({file, key_, ""}, "--tls-cert", file, "no certificate in PEM");
    ExpectFault({cert_, key_, file}, "--tls-client-ca", file, "no certificate in PEM");
  }
  for (const std::string& file : {text, empty, cert_}) {
    ExpectFault({cert_, file, ""}, "--tls-key", file, "no private key in PEM");
  }
  const std::string cut = folder_.Write("cut", pair_.cert.substr(0, pair_.cert.size() / 2));
  ExpectFault({cut, key_, ""}, "--tls-cert", cut, "damaged");
  const std::string second_cut =
      folder_.Write("second", pair_.cert + ca_.cert().substr(0, ca_.cert().size() / 2));
  ExpectFault({second_cut, key_, ""}, "--tls-cert", second_cut, "damaged");
}

TEST_F(TlsFilesTest, KeyOfAnotherCertificateIsNamed) {
  const std::string other = folder_.Write("other.pem", ca_.Issue().key);
  ExpectFault({cert_, other, ""}, "--tls-key", other, "not the key of the certificate");
}

TEST_F(TlsFilesTest, ExpiredCertificateIsNamed) {
  CertRequest request;
  request.days = -1;
  const CertAndKey old = ca_.Issue(request);
  const std::string cert = folder_.Write("old.pem", old.cert);
  ExpectFault({cert, folder_.Write("old.key", old.key), ""}, "--tls-cert", cert, "expired");
}

TEST_F(TlsFilesTest, CertificateOfTomorrowIsNamed) {
  CertRequest request;
  request.not_yet = true;
  const CertAndKey early = ca_.Issue(request);
  const std::string cert = folder_.Write("early.pem", early.cert);
  ExpectFault({cert, folder_.Write("early.key", early.key), ""}, "--tls-cert", cert,
              "not valid yet");
}

// gRPC would not report these, and every handshake would fail.
TEST_F(TlsFilesTest, WhatOpenSslRefusesIsNamedWithItsReason) {
  CertRequest request;
  request.rsa_bits = 1024;
  const CertAndKey small = ca_.Issue(request);
  std::string cert = folder_.Write("small.pem", small.cert);
  ExpectFault({cert, folder_.Write("small.key", small.key), ""}, "--tls-cert", cert,
              "ee key too small");
  cert = folder_.Write("chain.pem", pair_.cert + small.cert);
  ExpectFault({cert, key_, ""}, "--tls-cert", cert, "ca key too small");
  request.rsa_bits = 2048;
  const CertAndKey large = ca_.Issue(request);
  EXPECT_TRUE(LoadTlsFiles({folder_.Write("large.pem", large.cert),
                            folder_.Write("large.key", large.key), ""})
                  .ok());
  request.sha1 = true;
  const CertAndKey weak = ca_.Issue(request);
  cert = folder_.Write("weak.pem", weak.cert);
  ExpectFault({cert, folder_.Write("weak.key", weak.key), ""}, "--tls-cert", cert, "md too weak");
}

TEST_F(TlsFilesTest, EncryptedKeyIsRefusedWithoutAsking) {
  // Truncated output of `openssl genpkey -algorithm ed25519 -aes256`: the header is enough.
  const std::string key = folder_.Write(
      "encrypted",
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg=\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n");
  ExpectFault({cert_, key, ""}, "--tls-key", key, "without passphrase");
}

}  // namespace
}  // namespace spillway::server
