#include "client_lib/cli/rewrite_command.h"

#include <memory>

#include "client_lib/cli/connection_flags.h"
#include "client_lib/cli/graph_run.h"
#include "client_lib/cli/option_flags.h"

namespace spillway::cli {
namespace {

constexpr char kFooter[] =
    "Lists (A,B,...) may also be given by repeating the flag. A comma inside an item is written\n"
    "\\, : the regular expression a{1,2} is given as 'a{1\\,2}'.\n"
    "\n"
    "Examples:\n"
    "  spillway rewrite graph.pb -o out.pb --optimizer-scopes gradients,Momentum\n"
    "  spillway rewrite graph.pb -o out.pb --strategy scope --optimizer-scopes gradients \\\n"
    "      --lb 3 --ctrld-strategy direct_order --feed images=128,224,224,3\n"
    "  spillway rewrite graph.pb --optimizer-scopes gradients --report - | jq .devices\n"
    "  spillway rewrite - -o - --server host:8500 --optimizer-scopes gradients <in.pb >out.pb";

struct Flags {
  explicit Flags(CLI::App* command) : options(command), connection(command, false) {}

  GraphFiles files;
  OptionFlags options;
  ConnectionFlags connection;
};

void AddFileFlags(CLI::App* command, GraphFiles* files) {
  command->add_option("IN", files->input, "The graph: a serialized GraphDef. - is standard input.")
      ->required()
      ->type_name("");
  constexpr char kGroup[] = "What to write";
  command
      ->add_option("-o,--output", files->output,
                   "The rewritten graph. - is standard output. May be left out if --report or "
                   "--patch is given.")
      ->type_name("FILE")
      ->group(kGroup);
  command
      ->add_option("--report", files->report,
                   "What was done and why, as JSON. - is standard output.")
      ->type_name("FILE")
      ->group(kGroup);
  command
      ->add_option("--patch", files->patch,
                   "The same rewrite as a list of edits, as JSON. - is standard output.")
      ->type_name("FILE")
      ->group(kGroup);
  command->add_flag("--quiet", files->quiet, "No summary on standard error.")->group(kGroup);
}

}  // namespace

void AddRewriteCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand("rewrite",
                                          "Inserts swap-out and swap-in nodes into a TensorFlow "
                                          "training graph, so that tensors wait in "
                                          "host memory between a far-apart producer and consumer. "
                                          "Runs in this process, or on a server.");
  auto flags = std::make_shared<Flags>(command);
  AddFileFlags(command, &flags->files);
  command->footer(kFooter);
  command->final_callback([flags, session] {
    session->run = [flags, session]() -> absl::StatusOr<ExitCode> {
      absl::StatusOr<v1::RewriteOptions> options = flags->options.Build();
      if (!options.ok()) return options.status();
      return RunOnGraph(flags->files, *std::move(options), flags->connection, *session);
    };
  });
}

}  // namespace spillway::cli
