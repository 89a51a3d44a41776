// The output of another program, run to query or convert something. No shell is involved, and
// whatever the program does, the wait is bounded.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_PROGRAM_OUTPUT_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_PROGRAM_OUTPUT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/internal/child_wait.h"

namespace spillway::internal {

// Runs `command`, whose first word is looked up in the absolute folders of PATH, and returns its
// standard output; nothing if there is no such program, or if it fails, prints more than 64 KiB or
// has not ended by the deadline. In the last two cases its whole process group is killed.
//
// May be called while other threads run. Returns at most kReapTime after the deadline.
absl::optional<std::string> OutputOf(const std::vector<std::string>& command,
                                     const Deadline& deadline);

// The same, but the program reads `input` and may print `max_output` bytes.
absl::optional<std::string> FilteredBy(const std::vector<std::string>& command,
                                       absl::string_view input, size_t max_output,
                                       const Deadline& deadline);

// Whether the functions above would find a program of that name.
bool IsProgramInPath(const std::string& name);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_PROGRAM_OUTPUT_H_
