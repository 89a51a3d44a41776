#include <unistd.h>

#include <iostream>
#include <memory>

#include "client_lib/cli/base/own_version.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/flags/color_flag.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/text/capabilities_text.h"

namespace spillway::cli {
namespace {

struct CapabilitiesFlags {
  explicit CapabilitiesFlags(CLI::App* command)
      : connection(command, ConnectionFlags::Kind::kCall) {}

  bool json = false;
  ConnectionFlags connection;
};

}  // namespace

void AddCapabilitiesCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "capabilities",
      "Prints the version, strategies, limits and machine presets of a server, or of this "
      "program.");
  auto flags = std::make_shared<CapabilitiesFlags>(command);
  command
      ->add_flag("--json", flags->json,
                 "Prints JSON: GetCapabilitiesResponse in rewrite_service.proto.")
      ->group("What to write");
  command->footer("Example:\n  spillway capabilities --server host:7070 --json | jq .limits");
  command->final_callback([flags, session] {
    session->run = [flags, session]() -> absl::StatusOr<ExitCode> {
      absl::StatusOr<CallOptions> call = flags->connection.MakeCall(*session);
      if (!call.ok()) return call.status();
      const auto response = flags->connection.Connect().GetCapabilities(*call);
      if (!response.ok()) return response.status();
      std::cout << (flags->json ? ToJsonWithoutZeros(*response)
                                : text::FormatCapabilities(
                                      *response, StyleOf(STDOUT_FILENO),
                                      flags->connection.HasServer() ? OwnVersion() : ""));
      return ExitCode::kDone;
    };
  });
}

}  // namespace spillway::cli
