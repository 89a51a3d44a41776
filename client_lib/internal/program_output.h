// The output of another program, run to query or convert something. No shell is involved, and the
// wait is always bounded.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_PROGRAM_OUTPUT_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_PROGRAM_OUTPUT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/internal/child_wait.h"

namespace spillway::internal {

// The result of a program.
struct ProgramRun {
  enum class End { kDone, kNoProgram, kFailed, kLate };
  End end = End::kNoProgram;
  std::string output;  // Its standard output; not all of it if it is late or failed.
};

// Runs `command`, whose first word is looked up in the absolute folders of PATH. It fails if it
// ends with a nonzero exit code or prints more than 64 KiB, and is late if it has not ended by the
// deadline. If it prints too much or is late, its whole process group is killed.
//
// May be called while other threads run. Returns at most kReapTime after the deadline.
ProgramRun RunProgram(const std::vector<std::string>& command, const Deadline& deadline);

// Returns its standard output, or nothing unless it is done.
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
