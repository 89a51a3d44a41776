// Errors in the contents of files. The errors for files named by a server's flags are in
// tests/server/net/tls_files_test.cc, and for those named by a client's options in
// tests/client_lib/tls_test.cc.
#include "rewrite_core/base/pem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/test_certs.h"

namespace spillway::core {
namespace {

using test_certs::CertAndKey;
using test_certs::CertRequest;
using test_certs::TempFolder;
using test_certs::TestCa;
using ::testing::HasSubstr;

class PemTest : public ::testing::Test {
 protected:
  void ExpectFault(const std::string& cert, const std::string& key, bool of_key,
                   const std::string& words) {
    const auto fault = FindKeyPairFault(cert, key, "THE CERTIFICATE");
    ASSERT_TRUE(fault.has_value()) << words;
    EXPECT_EQ(fault->of_key, of_key) << fault->what;
    EXPECT_THAT(fault->what, HasSubstr(words));
  }

  const TestCa ca_{"test CA"};
  const CertAndKey pair_ = ca_.Issue();
};

TEST_F(PemTest, WhatBelongsTogetherHasNoFault) {
  EXPECT_FALSE(FindKeyPairFault(pair_.cert, pair_.key, "x").has_value());
  EXPECT_FALSE(FindKeyPairFault(pair_.cert + ca_.cert(), pair_.key, "x").has_value());
  EXPECT_TRUE(CheckCertificates(ca_.cert() + pair_.cert).ok());
}

TEST_F(PemTest, EachFaultIsOfTheCertificateOrOfTheKey) {
  const CertAndKey other = ca_.Issue();
  ExpectFault("not PEM", pair_.key, false, "it holds no certificate");
  ExpectFault(pair_.cert, "not PEM", true, "it holds no private key");
  ExpectFault(pair_.cert, other.key, true, "not the key of the certificate in THE CERTIFICATE");
  CertRequest request;
  request.days = -1;
  const CertAndKey old = ca_.Issue(request);
  ExpectFault(old.cert, old.key, false, "expired");
  request = CertRequest();
  request.rsa_bits = 1024;
  const CertAndKey small = ca_.Issue(request);
  ExpectFault(small.cert, small.key, false, "OpenSSL refuses it");
  // The first of several is used, and the others are also checked.
  ExpectFault(pair_.cert + small.cert, pair_.key, false, "OpenSSL refuses it");
  ExpectFault(ca_.cert() + pair_.cert, pair_.key, true, "which is the first one there");
}

TEST_F(PemTest, ACertificateThatIsCutOffIsDamaged) {
  for (const size_t size : {pair_.cert.size() / 2, pair_.cert.size() - 10}) {
    const std::string cut = pair_.cert.substr(0, size);
    EXPECT_EQ(CheckCertificates(cut).message(), "a certificate in it is damaged");
    EXPECT_EQ(CheckCertificates(pair_.cert + cut).message(), "a certificate in it is damaged");
  }
}

}  // namespace
}  // namespace spillway::core
