// The completion scripts, run by the shells that they are for.
#include "client_lib/cli/flags/completion.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/child_process.h"
#include "tests/client_lib/temp_dir.h"

namespace spillway::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

const char kProgram[] = SPILLWAY_BIN_DIR "/spillway";

// Bash's offers for the last of `words`.
std::vector<std::string> Offered(const std::vector<std::string>& words) {
  std::vector<std::string> command = {
      "/bin/bash", "-c",
      "source <(\"$0\" completion bash); COMP_WORDS=(spillway \"$@\"); "
      "COMP_CWORD=$#; _spillway; printf '%s\\n' \"${COMPREPLY[@]}\"",
      kProgram};
  command.insert(command.end(), words.begin(), words.end());
  const ChildResult run = RunChild(command);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  return absl::StrSplit(run.out, '\n', absl::SkipEmpty());
}

// The names at the start of lines of --help: another way to what there is.
std::vector<std::string> FlagsInHelp(const std::string& command) {
  std::vector<std::string> flags;
  const std::string help = RunChild({kProgram, command, "--help-all"}).out;
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    if (!absl::StartsWith(line, "  -")) continue;
    const absl::string_view names = line.substr(2, line.find(' ', 2) - 2);
    for (const absl::string_view name : absl::StrSplit(names, ',')) flags.emplace_back(name);
  }
  return flags;
}

TEST(BashCompletionTest, OffersTheCommands) {
  EXPECT_THAT(Offered({""}), IsSupersetOf({"rewrite", "strip", "inspect", "diff", "health"}));
  EXPECT_THAT(Offered({"str"}), ElementsAre("strip"));
  EXPECT_THAT(Offered({"--ver"}), ElementsAre("--version"));
}

TEST(BashCompletionTest, OffersEveryFlagThatHelpNames) {
  for (const std::string command : {"rewrite", "strip", "inspect", "diff", "capabilities"}) {
    const std::vector<std::string> flags = FlagsInHelp(command);
    ASSERT_GE(flags.size(), 3) << command;
    EXPECT_THAT(Offered({command, "-"}), ::testing::UnorderedElementsAreArray(flags)) << command;
  }
}

TEST(BashCompletionTest, OffersTheWordsOfAFlag) {
  EXPECT_THAT(Offered({"rewrite", "--already-rewritten", ""}), ElementsAre("keep", "replan"));
  EXPECT_THAT(Offered({"rewrite", "--already-rewritten", "=", "re"}), ElementsAre("replan"));
  EXPECT_THAT(Offered({"rewrite", "in.pb", "--ctrld-strategy", "d"}), ElementsAre("direct_order"));
  // Presets, which are no enum.
  EXPECT_THAT(Offered({"rewrite", "--hardware", "v100_n"}), ElementsAre("v100_nvlink2"));
  EXPECT_THAT(Offered({"explore", "--hardware", ""}), IsSupersetOf({"p100_pcie", "h100_pcie5"}));
  // Another command does not have it.
  EXPECT_THAT(Offered({"strip", "--already-rewritten", ""}), IsEmpty());
}

TEST(BashCompletionTest, LeavesFilesToTheShell) {
  EXPECT_THAT(Offered({"rewrite", "--output", ""}), IsEmpty());
  EXPECT_THAT(Offered({"rewrite", "gra"}), IsEmpty());
  EXPECT_THAT(Offered({"rewrite", "--", "-"}), IsEmpty());
  const ChildResult result = RunChild(
      {"/bin/bash", "-c", "source <(\"$0\" completion bash); complete -p spillway", kProgram});
  EXPECT_EQ(result.out, "complete -o default -F _spillway spillway\n");
}

// Zsh and fish say whether they can read their script.
class SyntaxTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SyntaxTest, TheShellReadsItsScript) {
  const std::string shell = GetParam();
  const ChildResult script = RunChild({kProgram, "completion", shell});
  ASSERT_EQ(script.exit_code, 0) << script.err;
  EXPECT_THAT(script.out, ::testing::HasSubstr("already-rewritten"));
  const ChildResult found = RunChild({"/bin/sh", "-c", "command -v " + shell});
  if (found.exit_code != 0) GTEST_SKIP() << "there is no " << shell << " here to read the script";
  const std::string path = found.out.substr(0, found.out.find('\n'));
  const TempDir folder;
  const ChildResult result = RunChild({path, "-n", folder.Write("script", script.out)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(RunChild({path, "-n", folder.Write("broken", script.out + "\nif (")}).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Shells, SyntaxTest, ::testing::Values("bash", "zsh", "fish"),
                         [](const auto& shell) { return std::string(shell.param); });

TEST(CompletionCommandTest, NamesTheShellsItKnows) {
  const ChildResult result = RunChild({kProgram, "completion", "tcsh"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, ::testing::HasSubstr("bash"));
}

}  // namespace
}  // namespace spillway::testing
