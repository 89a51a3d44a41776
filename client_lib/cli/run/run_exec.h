// Executes the command of `spillway run` in place of this process.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_EXEC_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_EXEC_H_

#include <signal.h>

#include <string>
#include <vector>

#include "client_lib/cli/base/exit_code.h"

namespace spillway::cli {

// While it lives, writing to a closed pipe is an error and does not end the process; its destructor
// restores the inherited behaviour, so that the command starts with the same signal settings.
class IgnoredSigpipe {
 public:
  IgnoredSigpipe();
  ~IgnoredSigpipe();
  IgnoredSigpipe(const IgnoredSigpipe&) = delete;
  IgnoredSigpipe& operator=(const IgnoredSigpipe&) = delete;

 private:
  struct sigaction inherited_;
};

// Looks up the program `name` like execvp. Returns 0 if it is found, otherwise the errno: ENOENT if
// it is missing, EACCES if it may not be executed.
int FindProgram(const std::string& name);

// Replaces this process by `command` (not empty), with the same environment. Returns only on
// failure, with the errno.
int ExecCommand(const std::vector<std::string>& command);

// Reports on standard error that `name` cannot be run because of `error`. Returns the exit code
// that shells use for it.
ExitCode ReportNotRun(const std::string& name, int error);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_EXEC_H_
