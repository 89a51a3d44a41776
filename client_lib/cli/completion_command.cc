#include "client_lib/cli/completion_command.h"

#include <iostream>
#include <memory>
#include <string>

#include "CLI/Validators.hpp"
#include "client_lib/cli/completion.h"

namespace spillway::cli {
namespace {

ExitCode Run(const CLI::App& app, const std::string& shell) {
  const CompletionTree tree = DescribeForCompletion(app);
  std::cout << (shell == "bash"  ? BashCompletion(tree)
                : shell == "zsh" ? ZshCompletion(tree)
                                 : FishCompletion(tree));
  return ExitCode::kDone;
}

}  // namespace

void AddCompletionCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "completion", "Prints a completion script for a shell. Installed packages have it already.");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish.")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  command->footer(
      "Examples:\n"
      "  source <(spillway completion bash)\n"
      "  spillway completion zsh > ~/.zsh/completions/_spillway\n"
      "  spillway completion fish > ~/.config/fish/completions/spillway.fish");
  command->final_callback(
      [app, shell, session] { session->run = [app, shell] { return Run(*app, *shell); }; });
}

}  // namespace spillway::cli
