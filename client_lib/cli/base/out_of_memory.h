// Failed allocations, for which the standard library throws, as ordinary errors.
#ifndef SPILLWAY_CLIENT_LIB_CLI_BASE_OUT_OF_MEMORY_H_
#define SPILLWAY_CLIENT_LIB_CLI_BASE_OUT_OF_MEMORY_H_

#include <new>
#include <stdexcept>

#include "absl/status/status.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {

inline constexpr char kOutOfMemory[] =
    "there is not enough memory for this; give it more (ulimit -v, the container's limit), or a "
    "smaller file";

// Returns what `work` returns, a Status or StatusOr; LIMIT_EXCEEDED if an allocation failed.
template <typename Work>
auto OrOutOfMemory(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // Of a string that could not be that long at all.
  }
  return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                     kOutOfMemory);
}

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_BASE_OUT_OF_MEMORY_H_
