// `spillway stats`: who swaps what, by one field of a server's journal.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_STATS_COMMAND_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_STATS_COMMAND_H_

#include "CLI/App.hpp"
#include "client_lib/cli/base/session.h"

namespace spillway::cli {

void AddStatsCommand(CLI::App* app, Session* session);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_STATS_COMMAND_H_
