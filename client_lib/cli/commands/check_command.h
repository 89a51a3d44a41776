// `spillway check`: compares a simulated step with a traced one after a run.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_CHECK_COMMAND_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_CHECK_COMMAND_H_

#include "CLI/App.hpp"
#include "client_lib/cli/base/session.h"

namespace spillway::cli {

// Adds the command to `app`. Both pointers must stay valid as long as the App is used.
void AddCheckCommand(CLI::App* app, Session* session);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_CHECK_COMMAND_H_
