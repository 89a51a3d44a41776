// The error for a request that exceeds a limit in bytes.
#ifndef SPILLWAY_SERVER_BASE_LIMIT_ERROR_H_
#define SPILLWAY_SERVER_BASE_LIMIT_ERROR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/error.h"

namespace spillway::server {

// Returns RESOURCE_EXHAUSTED (LIMIT_EXCEEDED). `message` names both numbers and says what to do.
inline absl::Status LimitError(absl::string_view message, int64_t value, int64_t limit) {
  return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED, message,
                     {{"value", absl::StrCat(value)}, {"limit", absl::StrCat(limit)}});
}

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_LIMIT_ERROR_H_
