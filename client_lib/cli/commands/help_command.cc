#include "client_lib/cli/commands/help_command.h"

#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/own_version.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/near_names.h"

namespace spillway::cli {
namespace {

struct HelpFlags {
  std::string command;
  bool all = false;
};

absl::StatusOr<ExitCode> Run(const CLI::App& app, const HelpFlags& flags) {
  const CLI::App* about = flags.command.empty() ? &app : nullptr;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == flags.command) about = command;
  }
  if (about == nullptr) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat(NoSuchCommand(app, flags.command), "; spillway --help lists the commands"),
        {{"value", flags.command}});
  }
  // Not App::help: that descends into the command that was given, which is `help`.
  std::cout << about->get_formatter()->make_help(
      about, about == &app ? "spillway" : absl::StrCat("spillway ", about->get_name()),
      flags.all ? CLI::AppFormatMode::All : CLI::AppFormatMode::Normal);
  return ExitCode::kDone;
}

}  // namespace

void AddHelpCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand("help", "Prints the help of a command.");
  auto flags = std::make_shared<HelpFlags>();
  command->add_option("COMMAND", flags->command, "The command. [default: the program as a whole]")
      ->type_name("");
  command->add_flag("--all", flags->all, "Prints all flags, as COMMAND --help-all does.");
  command->footer("Example:\n  spillway help rewrite");
  command->final_callback(
      [app, flags, session] { session->run = [app, flags] { return Run(*app, *flags); }; });
}

void AddVersionCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand("version", "Prints the version.");
  command->final_callback([session] {
    session->run = []() -> absl::StatusOr<ExitCode> {
      std::cout << "spillway " << OwnVersion() << "\n";
      return ExitCode::kDone;
    };
  });
}

std::string NoSuchCommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return absl::StrCat("there is no command ", core::Quoted(name),
                      core::DidYouMean(name, {names.begin(), names.end()}));
}

}  // namespace spillway::cli
