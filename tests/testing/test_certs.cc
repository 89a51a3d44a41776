#include "tests/testing/test_certs.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace spillway::test_certs {
namespace {

constexpr long kHour = 3600;
constexpr long kDay = 24 * kHour;

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

std::string ToString(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, size);
  BIO_free(bio);
  return text;
}

std::string Pem(X509* cert) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, cert);
  return ToString(bio);
}

std::string Pem(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  return ToString(bio);
}

void Extend(X509* cert, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  if (extension == nullptr) std::abort();
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

Certificate Blank(const std::string& common_name, EVP_PKEY* key, int days) {
  Certificate cert(X509_new(), &X509_free);
  X509_set_version(cert.get(), 2);  // Version 3 of X.509.
  unsigned char serial[8];
  RAND_bytes(serial, sizeof(serial));
  serial[0] &= 0x7f;
  BIGNUM* number = BN_bin2bn(serial, sizeof(serial), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert.get()));
  BN_free(number);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), (days < 0 ? 2 * days * kDay : -kHour));
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), days * kDay);
  X509_set_pubkey(cert.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  return cert;
}

}  // namespace

struct TestCa::Parts {
  Key key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  Certificate cert{nullptr, &X509_free};
};

TestCa::TestCa(const std::string& name) : parts_(std::make_unique<Parts>()) {
  EVP_PKEY* const key = parts_->key.get();
  parts_->cert = Blank(name, key, /*days=*/2);
  X509* const cert = parts_->cert.get();
  X509_set_issuer_name(cert, X509_get_subject_name(cert));
  Extend(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
  Extend(cert, cert, NID_key_usage, "critical,keyCertSign");
  X509_sign(cert, key, EVP_sha256());
  self_ = {Pem(cert), Pem(key)};
}

TestCa::~TestCa() = default;

CertAndKey TestCa::Issue(const CertRequest& request) const {
  const Key key(request.rsa_bits > 0 ? EVP_RSA_gen(request.rsa_bits) : EVP_EC_gen("P-256"),
                &EVP_PKEY_free);
  const Certificate cert = Blank(request.common_name, key.get(), request.days);
  if (request.not_yet) X509_gmtime_adj(X509_getm_notBefore(cert.get()), kDay / 2);
  X509_set_issuer_name(cert.get(), X509_get_subject_name(parts_->cert.get()));
  if (!request.names.empty()) {
    Extend(cert.get(), parts_->cert.get(), NID_subject_alt_name, request.names);
  }
  X509_sign(cert.get(), parts_->key.get(), request.sha1 ? EVP_sha1() : EVP_sha256());
  return {Pem(cert.get()), Pem(key.get())};
}

TempFolder::TempFolder() {
  std::string name = std::filesystem::temp_directory_path() / "spillway-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::Write(const std::string& name, const std::string& content) const {
  const std::string target = path(name);
  const std::string part = target + ".part";
  {
    std::ofstream file(part, std::ios::binary);
    file << content;
    if (!file.flush()) std::abort();
  }
  if (std::rename(part.c_str(), target.c_str()) != 0) std::abort();
  return target;
}

}  // namespace spillway::test_certs
