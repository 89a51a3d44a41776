// CRC-32C (Castagnoli; RFC 3720, appendix B.4), which detects corruption by a network or a disk at
// many times the speed of a digest: 5 to 10 GB/s if the processor has an instruction for it. It
// does not protect against tampering, which is left to TLS.
//
// Abseil has one since its release of January 2023; the version in Debian 12 is older.
#ifndef SPILLWAY_REWRITE_CORE_BASE_CRC32C_H_
#define SPILLWAY_REWRITE_CORE_BASE_CRC32C_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// Extends `crc`, the checksum of the preceding bytes, by `bytes`. The checksum of no bytes is 0.
// Thread-safe.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

// The checksum of `bytes`. Polls `stop` every few milliseconds. Errors: those of `stop`.
// Thread-safe.
absl::StatusOr<uint32_t> Crc32cOf(absl::string_view bytes, const StopToken& stop);

// ExtendCrc32c for processors without an instruction for it.
uint32_t ExtendCrc32cByTable(uint32_t crc, absl::string_view bytes);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_CRC32C_H_
