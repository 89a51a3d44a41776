// The subcommands, each in its file NAME_command.cc. Those with more to offer than this have a
// header of their own.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_ADD_COMMANDS_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_ADD_COMMANDS_H_

#include "CLI/App.hpp"
#include "client_lib/cli/base/session.h"

namespace spillway::cli {

// Each adds its command to `app`. When the command line names it, it sets session->run. `session`
// must outlive `app`.
void AddRewriteCommand(CLI::App* app, Session* session);
void AddApplyCommand(CLI::App* app, Session* session);
void AddStripCommand(CLI::App* app, Session* session);
void AddInspectCommand(CLI::App* app, Session* session);
void AddSimulateCommand(CLI::App* app, Session* session);
void AddExploreCommand(CLI::App* app, Session* session);
void AddPlotCommand(CLI::App* app, Session* session);
void AddDiffCommand(CLI::App* app, Session* session);
void AddCheckCommand(CLI::App* app, Session* session);
void AddStatsCommand(CLI::App* app, Session* session);
void AddAnonymizeCommand(CLI::App* app, Session* session);
void AddCapabilitiesCommand(CLI::App* app, Session* session);
void AddHealthCommand(CLI::App* app, Session* session);
void AddDoctorCommand(CLI::App* app, Session* session);

// Completes all commands of `app`.
void AddCompletionCommand(CLI::App* app, Session* session);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_ADD_COMMANDS_H_
