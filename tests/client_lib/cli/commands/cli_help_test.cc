// Help, and the errors of command lines that cannot be read, by the program itself.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"

namespace spillway::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The most needed flags, in whole sentences: below three screens of a usual terminal.
constexpr size_t kShortLines = 85;

ChildResult InColumns(const std::string& columns, const Words& words) {
  return RunChild(Words{"/usr/bin/env", "COLUMNS=" + columns, kProgram} + words);
}

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// Of breakable lines: the name of a flag cannot be broken, nor one long word.
size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  for (const std::string& line : LinesOf(text)) {
    if (absl::StartsWith(line, "  -") && !absl::StrContains(line.substr(3), "  ")) continue;
    if (line.find(' ', line.find_first_not_of(' ')) == std::string::npos) continue;
    longest = std::max(longest, line.size());
  }
  return longest;
}

size_t FlagCount(const std::string& help) {
  const std::vector<std::string> lines = LinesOf(help);
  return std::count_if(lines.begin(), lines.end(),
                       [](const std::string& line) { return absl::StartsWith(line, "  -"); });
}

TEST(HelpTest, WithoutACommandTheListIsPrinted) {
  const ChildResult result = Spillway({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, Spillway({"--help"}).out);
  EXPECT_EQ(result.err, "");
}

TEST(HelpTest, UsageShowsTheOperands) {
  EXPECT_THAT(Spillway({"run", "--help"}).out,
              HasSubstr("Usage: spillway run [OPTIONS] -- COMMAND [ARGUMENT...]\n"));
  EXPECT_THAT(Spillway({"rewrite", "--help"}).out,
              HasSubstr("Usage: spillway rewrite [OPTIONS] IN"));
}

TEST(HelpTest, HelpIsShortAndHelpAllIsWhole) {
  for (const char* command : {"rewrite", "run", "simulate", "explore", "inspect"}) {
    const ChildResult brief = Spillway({command, "--help"});
    const ChildResult all = Spillway({command, "--help-all"});
    EXPECT_EQ(brief.exit_code, 0) << command;
    EXPECT_EQ(all.exit_code, 0) << command;
    EXPECT_LE(std::count(brief.out.begin(), brief.out.end(), '\n'), kShortLines) << command;
    EXPECT_GT(FlagCount(all.out), 2 * FlagCount(brief.out)) << command;
    EXPECT_THAT(brief.out, HasSubstr(absl::StrCat(command, " --help-all"))) << command;
    // Whole, and with all names of the short one.
    EXPECT_THAT(all.out, HasSubstr("--tls-server-name NAME")) << command;
    for (const std::string& line : LinesOf(brief.out)) {
      if (!absl::StartsWith(line, "  --")) continue;
      EXPECT_THAT(all.out, HasSubstr(line.substr(0, line.find(' ', 4)))) << command;
    }
  }
  // Of few flags all are shown.
  EXPECT_EQ(FlagCount(Spillway({"diff", "--help"}).out),
            FlagCount(Spillway({"diff", "--help-all"}).out));
}

TEST(HelpTest, TheCommandHelp) {
  EXPECT_EQ(Spillway({"help"}).out, Spillway({"--help"}).out);
  EXPECT_EQ(Spillway({"help", "simulate"}).out, Spillway({"simulate", "--help"}).out);
  EXPECT_EQ(Spillway({"help", "simulate", "--all"}).out, Spillway({"simulate", "--help-all"}).out);
  EXPECT_EQ(Spillway({"version"}).out, Spillway({"--version"}).out);
}

std::string OnOneLine(absl::string_view text) {
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

std::string WordsOf(const char* command) { return OnOneLine(Spillway({command, "--help"}).out); }

TEST(HelpTest, ShortTextsSayWhatIsDoneAnyway) {
  EXPECT_THAT(WordsOf("run"), HasSubstr("runs the command with the original graph. [default] "));
  EXPECT_THAT(WordsOf("explore"),
              HasSubstr("beside those of the search for the largest that fits"));
  EXPECT_THAT(WordsOf("rewrite"), HasSubstr("that are not simulated. [default: 0.1]"));
}

// The effect of each value of an option, and the default, in the short help, too.
TEST(HelpTest, NamedValuesAreExplained) {
  int options = 0;
  for (const char* command : {"rewrite", "run", "simulate", "explore", "inspect", "check"}) {
    for (const char* flag : {"--help", "--help-all"}) {
      const std::string help = Spillway({command, flag}).out;
      for (absl::string_view option : absl::StrSplit(help, "\n  --")) {
        const std::vector<std::string> words =
            absl::StrSplit(OnOneLine(option), absl::MaxSplits(' ', 2));
        if (words.size() < 3 || !absl::StrContains(words[1], '|')) continue;
        ++options;
        for (absl::string_view value : absl::StrSplit(words[1], '|')) {
          EXPECT_THAT(words[2], HasSubstr(absl::StrCat(". ", value, ": "))) << words[0];
        }
      }
    }
  }
  EXPECT_GT(options, 30);
  const std::string rewrite = WordsOf("rewrite");
  EXPECT_THAT(rewrite, HasSubstr("--recompute off|cheap|all "));
  EXPECT_THAT(rewrite, HasSubstr("[default: cheap]"));
  EXPECT_THAT(rewrite, HasSubstr("[default: fastest_that_fits]"));
}

TEST(HelpTest, ColumnsAreHeeded) {
  for (const char* command : {"rewrite", "help"}) {
    EXPECT_LE(LongestLine(Spillway({command, "--help"}).out), 80) << command;
  }
  // Examples are unchanged; descriptions are not.
  const std::string narrow = InColumns("60", {"rewrite", "--help-all"}).out;
  const std::string wide = InColumns("120", {"rewrite", "--help-all"}).out;
  EXPECT_LE(LongestLine(narrow.substr(0, narrow.find("A list (A"))), 60);
  EXPECT_GT(LongestLine(wide.substr(0, wide.find("A list (A"))), 100);
  EXPECT_LE(LongestLine(wide.substr(0, wide.find("A list (A"))), 120);
  const std::vector<std::string> simulate = {"simulate", kMnistPath, "--batch-size", "64"};
  EXPECT_LE(LongestLine(InColumns("64", simulate).out), 64);
  EXPECT_GT(LongestLine(InColumns("110", simulate).out), 100);
  EXPECT_EQ(InColumns("wide", simulate).out, Spillway(simulate).out);
}

// As `script` of util-linux runs it: its standard output is a terminal.
TEST(TerminalTest, NoBinaryGoesToATerminal) {
  const auto on_terminal = [](const std::string& arguments) {
    return RunChild(
        {"/usr/bin/script", "-qec", absl::StrCat(kProgram, " ", arguments), "/dev/null"});
  };
  for (const char* command : {"strip ", "anonymize "}) {
    const ChildResult result = on_terminal(absl::StrCat(command, kMnistPath, " -o -"));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_THAT(result.out, HasSubstr("standard output is a terminal; give -o FILE")) << command;
    EXPECT_THAT(result.out, Not(HasSubstr("Placeholder"))) << command;
  }
  // Text may go there, like all other output.
  const TempDir dir;
  const std::string text = dir.Write("g.pbtxt", "node { name: \"only\" op: \"NoOp\" }\n");
  EXPECT_THAT(on_terminal(absl::StrCat("strip ", text, " -o - --quiet")).out, HasSubstr("only"));
  EXPECT_EQ(on_terminal("capabilities").exit_code, 0);
}

}  // namespace
}  // namespace spillway::testing
