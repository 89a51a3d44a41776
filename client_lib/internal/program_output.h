// What another program prints: asked for information, or to put one form into another. No shell
// stands between, and nothing that the program does or does not do keeps us waiting.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_PROGRAM_OUTPUT_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_PROGRAM_OUTPUT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/internal/child_wait.h"

namespace spillway::internal {

// Runs `command`, whose first word is looked for in the absolute folders of PATH, and returns its
// standard output; nothing if there is no such program, if it fails, prints more than 64 KiB or has
// not ended by the deadline. Then it is killed, with all that it started in its process group.
//
// May be called while there are other threads. At most kReapTime after the deadline it returns.
absl::optional<std::string> OutputOf(const std::vector<std::string>& command,
                                     const Deadline& deadline);

// The same of a program that is given `input`, and may print `max_output` bytes.
absl::optional<std::string> FilteredBy(const std::vector<std::string>& command,
                                       absl::string_view input, size_t max_output,
                                       const Deadline& deadline);

// Whether the two above would find a program of that name.
bool IsProgramInPath(const std::string& name);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_PROGRAM_OUTPUT_H_
