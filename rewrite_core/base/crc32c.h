// CRC-32C (Castagnoli; RFC 3720, appendix B.4), which finds what a network or a disk has damaged,
// at many times the speed of a digest: 5 to 10 GB/s where the processor has an instruction for it.
// Nothing against who damages on purpose: that is TLS's.
//
// Abseil has one since its release of January 2023; Debian 12's is older.
#ifndef SPILLWAY_REWRITE_CORE_BASE_CRC32C_H_
#define SPILLWAY_REWRITE_CORE_BASE_CRC32C_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// The checksum of what `crc` is that of, followed by `bytes`. That of nothing is 0. Thread-safe.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

// The checksum of `bytes`. Looks at `stop` every few milliseconds. Errors: those of `stop`.
// Thread-safe.
absl::StatusOr<uint32_t> Crc32cOf(absl::string_view bytes, const StopToken& stop);

// ExtendCrc32c where the processor has no instruction for it.
uint32_t ExtendCrc32cByTable(uint32_t crc, absl::string_view bytes);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_CRC32C_H_
