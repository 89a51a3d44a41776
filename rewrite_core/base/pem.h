// Certificates and keys in PEM files: read and checked before gRPC gets them, since it finds faults
// only when a peer connects, and then tells nobody. Not part of spillway_base: the core alone is
// built without OpenSSL.
//
// Every error is FAILED_PRECONDITION with no reason and a message that says what is wrong with
// "it", the file, for the caller to put the file's name and purpose before: `it holds no
// certificate in PEM format`.
//
// Thread safety: pure functions but for the file system.
#ifndef SPILLWAY_REWRITE_CORE_BASE_PEM_H_
#define SPILLWAY_REWRITE_CORE_BASE_PEM_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace spillway::core {

// What a regular file of at most 4 MiB holds. Errors: there is none, or it cannot be read.
absl::StatusOr<std::string> ReadPemFile(const std::string& name);

// That `pem` holds certificates, one at least, none of them damaged.
absl::Status CheckCertificates(const std::string& pem);

// A fault of a certificate or of its key.
struct KeyPairFault {
  bool of_key = false;  // Otherwise of the certificate.
  std::string what;
};

// That `cert` holds a certificate, and then those between it and its CA; that `key` holds its
// private key without passphrase; that it has not expired; and that OpenSSL takes the chain and the
// key at the security level of this machine. Nothing: all is well. `cert_name`: what to call the
// certificate's file where the key is that of another one.
absl::optional<KeyPairFault> FindKeyPairFault(const std::string& cert, const std::string& key,
                                              absl::string_view cert_name);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_PEM_H_
