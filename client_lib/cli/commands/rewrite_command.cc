#include <memory>
#include <string>

#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/graph_run.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/machine.h"
#include "client_lib/cli/flags/option_flags.h"
#include "client_lib/cli/flags/step_flags.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/cli/rewrite/stored_profile.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

constexpr char kRewriteFooter[] =
    "A list (A,B,...) is split at commas. If its flag is repeated, each value is one\n"
    "item, commas included: --excl-scopes 'a{1,2}' --excl-scopes b.\n"
    "\n"
    "The default strategy, budget, plans for the memory of the machine's GPUs. If the\n"
    "step fits, it swaps nothing; if no plan fits, it fails with exit code 8. If sizes,\n"
    "loops or calls are unknown, it plans with the rest, writes the graph and ends\n"
    "with exit code 9.\n"
    "\n"
    "Examples:\n"
    "  spillway rewrite graph.pb -o out.pb\n"
    "  spillway rewrite graph.pb -o out.pb --hardware a100_80gb_sxm4 --batch-size 256\n"
    "  spillway rewrite graph.pb -o out.pb --strategy scope \\\n"
    "      --optimizer-scopes gradients,Momentum --lb 3 \\\n"
    "      --ctrld-strategy direct_order --feed images=128,224,224,3\n"
    "  spillway rewrite graph.pb --save-plan plan.json\n"
    "  spillway apply plan.json graph.pb -o out.pb\n"
    "  spillway rewrite - -o - --server host:7070 <in.pb >out.pb";

// The order is that of --help.
struct RewriteFlags {
  explicit RewriteFlags(CLI::App* command)
      : files(command, {/*patch=*/true, /*plan=*/true, /*trace=*/true}),
        options(command),
        connection(command, ConnectionFlags::Kind::kRewrite) {
    AddStoredProfileFlag(command, &without_stored_profile);
    command
        ->add_flag("--keep-best", keep_best,
                   "When --timeout passes or Ctrl-C is pressed during the search, the best plan so "
                   "far is written, and the exit code is 10. It fits and is verified, but has not "
                   "been tried in variations. In this process only.")
        ->group("Connection")
        ->excludes("--trace");
  }

  const FileFlags files;
  const OptionFlags options;
  const ConnectionFlags connection;
  bool without_stored_profile = false;
  bool keep_best = false;
};

}  // namespace

void AddRewriteCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "rewrite",
      "Rewrites a training graph of TensorFlow so that it needs less GPU memory. Inserts nodes "
      "that "
      "copy tensors to host memory after their producer and back before a much later consumer. "
      "Runs in this process, or on a server.");
  auto flags = std::make_shared<RewriteFlags>(command);
  command->footer(kRewriteFooter);
  command->final_callback([flags, session] {
    session->run = [flags, session]() -> absl::StatusOr<ExitCode> {
      absl::StatusOr<v1::RewriteOptions> options = flags->options.Build();
      if (!options.ok()) return options.status();
      const absl::StatusOr<std::string> note = FillHardware(kNvidiaSmiTime, &*options);
      if (!note.ok()) return note.status();
      const GraphFiles& files = flags->files.files();
      if (!files.quiet) PrintNote(*note);
      const StoredProfiles profiles =
          flags->without_stored_profile ? StoredProfiles() : StoredProfiles::Beside(files.input);
      const bool may_keep_best = !flags->keep_best && !flags->connection.HasServer() &&
                                 (options->has_budget() || options->strategy_case() == 0);
      auto code = RunOnGraph(files, *std::move(options), flags->connection, *session,
                             /*plans=*/nullptr, &profiles, flags->keep_best);
      if (may_keep_best && core::GetErrorReason(code.status()) == v1::ERROR_REASON_STOPPED) {
        return core::WithMoreText(code.status(),
                                  "; with --keep-best, the best plan by then is written");
      }
      return code;
    };
  });
}

}  // namespace spillway::cli
