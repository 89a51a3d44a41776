// Certificates and keys in PEM files: read and checked before gRPC gets them, since it finds faults
// only when a peer connects, and then tells nobody.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_TLS_FILES_H_
#define SPILLWAY_SERVER_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"

namespace spillway::server {

// Where they are; all empty: no TLS.
struct TlsFiles {
  std::string cert;       // --tls-cert: the server's certificate, then those between it and its CA.
  std::string key;        // --tls-key: its private key, not encrypted.
  std::string client_ca;  // --tls-client-ca: whose signature clients must show; empty: none.

  bool enabled() const { return !cert.empty(); }
};

// What is in them, PEM.
struct TlsMaterial {
  std::string cert;
  std::string key;
  std::string client_ca;
};

// Reads the files and checks that each holds what it should, that the key is that of the
// certificate, that the certificate has not expired, and that OpenSSL takes the chain and the key
// at the security level of this machine.
//
// Error: FAILED_PRECONDITION, one sentence that names the flag and the file.
// REQUIRES: files.enabled().
absl::StatusOr<TlsMaterial> LoadTlsFiles(const TlsFiles& files);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_TLS_FILES_H_
