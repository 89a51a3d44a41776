// Reads and checks certificates and keys in PEM files before gRPC gets them, since it only notices
// faults when a peer connects, and does not report them.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_NET_TLS_FILES_H_
#define SPILLWAY_SERVER_NET_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/base/options.h"

namespace spillway::server {

// The contents of the files, PEM.
struct TlsMaterial {
  std::string cert;
  std::string key;
  std::string client_ca;
};

// Reads the files and checks that each has the expected content, that the key matches the
// certificate, that the certificate has not expired, and that OpenSSL accepts the chain and the key
// at this machine's security level.
//
// Error: FAILED_PRECONDITION, one sentence that names the flag and the file.
// REQUIRES: files.enabled().
absl::StatusOr<TlsMaterial> LoadTlsFiles(const TlsFiles& files);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_NET_TLS_FILES_H_
