// The program's exit status. Users' scripts depend on these numbers: never renumber.
#ifndef SPILLWAY_CLIENT_LIB_CLI_BASE_EXIT_CODE_H_
#define SPILLWAY_CLIENT_LIB_CLI_BASE_EXIT_CODE_H_

#include "absl/status/status.h"

namespace spillway::cli {

enum class ExitCode {
  kDone = 0,        // Also if there was nothing to do.
  kNotServing = 1,  // `health` only: the server answered, and does not serve.
  kDifferent = 1,   // `diff` only: the graphs differ.
  kUsage = 2,       // The command line or an option's value is invalid.
  kBadGraph = 3,    // The graph is invalid or too large.
  kFile = 4,        // A file cannot be read or written.
  kServer = 5,      // The server is unreachable, overloaded or too old, or rejects the caller.
  kStopped = 6,     // The timeout passed, or the program was interrupted.
  kInternal = 7,    // A bug in Spillway.
  kDoesNotFit = 8,  // No plan fits into the available memory; or no step (`simulate`).
  // It is unknown whether the step fits: the known part does. From `rewrite` with a strategy that
  // plans for a budget (the graph is still written), and from `simulate --require-fit`.
  kFitUnknown = 9,
  // `rewrite --keep-best`: the best plan of a search that was ended is written.
  kStoppedEarly = 10,

  // `run` only, with the shells' numbers. Otherwise `run` exits with its command's status.
  kCommandNotExecutable = 126,
  kCommandNotFound = 127,
};

// Returns the exit code for an error: by its reason (v1::ErrorReason) if it has one, otherwise by
// its code.
ExitCode ExitCodeOf(const absl::Status& status);

// The table of --help.
extern const char kExitCodeHelp[];

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_BASE_EXIT_CODE_H_
