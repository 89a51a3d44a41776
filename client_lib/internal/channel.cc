#include "client_lib/internal/channel.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "rewrite_core/base/error.h"

namespace spillway::internal {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

constexpr char kAuthorities[] = "the certificate authorities";
constexpr char kCertificate[] = "the client certificate";
constexpr char kKey[] = "the key of the client certificate";

absl::Status Fault(const char* what, const std::string& file, absl::string_view why) {
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat(what, " ", core::Quoted(file), ": ", why),
                            {{"file", file}});
}

// `content` gets the file; nothing if there is none.
absl::Status Read(const char* what, const std::string& file, std::string* content) {
  if (file.empty()) return absl::OkStatus();
  struct stat info = {};
  if (stat(file.c_str(), &info) != 0) return Fault(what, file, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return Fault(what, file, "it is not a regular file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Fault(what, file, std::strerror(errno));
  content->assign(std::istreambuf_iterator<char>(stream), {});
  return absl::OkStatus();
}

Certificate FirstCertificate(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  return Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
}

Key PrivateKey(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };  // Nobody is asked.
  return Key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr), &EVP_PKEY_free);
}

// Whether the files hold what they should; `pem` is what is in them.
absl::Status Check(const TlsOptions& tls, const grpc::SslCredentialsOptions& pem) {
  const absl::Cleanup no_trace = [] { ERR_clear_error(); };
  if (!tls.ca_file.empty() && FirstCertificate(pem.pem_root_certs) == nullptr) {
    return Fault(kAuthorities, tls.ca_file, "it holds no certificate in PEM format");
  }
  if (tls.cert_file.empty()) return absl::OkStatus();
  const Certificate cert = FirstCertificate(pem.pem_cert_chain);
  if (cert == nullptr) {
    return Fault(kCertificate, tls.cert_file, "it holds no certificate in PEM format");
  }
  const Key key = PrivateKey(pem.pem_private_key);
  if (key == nullptr) {
    return Fault(kKey, tls.key_file, "it holds no private key in PEM format without passphrase");
  }
  if (X509_check_private_key(cert.get(), key.get()) != 1) {
    return Fault(
        kKey, tls.key_file,
        absl::StrCat("it is not the key of the certificate in ", core::Quoted(tls.cert_file)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const absl::optional<TlsOptions>& tls) {
  if (!tls.has_value()) return grpc::InsecureChannelCredentials();
  if (tls->cert_file.empty() != tls->key_file.empty()) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "a client certificate and its key need each other; give both or none",
                              {});
  }
  grpc::SslCredentialsOptions pem;
  absl::Status status = Read(kAuthorities, tls->ca_file, &pem.pem_root_certs);
  status.Update(Read(kCertificate, tls->cert_file, &pem.pem_cert_chain));
  status.Update(Read(kKey, tls->key_file, &pem.pem_private_key));
  if (status.ok()) status = Check(*tls, pem);
  if (!status.ok()) return status;
  return grpc::SslCredentials(pem);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const RemoteOptions& options) {
  const auto credentials = MakeCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  grpc::ChannelArguments arguments;
  // A report that lists every decision is larger than gRPC's 4 MiB. The server's answers are ours.
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  // gRPC would share connections, and their backoff, between channels of one target.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (options.tls.has_value() && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return grpc::CreateCustomChannel(options.target, *credentials, arguments);
}

}  // namespace spillway::internal
