// `spillway run`: runs a command with the rewritten graph.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_

#include "CLI/App.hpp"
#include "client_lib/cli/session.h"

namespace spillway::cli {

// Must live as long as the App.
void AddRunCommand(CLI::App* app, Session* session);

// Whether the command line is one of `run`: known before it is parsed, since such a process must
// not have another thread, nor signals of its own.
bool IsRunCommand(int argc, char** argv);

// Moves what follows the first "--" to session->command: it is not ours to parse. Returns how many
// arguments are left.
int TakeCommand(int argc, char** argv, Session* session);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_
