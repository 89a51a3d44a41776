// `spillway apply`.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_APPLY_COMMAND_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_APPLY_COMMAND_H_

#include "CLI/App.hpp"
#include "client_lib/cli/base/session.h"

namespace spillway::cli {

// Adds the command to `app`. When the command line names it, it sets session->run. `session` must
// outlive `app`.
void AddApplyCommand(CLI::App* app, Session* session);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_APPLY_COMMAND_H_
