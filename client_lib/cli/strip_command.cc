#include "client_lib/cli/strip_command.h"

#include <memory>

#include "client_lib/cli/connection_flags.h"
#include "client_lib/cli/graph_run.h"

namespace spillway::cli {
namespace {

struct Flags {
  explicit Flags(CLI::App* command) : connection(command, false) {}

  GraphFiles files;
  ConnectionFlags connection;
};

}  // namespace

void AddStripCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "strip",
      "Takes the edits of Spillway out of a graph again: the original file comes back, byte for "
      "byte. A graph without such edits comes back as it is.");
  auto flags = std::make_shared<Flags>(command);
  command
      ->add_option("IN", flags->files.input,
                   "The graph: a serialized GraphDef. - is standard input.")
      ->required()
      ->type_name("");
  constexpr char kGroup[] = "What to write";
  command->add_option("-o,--output", flags->files.output, "The graph. - is standard output.")
      ->required()
      ->type_name("FILE")
      ->group(kGroup);
  command->add_flag("--quiet", flags->files.quiet, "No summary on standard error.")->group(kGroup);
  command->footer("Example:\n  spillway strip rewritten.pb -o original.pb");
  command->final_callback([flags, session] {
    session->run = [flags, session]() -> absl::StatusOr<ExitCode> {
      v1::RewriteOptions options;
      options.mutable_strip();
      return RunOnGraph(flags->files, std::move(options), flags->connection, *session);
    };
  });
}

}  // namespace spillway::cli
