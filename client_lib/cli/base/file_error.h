// Errors of reading and writing files, distinct from those of a rewrite (exit code 4).
#ifndef SPILLWAY_CLIENT_LIB_CLI_BASE_FILE_ERROR_H_
#define SPILLWAY_CLIENT_LIB_CLI_BASE_FILE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spillway::cli {

// Returns "cannot ACTION 'PATH': REASON; ADVICE", with the status code for `error_number` (an
// errno). `path` may be "-": the message then says standard input or output, depending on `action`.
absl::Status FileError(int error_number, absl::string_view action, absl::string_view path,
                       absl::string_view advice);

// The same for a file that core::ReadSmallFile does not read: `why` is its status.
absl::Status FileError(const absl::Status& why, absl::string_view path, absl::string_view advice);

bool IsFileError(const absl::Status& status);

// Whether the error is a closed pipe (EPIPE): `spillway ... | head`.
bool IsClosedPipe(const absl::Status& status);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_BASE_FILE_ERROR_H_
