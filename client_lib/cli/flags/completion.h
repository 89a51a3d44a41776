// Completion scripts for shells, made from the commands and flags as they are: they cannot lag
// behind.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_COMPLETION_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_COMPLETION_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace spillway::cli {

// A flag, as a shell wants to know it.
struct CompletionFlag {
  std::vector<std::string> names;  // With their dashes, the short one first.
  std::string help;                // One line.
  bool takes_value = false;
  bool repeatable = false;
  std::string value_name;
  std::vector<std::string> values;  // The words that it takes, where these are known.
};

struct CompletionCommand {
  std::string name;
  std::string help;
  std::vector<CompletionFlag> flags;
};

// What can be completed: `root` has the flags that come before a command.
struct CompletionTree {
  CompletionCommand root;
  std::vector<CompletionCommand> commands;
};

CompletionTree DescribeForCompletion(const CLI::App& app);

// The scripts. What is no flag, no command and no known word is a file name.
std::string BashCompletion(const CompletionTree& tree);
std::string ZshCompletion(const CompletionTree& tree);
std::string FishCompletion(const CompletionTree& tree);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_COMPLETION_H_
