// What one run of the program has, whatever its command.
#ifndef SPILLWAY_CLIENT_LIB_CLI_SESSION_H_
#define SPILLWAY_CLIENT_LIB_CLI_SESSION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client_lib/cli/exit_code.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

struct Session {
  // Cancelled by SIGINT and SIGTERM.
  CancellationToken cancellation;

  // `run` alone: what follows "--", the command line of another program.
  std::vector<std::string> command;

  // What the command line asked for; set by the command it named. An error is printed by app.cc,
  // and its exit code is ExitCodeOf.
  std::function<absl::StatusOr<ExitCode>()> run;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_SESSION_H_
