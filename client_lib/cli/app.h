// The program `spillway` without its main: command line in, exit code out.
#ifndef SPILLWAY_CLIENT_LIB_CLI_APP_H_
#define SPILLWAY_CLIENT_LIB_CLI_APP_H_

#include "spillway/cancellation.h"

namespace spillway::cli {

// Runs the command line. Writes results to standard output, summary and errors to standard error.
int RunCommandLine(int argc, char** argv, const CancellationToken& cancellation);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_APP_H_
