#include "server/net/tls_files.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/pem.h"
#include "rewrite_core/base/small_file.h"

namespace spillway::server {
namespace {

absl::Status Fault(const char* flag, const std::string& file, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(flag, " ", file, ": ", what));
}

absl::Status Read(const char* flag, const std::string& name, std::string* content) {
  absl::StatusOr<std::string> read = core::ReadSmallFile(name, core::kMaxPemFileBytes);
  if (!read.ok()) return Fault(flag, name, read.status().message());
  *content = *std::move(read);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsMaterial> LoadTlsFiles(const TlsFiles& files) {
  TlsMaterial material;
  absl::Status status = Read("--tls-cert", files.cert, &material.cert);
  status.Update(Read("--tls-key", files.key, &material.key));
  if (!status.ok()) return status;
  const auto fault = core::FindKeyPairFault(material.cert, material.key,
                                            absl::StrCat(files.cert, " (--tls-cert)"));
  if (fault.has_value()) {
    return fault->of_key ? Fault("--tls-key", files.key, fault->what)
                         : Fault("--tls-cert", files.cert, fault->what);
  }
  if (files.client_ca.empty()) return material;
  status = Read("--tls-client-ca", files.client_ca, &material.client_ca);
  if (!status.ok()) return status;
  status = core::CheckCertificates(material.client_ca);
  if (!status.ok()) return Fault("--tls-client-ca", files.client_ca, status.message());
  return material;
}

}  // namespace spillway::server
