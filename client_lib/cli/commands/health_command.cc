#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/flags/connection_flags.h"

namespace spillway::cli {
namespace {

struct HealthFlags {
  explicit HealthFlags(CLI::App* command) : connection(command, ConnectionFlags::Kind::kProbe) {}

  std::string service;
  bool json = false;
  ConnectionFlags connection;
};

}  // namespace

void AddHealthCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "health",
      "Asks a server whether it serves. Prints SERVING, NOT_SERVING, SERVICE_UNKNOWN or UNKNOWN. "
      "The exit code is 0 for SERVING, 1 for the others, and 5 if there is no answer.");
  auto flags = std::make_shared<HealthFlags>(command);
  command
      ->add_option("--service", flags->service,
                   "The service to ask about, such as spillway.v1.RewriteService. [default: the "
                   "server as a whole]")
      ->type_name("NAME");
  command->add_flag("--json", flags->json, "Prints JSON: {\"status\": \"SERVING\"}.")
      ->group("What to write");
  command->footer("Example:\n  spillway health --server host:7070 --timeout 2s");
  command->final_callback([flags, session] {
    session->run = [flags, session]() -> absl::StatusOr<ExitCode> {
      absl::StatusOr<CallOptions> call = flags->connection.MakeCall(*session);
      if (!call.ok()) return call.status();
      const auto status = flags->connection.Connect().CheckHealth(flags->service, *call);
      if (!status.ok()) return status.status();
      const absl::string_view name = ServingStatusName(*status);
      std::cout << (flags->json ? absl::StrCat("{\"status\": \"", name, "\"}\n")
                                : absl::StrCat(name, "\n"));
      return *status == ServingStatus::kServing ? ExitCode::kDone : ExitCode::kNotServing;
    };
  });
}

}  // namespace spillway::cli
