#include "server/net/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/logging.h"

namespace spillway::server {
namespace {

// Reading and checking takes a millisecond; a flood of connections must not multiply it.
constexpr absl::Duration kReloadInterval = absl::Seconds(1);

// Called by gRPC's certificate fetcher. Thread-safe.
class Reloader {
 public:
  Reloader(TlsFiles files, TlsMaterial material, const Clock& clock)
      : files_(std::move(files)), clock_(clock), material_(std::move(material)) {}

  const TlsFiles& files() const { return files_; }

  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    absl::MutexLock lock(&mu_);
    const bool first = !handed_out_;
    if (!first && !Changed()) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {material_.key.c_str(), material_.cert.c_str()};
    // gRPC asserts that there are roots, even if no client certificate is requested.
    const std::string& roots = material_.client_ca.empty() ? material_.cert : material_.client_ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    handed_out_ = true;
    if (!first) Log(LogLevel::kInfo, "certificates reloaded", {{"file", files_.cert}});
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

 private:
  // Loads the content of the files if it has changed and is valid.
  bool Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::Time now = clock_.Now();
    if (now - checked_at_ < kReloadInterval) return false;
    checked_at_ = now;
    absl::StatusOr<TlsMaterial> found = LoadTlsFiles(files_);
    if (!found.ok()) {
      Log(LogLevel::kWarn, "certificates not reloaded: the previous ones stay in use",
          {{"error", found.status().message()}});
      return false;
    }
    if (found->cert == material_.cert && found->key == material_.key &&
        found->client_ca == material_.client_ca) {
      return false;
    }
    material_ = *std::move(found);
    return true;
  }

  const TlsFiles files_;
  const Clock& clock_;
  absl::Mutex mu_;
  TlsMaterial material_ ABSL_GUARDED_BY(mu_);
  absl::Time checked_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool handed_out_ ABSL_GUARDED_BY(mu_) = false;
};

grpc_ssl_certificate_config_reload_status FetchCertificates(
    void* reloader, grpc_ssl_server_certificate_config** config) {
  return static_cast<Reloader*>(reloader)->Fetch(config);
}

// The fetcher is only available in gRPC's C API, not in its C++ API.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(std::unique_ptr<Reloader> reloader)
      : reloader_(std::move(reloader)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                reloader_->files().client_ca.empty()
                    ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
                &FetchCertificates, reloader_.get()))) {}
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  const std::unique_ptr<Reloader> reloader_;  // Outlives the server: see Server::Parts.
  grpc_server_credentials* const credentials_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(const TlsFiles& files,
                                                                            const Clock& clock) {
  absl::StatusOr<TlsMaterial> material = LoadTlsFiles(files);
  if (!material.ok()) return material.status();
  return std::make_shared<TlsCredentials>(
      std::make_unique<Reloader>(files, *std::move(material), clock));
}

}  // namespace spillway::server
