// SHA-256 of large buffers, with a way to stop.
#ifndef SPILLWAY_SERVER_SHA256_H_
#define SPILLWAY_SERVER_SHA256_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::server {

inline constexpr size_t kSha256Bytes = 32;

// The digest of `bytes`, kSha256Bytes raw bytes. Looks at `stop` every few milliseconds. Errors:
// those of `stop`; INTERNAL if the crypto library fails.
absl::StatusOr<std::string> Sha256(absl::string_view bytes, const core::StopToken& stop);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_SHA256_H_
