// `spillway run`: runs a command with the rewritten graph.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_

#include "CLI/App.hpp"
#include "client_lib/cli/base/session.h"

namespace spillway::cli {

// Must live as long as the App.
void AddRunCommand(CLI::App* app, Session* session);

// Whether the command line is one of `run`. This is determined before parsing, since such a process
// must not start threads or change signal handling.
bool IsRunCommand(int argc, char** argv);

// Moves the arguments after the first "--" to session->command; they are not parsed. Returns the
// number of arguments left.
int TakeCommand(int argc, char** argv, Session* session);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_
