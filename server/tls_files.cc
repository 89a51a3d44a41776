#include "server/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace spillway::server {
namespace {

// A bundle of all CAs of the web has about 200 KiB.
constexpr int64_t kMaxFileBytes = 4 << 20;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::Status Fault(const char* flag, const std::string& file, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(flag, " ", file, ": ", what));
}

absl::StatusOr<std::string> ReadFile(const char* flag, const std::string& name) {
  struct stat info = {};
  if (stat(name.c_str(), &info) != 0) return Fault(flag, name, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return Fault(flag, name, "not a regular file");
  if (info.st_size > kMaxFileBytes) {
    return Fault(flag, name, absl::StrCat("has ", info.st_size, " bytes, too many for PEM"));
  }
  std::ifstream file(name, std::ios::binary);
  if (!file) return Fault(flag, name, std::strerror(errno));
  std::string content(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return Fault(flag, name, "cannot be read");
  return content;
}

Bio Wrap(const std::string& content) {
  return Bio(BIO_new_mem_buf(content.data(), static_cast<int>(content.size())), &BIO_free);
}

// All certificates in `content`; something between them that is cut off is an error.
absl::StatusOr<std::vector<Certificate>> Certificates(const char* flag, const std::string& file,
                                                      const std::string& content) {
  const Bio bio = Wrap(content);
  std::vector<Certificate> all;
  ERR_clear_error();
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(one, &X509_free);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) return Fault(flag, file, "a certificate in it is damaged");
  if (all.empty()) return Fault(flag, file, "holds no certificate in PEM format");
  return all;
}

// No passphrase: there is nobody to ask.
int RefusePassphrase(char*, int, int, void*) { return -1; }

absl::StatusOr<Key> PrivateKey(const std::string& file, const std::string& content) {
  const Bio bio = Wrap(content);
  ERR_clear_error();
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &RefusePassphrase, nullptr), &EVP_PKEY_free);
  ERR_clear_error();
  if (key == nullptr) {
    return Fault("--tls-key", file, "holds no private key in PEM format without passphrase");
  }
  return key;
}

// Gives them to OpenSSL as gRPC will. What it refuses depends on the machine's security level:
// short keys and weak signatures, also in the certificates between the server's and its CA.
absl::Status CheckUsable(const TlsFiles& files, const std::vector<Certificate>& chain,
                         EVP_PKEY* key) {
  const absl::Cleanup no_trace = [] { ERR_clear_error(); };
  const auto refused = [](const char* flag, const std::string& file) {
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    return Fault(
        flag, file,
        absl::StrCat("OpenSSL refuses it (", reason == nullptr ? "no reason given" : reason,
                     "); get one with a longer key or a stronger signature"));
  };
  ERR_clear_error();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                                  &SSL_CTX_free);
  if (context == nullptr) return refused("--tls-cert", files.cert);
  if (SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return refused("--tls-cert", files.cert);
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) {
      return refused("--tls-cert", files.cert);
    }
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1) return refused("--tls-key", files.key);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsMaterial> LoadTlsFiles(const TlsFiles& files) {
  TlsMaterial material;
  absl::StatusOr<std::string> content = ReadFile("--tls-cert", files.cert);
  if (!content.ok()) return content.status();
  material.cert = *std::move(content);
  content = ReadFile("--tls-key", files.key);
  if (!content.ok()) return content.status();
  material.key = *std::move(content);
  const auto chain = Certificates("--tls-cert", files.cert, material.cert);
  if (!chain.ok()) return chain.status();
  const absl::StatusOr<Key> key = PrivateKey(files.key, material.key);
  if (!key.ok()) return key.status();
  if (X509_check_private_key(chain->front().get(), key->get()) != 1) {
    ERR_clear_error();
    return Fault("--tls-key", files.key,
                 absl::StrCat("is not the key of the certificate in ", files.cert,
                              " (--tls-cert), which is the first one there"));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(chain->front().get())) < 0) {
    return Fault("--tls-cert", files.cert, "the certificate has expired; get a new one");
  }
  if (absl::Status status = CheckUsable(files, *chain, key->get()); !status.ok()) return status;
  if (!files.client_ca.empty()) {
    content = ReadFile("--tls-client-ca", files.client_ca);
    if (!content.ok()) return content.status();
    material.client_ca = *std::move(content);
    const auto roots = Certificates("--tls-client-ca", files.client_ca, material.client_ca);
    if (!roots.ok()) return roots.status();
  }
  return material;
}

}  // namespace spillway::server
