#include "client_lib/cli/flags/completion.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client_lib/cli/print/help_format.h"

namespace spillway::cli {
namespace {

// Shortens text to one line: up to the first full stop, colon or semicolon that ends a part.
std::string ShortHelp(const std::string& text) {
  size_t end = text.size();
  for (const char* stop : {". ", ": ", "; ", " [default", "\n"})
    end = std::min(end, text.find(stop));
  return std::string(absl::StripSuffix(text.substr(0, end), "."));
}

// `keep|replan`: how flags of the option table name their values.
std::vector<std::string> WordsIn(const std::string& type_name) {
  const auto in_word = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '|';
  };
  if (type_name.empty() || !std::all_of(type_name.begin(), type_name.end(), in_word)) return {};
  return absl::StrSplit(type_name, '|', absl::SkipEmpty());
}

CompletionFlag DescribeFlag(const CLI::Option& option) {
  CompletionFlag flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  flag.help = ShortHelp(option.get_description());
  flag.takes_value = option.get_items_expected_max() > 0;
  flag.repeatable = option.get_items_expected_max() > 1;
  flag.value_name = TypeNameOf(option);
  flag.values = WordsIn(flag.value_name);
  return flag;
}

CompletionCommand DescribeCommand(const CLI::App& app) {
  CompletionCommand command;
  command.name = app.get_name();
  command.help = ShortHelp(app.get_description());
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) command.flags.push_back(DescribeFlag(*option));
  }
  return command;
}

std::vector<std::string> AllNames(const CompletionCommand& command) {
  std::vector<std::string> names;
  for (const CompletionFlag& flag : command.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return names;
}

// In single quotes of a POSIX shell.
std::string ShellQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", R"('\'')"}}), "'");
}

// In single quotes of fish.
std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// Escapes the parts of an _arguments specification other than the name.
std::string ZshText(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string ZshSpecification(const CompletionFlag& flag, const std::string& name) {
  std::string text = absl::StrCat(flag.repeatable ? "*" : "", name, "[", ZshText(flag.help), "]");
  if (flag.takes_value) {
    absl::StrAppend(
        &text, ":", ZshText(flag.value_name), ":",
        flag.values.empty() ? "_files" : absl::StrCat("(", absl::StrJoin(flag.values, " "), ")"));
  }
  return ShellQuoted(text);
}

std::string ZshArguments(const CompletionCommand& command) {
  std::string lines;
  for (const CompletionFlag& flag : command.flags) {
    for (const std::string& name : flag.names) {
      absl::StrAppend(&lines, " \\\n        ", ZshSpecification(flag, name));
    }
  }
  return lines;
}

std::string FishFlags(const std::string& condition, const CompletionCommand& command) {
  std::string lines;
  for (const CompletionFlag& flag : command.flags) {
    absl::StrAppend(&lines, "complete -c spillway -n ", FishQuoted(condition));
    for (const std::string& name : flag.names) {
      absl::StrAppend(
          &lines, absl::StartsWith(name, "--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
    }
    if (!flag.values.empty()) {
      absl::StrAppend(&lines, " -x -a ", FishQuoted(absl::StrJoin(flag.values, " ")));
    } else if (flag.takes_value) {
      absl::StrAppend(&lines, " -r");
    }
    absl::StrAppend(&lines, " -d ", FishQuoted(flag.help), "\n");
  }
  return lines;
}

}  // namespace

CompletionTree DescribeForCompletion(const CLI::App& app) {
  CompletionTree tree;
  tree.root = DescribeCommand(app);
  // An empty filter matches every command.
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    tree.commands.push_back(DescribeCommand(*command));
  }
  return tree;
}

std::string BashCompletion(const CompletionTree& tree) {
  std::vector<std::string> names;
  std::string values;
  std::string flags;
  for (const CompletionCommand& command : tree.commands) {
    names.push_back(command.name);
    absl::StrAppend(&flags, "    ", command.name,
                    ") words=", ShellQuoted(absl::StrJoin(AllNames(command), " ")), " ;;\n");
    // For flags without a fixed set of values, the shell completes file names.
    std::vector<std::string> open;
    for (const CompletionFlag& flag : command.flags) {
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) {
        patterns.push_back(absl::StrCat("'", command.name, " ", name, "'"));
      }
      if (!flag.values.empty()) {
        absl::StrAppend(
            &values, "    ", absl::StrJoin(patterns, "|"), ")\n      COMPREPLY=($(compgen -W ",
            ShellQuoted(absl::StrJoin(flag.values, " ")), " -- \"$current\")); return ;;\n");
      } else if (flag.takes_value) {
        open.insert(open.end(), patterns.begin(), patterns.end());
      }
    }
    if (!open.empty()) {
      absl::StrAppend(&values, "    ", absl::StrJoin(open, "|\\\n    "), ")\n      return ;;\n");
    }
  }
  const std::vector<std::string> root = AllNames(tree.root);
  return absl::StrCat(
      "# Completion of spillway for bash, made by `spillway completion bash`.\n"
      "_spillway() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command= words= i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    if [[ ${COMP_WORDS[i]} == -- ]]; then return; fi  # Another program's words follow.\n"
      "    if [[ -z $command && ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; fi\n"
      "  done\n"
      "  # --flag=value comes as three words.\n"
      "  if [[ $current == = ]]; then\n"
      "    current=\n"
      "  elif [[ $before == = ]]; then\n"
      "    before=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  case \"$command $before\" in\n",
      values,
      "  esac\n"
      "  case $command in\n"
      "    '') words=",
      ShellQuoted(absl::StrCat(absl::StrJoin(names, " "), " ", absl::StrJoin(root, " "))), " ;;\n",
      flags,
      "  esac\n"
      "  if [[ -z $command || $current == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  fi\n"
      "}\n"
      "complete -o default -F _spillway spillway\n");
}

std::string ZshCompletion(const CompletionTree& tree) {
  std::string descriptions;
  std::string cases;
  for (const CompletionCommand& command : tree.commands) {
    absl::StrAppend(&descriptions, "    ",
                    ShellQuoted(absl::StrCat(command.name, ":", ZshText(command.help))), "\n");
    absl::StrAppend(&cases, "    ", command.name, ")\n      _arguments -s", ZshArguments(command),
                    " \\\n        '*:file:_files' ;;\n");
  }
  return absl::StrCat(
      "#compdef spillway\n"
      "# Completion of spillway for zsh, made by `spillway completion zsh`.\n"
      "_spillway() {\n"
      "  local -a commands\n"
      "  commands=(\n",
      descriptions,
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    _arguments -s",
      ZshArguments(tree.root),
      "\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n",
      cases,
      "  esac\n"
      "}\n"
      "if [[ $funcstack[1] == _spillway ]]; then\n"
      "  _spillway \"$@\"\n"
      "else\n"
      "  compdef _spillway spillway\n"
      "fi\n");
}

std::string FishCompletion(const CompletionTree& tree) {
  std::string lines = "# Completion of spillway for fish, made by `spillway completion fish`.\n";
  for (const CompletionCommand& command : tree.commands) {
    absl::StrAppend(&lines, "complete -c spillway -f -n __fish_use_subcommand -a ", command.name,
                    " -d ", FishQuoted(command.help), "\n");
  }
  absl::StrAppend(&lines, FishFlags("__fish_use_subcommand", tree.root));
  for (const CompletionCommand& command : tree.commands) {
    absl::StrAppend(&lines,
                    FishFlags(absl::StrCat("__fish_seen_subcommand_from ", command.name), command));
  }
  return lines;
}

}  // namespace spillway::cli
