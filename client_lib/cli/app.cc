#include "client_lib/cli/app.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/exit_code.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/base/out_of_memory.h"
#include "client_lib/cli/base/own_version.h"
#include "client_lib/cli/base/session.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/help_command.h"
#include "client_lib/cli/commands/run_command.h"
#include "client_lib/cli/flags/color_flag.h"
#include "client_lib/cli/flags/flag_names.h"
#include "client_lib/cli/print/help_format.h"
#include "client_lib/cli/usage_error.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/plain_text.h"

namespace spillway::cli {
namespace {

// Whether standard output is a closed pipe.
bool IsOutputClosed() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, /*timeout=*/0) == 1 && (output.revents & POLLERR) != 0;
}

// Output may still be buffered, so whether it was written is known only after a flush. The stream
// does not keep the cause of an earlier failure.
absl::Status FlushOutput() {
  errno = 0;
  std::cout.flush();
  if (std::cout.good()) return absl::OkStatus();
  const int error = errno != 0 ? errno : IsOutputClosed() ? EPIPE : EIO;
  return FileError(error, "write", "-", "the output is incomplete");
}

// `spillway ... | head`: the reader has closed the pipe, which is not reported as an error. As
// usual for command-line tools, SIGPIPE ends the program.
int EndByClosedPipe() {
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
  return 128 + SIGPIPE;  // The shell's exit code for it; not reached unless the signal is blocked.
}

int Finish(absl::StatusOr<ExitCode> result) {
  if (absl::Status status = FlushOutput(); result.ok() && !status.ok()) result = status;
  if (result.ok()) return static_cast<int>(*result);
  if (IsClosedPipe(result.status())) return EndByClosedPipe();
  std::cerr << StyleOf(STDERR_FILENO).Error(absl::StrCat("spillway: ", ErrorText(result.status())))
            << "\n";
  return static_cast<int>(ExitCodeOf(result.status()));
}

// CLI11 also throws for --help and --version.
int FinishParse(const CLI::App& app, const CLI::ParseError& error,
                const std::vector<std::string>& words) {
  if (error.get_exit_code() == 0) {
    app.exit(error, std::cout, std::cerr);
    return Finish(ExitCode::kDone);
  }
  std::cerr << "spillway: " << core::PlainText(UsageText(app, error, words)) << " [USAGE]\n";
  return static_cast<int>(ExitCode::kUsage);
}

int RunWords(const std::vector<std::string>& words, Session& session) {
  CLI::App app(
      "Large Model Support for TensorFlow: rewrites a training graph so that tensors wait in host "
      "memory, and training fits into less GPU memory. Works in this process, or on a server.",
      "spillway");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Prints this help.");
  app.set_help_all_flag("--help-all", "Prints this help with all flags.");
  app.set_version_flag("--version", absl::StrCat("spillway ", OwnVersion()), "Prints the version.");
  app.require_subcommand(1);
  AddRewriteCommand(&app, &session);
  AddApplyCommand(&app, &session);
  AddStripCommand(&app, &session);
  AddRunCommand(&app, &session);
  AddInspectCommand(&app, &session);
  AddSimulateCommand(&app, &session);
  AddExploreCommand(&app, &session);
  AddPlotCommand(&app, &session);
  AddDiffCommand(&app, &session);
  AddCheckCommand(&app, &session);
  AddAnonymizeCommand(&app, &session);
  AddStatsCommand(&app, &session);
  AddCapabilitiesCommand(&app, &session);
  AddHealthCommand(&app, &session);
  AddDoctorCommand(&app, &session);
  for (CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) AddColorFlag(command);
  AddCompletionCommand(&app, &session);
  AddHelpCommand(&app, &session);
  AddVersionCommand(&app, &session);
  app.footer(absl::StrCat(
      "Example:\n"
      "  spillway rewrite graph.pb -o out.pb\n\n",
      kExitCodeHelp,
      "\n\nspillway COMMAND --help shows a command's most common flags, --help-all all."));
  if (words.empty()) {
    std::cout << app.help();
    return Finish(ExitCode::kUsage);
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11's order.
  } catch (const CLI::ParseError& error) {
    const bool again = session.usage.ok() && error.get_exit_code() != 0;
    const std::vector<std::string> rest =
        again ? RestOfCommandLine(words, session) : std::vector<std::string>();
    if (rest.empty()) return FinishParse(app, error, words);
    session.usage = core::InvalidError(v1::ERROR_REASON_BAD_OPTION, UsageText(app, error, words));
    return RunWords(rest, session);
  }
  return Finish(OrOutOfMemory(session.run));
}

}  // namespace

int RunCommandLine(int argc, char** argv, const CancellationToken& cancellation) {
  Session session;
  if (IsRunCommand(argc, argv)) argc = TakeCommand(argc, argv, &session);
  session.cancellation = cancellation;
  return RunWords({argv + std::min(argc, 1), argv + argc}, session);
}

}  // namespace spillway::cli
