// What the program's exit status says. Users' scripts depend on these numbers: never renumber.
#ifndef SPILLWAY_CLIENT_LIB_CLI_EXIT_CODE_H_
#define SPILLWAY_CLIENT_LIB_CLI_EXIT_CODE_H_

#include <string>

#include "absl/status/status.h"

namespace spillway::cli {

enum class ExitCode {
  kDone = 0,        // Also when there was nothing to do.
  kNotServing = 1,  // `health` alone: the server answered, and does not serve.
  kDifferent = 1,   // `diff` alone: the graphs differ.
  kUsage = 2,       // The command line, or an option's value, is wrong.
  kBadGraph = 3,    // The graph is wrong, or too large.
  kFile = 4,        // A file cannot be read or written.
  kServer = 5,      // The server cannot be reached, is overloaded or too old.
  kStopped = 6,     // The timeout passed, or the program was interrupted.
  kInternal = 7,    // A bug of ours.
  kDoesNotFit = 8,  // No plan of swaps fits into the memory that there is; or no step (`simulate`).
  // Whether the step fits is not known: what is known of it does. Of `rewrite` with a strategy that
  // plans for a budget (the graph is written all the same), and of `simulate
  // --require-fit`.
  kFitUnknown = 9,

  // `run` alone; the numbers that shells have for them. Otherwise its command's own.
  kCommandNotExecutable = 126,
  kCommandNotFound = 127,
};

// The exit code for an error: by its reason (v1::ErrorReason) where it has one, else by its code.
ExitCode ExitCodeOf(const absl::Status& status);

// How an error is told: `MESSAGE [REASON]`, on one line.
std::string ErrorText(const absl::Status& status);

// The table of --help.
extern const char kExitCodeHelp[];

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_EXIT_CODE_H_
