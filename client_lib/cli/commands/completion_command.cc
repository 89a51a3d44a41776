#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/Validators.hpp"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/flags/completion.h"
#include "spillway/client.h"
#include "spillway/local_connection.h"

namespace spillway::cli {
namespace {

// The presets are not an enum of the API; the core in this process lists them.
void AddPresets(CompletionCommand* command) {
  for (CompletionFlag& flag : command->flags) {
    if (flag.names != std::vector<std::string>{"--hardware"}) continue;
    const auto capabilities = Client(MakeLocalConnection()).GetCapabilities();
    if (!capabilities.ok()) return;
    for (const v1::HardwareReport& preset : capabilities->hardware_presets()) {
      flag.values.push_back(preset.hardware().preset());
    }
    flag.values.push_back("auto");
  }
}

ExitCode Run(const CLI::App& app, const std::string& shell) {
  CompletionTree tree = DescribeForCompletion(app);
  for (CompletionCommand& command : tree.commands) AddPresets(&command);
  std::cout << (shell == "bash"  ? BashCompletion(tree)
                : shell == "zsh" ? ZshCompletion(tree)
                                 : FishCompletion(tree));
  return ExitCode::kDone;
}

}  // namespace

void AddCompletionCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "completion", "Prints a completion script for a shell. Packages install these scripts.");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "The shell: bash, zsh or fish.")
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
