// `spillway help [COMMAND]` and `spillway version`.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_HELP_COMMAND_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_HELP_COMMAND_H_

#include <string>

#include "CLI/App.hpp"
#include "client_lib/cli/base/session.h"

namespace spillway::cli {

// Both must be added after the other commands.
void AddHelpCommand(CLI::App* app, Session* session);
void AddVersionCommand(CLI::App* app, Session* session);

// Returns `there is no command 'rewrit'; did you mean 'rewrite'?`
std::string NoSuchCommand(const CLI::App& app, const std::string& name);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_HELP_COMMAND_H_
