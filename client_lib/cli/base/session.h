// The state of one run of the program, for every command.
#ifndef SPILLWAY_CLIENT_LIB_CLI_BASE_SESSION_H_
#define SPILLWAY_CLIENT_LIB_CLI_BASE_SESSION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client_lib/cli/base/exit_code.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

struct Session {
  // Cancelled by SIGINT and SIGTERM.
  CancellationToken cancellation;

  // `run` only: the command line after "--", of another program.
  std::vector<std::string> command;

  // `run` only: the error of its command line, of which then only its RestOfCommandLine is known.
  // OK: all of it is.
  absl::Status usage;

  // Runs the command; set by the command that the command line names. app.cc prints an error, whose
  // exit code is ExitCodeOf.
  std::function<absl::StatusOr<ExitCode>()> run;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_BASE_SESSION_H_
