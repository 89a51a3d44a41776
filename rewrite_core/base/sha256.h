// SHA-256 of pieces and of large buffers, using OpenSSL. Not part of spillway_base, because most of
// its users need no OpenSSL.
#ifndef SPILLWAY_REWRITE_CORE_BASE_SHA256_H_
#define SPILLWAY_REWRITE_CORE_BASE_SHA256_H_

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

inline constexpr size_t kSha256Bytes = 32;

// Incremental SHA-256. Not thread-safe.
class Sha256 {
 public:
  Sha256();

  void Update(absl::string_view bytes);

  // The digest, kSha256Bytes raw bytes; empty if OpenSSL failed at any point. REQUIRES: called
  // once, last.
  std::string Finish();

 private:
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool ok_;
};

// INTERNAL: OpenSSL failed. `remedy`: advice for the user.
absl::Status NoSha256Error(absl::string_view remedy);

// The digest of `bytes`, kSha256Bytes raw bytes. Polls `stop` every few milliseconds. Errors: those
// of `stop`; INTERNAL if OpenSSL fails. Thread-safe.
absl::StatusOr<std::string> Sha256Of(absl::string_view bytes, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_SHA256_H_
