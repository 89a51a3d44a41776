// Becoming the command that `spillway run` was given.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_EXEC_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_EXEC_H_

#include <signal.h>

#include <string>
#include <vector>

#include "client_lib/cli/exit_code.h"

namespace spillway::cli {

// While it lives, writing to a closed pipe is an error and ends nothing; afterwards it is as the
// process got it from its parent, so that the command finds what it would have found.
class IgnoredSigpipe {
 public:
  IgnoredSigpipe();
  ~IgnoredSigpipe();
  IgnoredSigpipe(const IgnoredSigpipe&) = delete;
  IgnoredSigpipe& operator=(const IgnoredSigpipe&) = delete;

 private:
  struct sigaction inherited_;
};

// 0 if a program `name` is found as execvp would find it, otherwise the errno: ENOENT if there is
// none, EACCES if it may not be executed.
int FindProgram(const std::string& name);

// Replaces this process by `command` (not empty); its environment is this process's. Returns only
// where that fails, with the errno.
int ExecCommand(const std::vector<std::string>& command);

// Says on standard error that `name` cannot be run, because of `error`. Gives the exit code, the
// one that shells have for it.
ExitCode ReportNotRun(const std::string& name, int error);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_EXEC_H_
