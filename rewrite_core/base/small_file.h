// Files that people write by hand, and certificates: read whole, and never more than a limit, for
// any kind of file.
//
// Thread safety: a pure function except for the file system.
#ifndef SPILLWAY_REWRITE_CORE_BASE_SMALL_FILE_H_
#define SPILLWAY_REWRITE_CORE_BASE_SMALL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace spillway::core {

// Nothing that is written by hand is larger.
inline constexpr int64_t kMaxSmallFileBytes = 1 << 20;

// The contents of a regular file of at most `max_bytes`. It never waits: pipes and devices are
// refused. The message of an error refers to the file as "it", e.g. `it is not a regular file`, and
// the caller prepends the name and purpose. Its code is that of errno, or FAILED_PRECONDITION.
absl::StatusOr<std::string> ReadSmallFile(const std::string& name,
                                          int64_t max_bytes = kMaxSmallFileBytes);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_SMALL_FILE_H_
