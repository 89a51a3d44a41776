#include "rewrite_core/base/pem.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace spillway::core {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::Status Fault(absl::string_view what) { return absl::FailedPreconditionError(what); }

Bio Wrap(const std::string& content) {
  return Bio(BIO_new_mem_buf(content.data(), static_cast<int>(content.size())), &BIO_free);
}

// Reads all certificates in `pem`; a damaged one is an error.
absl::StatusOr<std::vector<Certificate>> Certificates(const std::string& pem) {
  const Bio bio = Wrap(pem);
  std::vector<Certificate> all;
  ERR_clear_error();
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(one, &X509_free);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) return Fault("a certificate in it is damaged");
  if (all.empty()) return Fault("it holds no certificate in PEM format");
  return all;
}

// No passphrase: there is no user to ask.
int RefusePassphrase(char*, int, int, void*) { return -1; }

Key PrivateKey(const std::string& pem) {
  const Bio bio = Wrap(pem);
  return Key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &RefusePassphrase, nullptr),
             &EVP_PKEY_free);
}

KeyPairFault Refused(bool of_key) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return {of_key,
          absl::StrCat("OpenSSL refuses it (", reason == nullptr ? "no reason given" : reason,
                       "); get one with a longer key or a stronger signature")};
}

// Passes them to OpenSSL as gRPC will. Its rejections depend on the machine's security level: short
// keys and weak signatures, also in the certificates between the first and its CA.
absl::optional<KeyPairFault> FindRefusal(const std::vector<Certificate>& chain, EVP_PKEY* key) {
  ERR_clear_error();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                                  &SSL_CTX_free);
  if (context == nullptr) return Refused(/*of_key=*/false);
  if (SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return Refused(/*of_key=*/false);
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) {
      return Refused(/*of_key=*/false);
    }
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1) return Refused(/*of_key=*/true);
  return absl::nullopt;
}

}  // namespace

absl::Status CheckCertificates(const std::string& pem) { return Certificates(pem).status(); }

absl::optional<KeyPairFault> FindKeyPairFault(const std::string& cert, const std::string& key,
                                              absl::string_view cert_name) {
  const absl::Cleanup no_trace = [] { ERR_clear_error(); };
  const auto chain = Certificates(cert);
  if (!chain.ok()) return KeyPairFault{/*of_key=*/false, std::string(chain.status().message())};
  const Key private_key = PrivateKey(key);
  if (private_key == nullptr) {
    return KeyPairFault{/*of_key=*/true,
                        "it holds no private key in PEM format without passphrase"};
  }
  if (X509_check_private_key(chain->front().get(), private_key.get()) != 1) {
    return KeyPairFault{/*of_key=*/true, absl::StrCat("it is not the key of the certificate in ",
                                                      cert_name, ", which is the first one there")};
  }
  if (X509_cmp_current_time(X509_get0_notAfter(chain->front().get())) < 0) {
    return KeyPairFault{/*of_key=*/false, "the certificate has expired; get a new one"};
  }
  if (X509_cmp_current_time(X509_get0_notBefore(chain->front().get())) > 0) {
    return KeyPairFault{/*of_key=*/false,
                        "the certificate is not valid yet; wait, or correct this machine's clock"};
  }
  return FindRefusal(*chain, private_key.get());
}

}  // namespace spillway::core
