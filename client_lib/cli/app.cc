#include "client_lib/cli/app.h"

#include <errno.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/anonymize_command.h"
#include "client_lib/cli/apply_command.h"
#include "client_lib/cli/capabilities_command.h"
#include "client_lib/cli/completion_command.h"
#include "client_lib/cli/diff_command.h"
#include "client_lib/cli/exit_code.h"
#include "client_lib/cli/explore_command.h"
#include "client_lib/cli/file_error.h"
#include "client_lib/cli/health_command.h"
#include "client_lib/cli/help_format.h"
#include "client_lib/cli/inspect_command.h"
#include "client_lib/cli/own_version.h"
#include "client_lib/cli/rewrite_command.h"
#include "client_lib/cli/run_command.h"
#include "client_lib/cli/session.h"
#include "client_lib/cli/simulate_command.h"
#include "client_lib/cli/strip_command.h"
#include "client_lib/cli/style.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

// What was printed may sit in a buffer: whether it came out is known only now.
absl::Status FlushOutput() {
  errno = 0;
  std::cout.flush();
  if (std::cout.good()) return absl::OkStatus();
  return FileError(errno != 0 ? errno : EIO, "write", "-", "the output is incomplete");
}

int Finish(absl::StatusOr<ExitCode> result) {
  if (absl::Status status = FlushOutput(); result.ok() && !status.ok()) result = status;
  if (result.ok()) return static_cast<int>(*result);
  std::cerr << StyleOf(STDERR_FILENO).Error(absl::StrCat("spillway: ", ErrorText(result.status())))
            << "\n";
  return static_cast<int>(ExitCodeOf(result.status()));
}

// CLI11 throws for --help and --version, too.
int FinishParse(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    app.exit(error, std::cout, std::cerr);
    return Finish(ExitCode::kDone);
  }
  const auto commands = app.get_subcommands();
  if (commands.empty() && !app.remaining().empty()) {
    std::cerr << "spillway: there is no command " << core::Quoted(app.remaining()[0])
              << "; see spillway --help [USAGE]\n";
  } else {
    std::cerr << "spillway: " << error.what() << "; see spillway "
              << (commands.empty() ? "" : commands[0]->get_name() + " ") << "--help [USAGE]\n";
  }
  return static_cast<int>(ExitCode::kUsage);
}

}  // namespace

int RunCommandLine(int argc, char** argv, const CancellationToken& cancellation) {
  Session session;
  if (IsRunCommand(argc, argv)) argc = TakeCommand(argc, argv, &session);
  session.cancellation = cancellation;
  CLI::App app(
      "Large Model Support for TensorFlow: rewrites a training graph so that tensors wait in host "
      "memory, and training fits into less GPU memory. In this process, or on a server.",
      "spillway");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print this help.");
  app.set_version_flag("--version", absl::StrCat("spillway ", OwnVersion()), "Print the version.");
  app.require_subcommand(1);
  AddRewriteCommand(&app, &session);
  AddApplyCommand(&app, &session);
  AddStripCommand(&app, &session);
  AddRunCommand(&app, &session);
  AddInspectCommand(&app, &session);
  AddSimulateCommand(&app, &session);
  AddExploreCommand(&app, &session);
  AddDiffCommand(&app, &session);
  AddAnonymizeCommand(&app, &session);
  AddCapabilitiesCommand(&app, &session);
  AddHealthCommand(&app, &session);
  for (CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) AddColorFlag(command);
  AddCompletionCommand(&app, &session);
  app.footer(
      absl::StrCat("Example:\n"
                   "  spillway rewrite graph.pb -o out.pb\n\n",
                   kExitCodeHelp, "\n\nspillway COMMAND --help tells more of each command."));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return FinishParse(app, error);
  }
  return Finish(session.run());
}

}  // namespace spillway::cli
