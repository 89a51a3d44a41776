// `spillway run`: runs a command with the rewritten graph.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_

#include <string>
#include <vector>

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

// Of a command line of `run` that cannot be parsed: the words that still apply, for another
// attempt. A flag may be misspelled, or of a newer version, and the job runs nevertheless. Empty if
// no command or no graph is given: nothing can run.
std::vector<std::string> RestOfCommandLine(const std::vector<std::string>& words,
                                           const Session& session);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_RUN_COMMAND_H_
