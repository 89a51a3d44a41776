#include <memory>

#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/graph_run.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/file_flags.h"

namespace spillway::cli {
namespace {

struct StripFlags {
  explicit StripFlags(CLI::App* command)
      : files(command, {/*patch=*/false, /*plan=*/false, /*trace=*/false}),
        connection(command, ConnectionFlags::Kind::kRewrite) {}

  const FileFlags files;
  const ConnectionFlags connection;
};

}  // namespace

void AddStripCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "strip",
      "Removes Spillway's edits from a graph. The result is the original file, byte for byte (in "
      "text form: the same graph, printed again). A file without such edits is copied unchanged.");
  auto flags = std::make_shared<StripFlags>(command);
  command->footer("Example:\n  spillway strip rewritten.pb -o original.pb");
  command->final_callback([flags, session] {
    session->run = [flags, session]() -> absl::StatusOr<ExitCode> {
      v1::RewriteOptions options;
      options.mutable_strip();
      return RunOnGraph(flags->files.files(), std::move(options), flags->connection, *session);
    };
  });
}

}  // namespace spillway::cli
