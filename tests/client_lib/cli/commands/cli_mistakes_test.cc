// Each wrong command line of command_lines.txt gets its sentence, at once, and leaves nothing
// behind.
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/child_process.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"

namespace spillway::testing {
namespace {

using ::testing::HasSubstr;

// So that a file that is not read is no test that passes.
constexpr int kLeastCommandLines = 70;
// Nothing is dialled and no graph planned for: what takes longer has begun to.
constexpr absl::Duration kAtOnce = absl::Seconds(5);

TEST(CommandLinesTest, EachMistakeGetsItsSentence) {
  int count = 0;
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(SPILLWAY_COMMAND_LINES), '\n');
  for (const std::string& line : lines) {
    if (line.empty() || line[0] == '#') continue;
    ++count;
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(" | ", 2));
    ASSERT_EQ(parts.size(), 3) << line;
    int exit_code = -1;
    ASSERT_TRUE(absl::SimpleAtoi(parts[0], &exit_code)) << line;
    const TempDir dir;
    const TempDir empty;
    std::vector<std::string> command = {SPILLWAY_BIN_DIR "/spillway"};
    for (const absl::string_view word : absl::StrSplit(parts[1], ' ')) {
      command.push_back(absl::StrReplaceAll(word, {{"GRAPH", kMnistPath},
                                                   {"OUT", dir / "out"},
                                                   {"NOTHING", empty / "nothing"},
                                                   {"DIR", empty / "."}}));
    }
    const absl::Time begin = absl::Now();
    const ChildResult result = RunChild(command);
    EXPECT_LT(absl::Now() - begin, kAtOnce) << line;
    EXPECT_EQ(result.exit_code, exit_code) << line << "\n" << result.err;
    EXPECT_EQ(result.out, "") << line;
    const std::vector<std::string> said = absl::StrSplit(result.err, '\n', absl::SkipEmpty());
    ASSERT_EQ(said.size(), 1) << line << "\n" << result.err;
    for (const absl::string_view text : absl::StrSplit(parts[2], ";; ")) {
      EXPECT_THAT(said[0], HasSubstr(std::string(text))) << line;
    }
    EXPECT_TRUE(dir.Names().empty()) << line;
  }
  EXPECT_GE(count, kLeastCommandLines);
}

}  // namespace
}  // namespace spillway::testing
