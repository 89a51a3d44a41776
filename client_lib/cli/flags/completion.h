// Completion scripts for shells, generated from the actual commands and flags, so they are always
// up to date.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_COMPLETION_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_COMPLETION_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace spillway::cli {

// A flag, as described to a shell.
struct CompletionFlag {
  std::vector<std::string> names;  // With their dashes, the short one first.
  std::string help;                // One line.
  bool takes_value = false;
  bool repeatable = false;
  std::string value_name;
  std::vector<std::string> values;  // The accepted values, if they are known.
};

struct CompletionCommand {
  std::string name;
  std::string help;
  std::vector<CompletionFlag> flags;
};

// Everything that can be completed: `root` has the flags that precede a command.
struct CompletionTree {
  CompletionCommand root;
  std::vector<CompletionCommand> commands;
};

CompletionTree DescribeForCompletion(const CLI::App& app);

// The scripts. Anything but a flag, command or known value completes as a file name.
std::string BashCompletion(const CompletionTree& tree);
std::string ZshCompletion(const CompletionTree& tree);
std::string FishCompletion(const CompletionTree& tree);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_COMPLETION_H_
