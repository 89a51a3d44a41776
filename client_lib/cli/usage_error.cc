#include "client_lib/cli/usage_error.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_lib/cli/commands/help_command.h"
#include "client_lib/cli/flags/option_value.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/near_names.h"

namespace spillway::cli {
namespace {

// CLI11 reorders unexpected arguments; this keeps the given order.
std::vector<std::string> InOrder(std::vector<std::string> unexpected,
                                 const std::vector<std::string>& words) {
  std::vector<std::string> ordered;
  for (const std::string& word : words) {
    const auto found = std::find(unexpected.begin(), unexpected.end(), word);
    if (found == unexpected.end()) continue;
    ordered.push_back(word);
    unexpected.erase(found);
  }
  ordered.insert(ordered.end(), unexpected.begin(), unexpected.end());
  return ordered;
}

bool IsFlag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

// `; it is a flag of simulate`, or empty if no command has it.
std::string Elsewhere(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) {
    const std::vector<std::string> flags = FlagsOf(*command);
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) continue;
    commands.push_back(command->get_name());
  }
  if (commands.empty()) return "";
  return absl::StrCat("; it is a flag of ", absl::StrJoin(commands, ", "));
}

// For the first flag with one value that is given several times; empty if none.
std::string Repeated(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const bool takes_one = option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw &&
                           option->get_items_expected_max() == 1;
    if (takes_one && option->count() > 1) return RepeatedText(option->get_name(), option->count());
  }
  return "";
}

// `not expected: 'a' 'b'`, with a suggestion for the first unknown flag.
std::string Unexpected(const CLI::App& app, const CLI::App& command,
                       const std::vector<std::string>& unexpected) {
  std::string text = absl::StrCat(
      "not expected: ",
      absl::StrJoin(unexpected, " ",
                    [](std::string* out, const std::string& word) { *out += core::Quoted(word); }));
  const auto flag = std::find_if(unexpected.begin(), unexpected.end(), IsFlag);
  if (flag != unexpected.end()) {
    const std::string name = flag->substr(0, flag->find('='));
    const std::vector<std::string> known = FlagsOf(command);
    std::string advice = core::DidYouMean(name, {known.begin(), known.end()});
    if (advice.empty()) advice = Elsewhere(app, name);
    absl::StrAppend(&text, advice);
  } else if (command.get_name() == "run") {
    absl::StrAppend(&text, "; -- goes in front of the command to run");
  }
  return text;
}

}  // namespace

std::string UsageText(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& words) {
  const auto commands = app.get_subcommands();
  std::string text = error.what();
  if (commands.empty()) {
    const std::vector<std::string> unexpected = InOrder(app.remaining(), words);
    if (!unexpected.empty()) {
      text = IsFlag(unexpected[0]) ? Unexpected(app, app, unexpected)
                                   : NoSuchCommand(app, unexpected[0]);
    }
    return absl::StrCat(text, "; see spillway --help");
  }
  const std::vector<std::string> unexpected = InOrder(app.remaining(/*recurse=*/true), words);
  if (const std::string repeated = Repeated(*commands[0]); !repeated.empty()) text = repeated;
  // The missing argument may be the misspelled one.
  if (!unexpected.empty()) text = Unexpected(app, *commands[0], unexpected);
  return absl::StrCat(text, "; see spillway ", commands[0]->get_name(), " --help");
}

}  // namespace spillway::cli
