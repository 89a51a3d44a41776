// Certificates and keys in PEM files: checked before gRPC gets them, because gRPC only
// finds faults when a peer connects, and does not report them. Not part of spillway_base: the core
// alone is built without OpenSSL.
//
// Every error is FAILED_PRECONDITION without a reason, and its message refers to the file as "it";
// the caller prepends the file's name and purpose: `it holds no certificate in PEM format`.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_BASE_PEM_H_
#define SPILLWAY_REWRITE_CORE_BASE_PEM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace spillway::core {

// For ReadSmallFile. A bundle of all public CAs has about 200 KiB, or a MiB with comments.
inline constexpr int64_t kMaxPemFileBytes = 4 << 20;

// Checks that `pem` holds at least one certificate, and that none is damaged.
absl::Status CheckCertificates(const std::string& pem);

// A fault of a certificate or of its key.
struct KeyPairFault {
  bool of_key = false;  // Otherwise it is the certificate's.
  std::string what;
};

// Checks that `cert` holds a certificate, followed by those between it and its CA; that `key` holds
// its private key without passphrase; that it has not expired; and that OpenSSL accepts the chain
// and the key at the security level of this machine. Returns nullopt if so. `cert_name` is the
// certificate file's name, for a key that belongs to another certificate.
absl::optional<KeyPairFault> FindKeyPairFault(const std::string& cert, const std::string& key,
                                              absl::string_view cert_name);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_PEM_H_
