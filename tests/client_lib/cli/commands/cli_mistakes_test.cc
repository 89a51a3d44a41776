// Each wrong command line of command_lines.txt gets its sentence, at once, and leaves nothing
// behind.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// So that a file that is not read does not pass.
constexpr int kLeastCommandLines = 230;
// No server is dialled and no plan searched: longer calls have begun to.
constexpr absl::Duration kAtOnce = absl::Seconds(5);

// The files of FILES.
void WriteFiles(const TempDir& dir) {
  dir.Write("free", ReadTestGraph("resnet50_free/graph.pb"));
  dir.Write("fixed", ReadTestGraph("resnet50_tf1/graph.pb"));
  dir.Write("cond", ReadTestGraph("cond_v1/graph_shapes.pb"));
  dir.Write("profile", ReadTestGraph("mnist_deep/run_metadata.pb"));
  dir.Write("cut", ReadFile(kMnistPath).substr(0, 5000));
  dir.Write("empty", "");
  dir.Write("garbage", "\xff\xff\xff garbage");
  dir.Write("elf",
            "\x7f"
            "ELF\x02");
  dir.Write("typo", "node {\n  nam: 'a'\n}");
  dir.Write("no_meta_graph", RawNumber(1, 1));
  dir.Write("token", "abc");
  // The ranks in the graph itself do not fit.
  dir.Write("mismatch", GraphBytes(R"(
    x = Placeholder() {dtype=float32, shape=(8,8,8)}
    w = VariableV2() {dtype=float32, shape=(3,3,3,8)}
    r = Identity(w) {T=float32}
    broken = Conv2D(x, r) {T=float32, strides=[1,1,1,1], padding="SAME"}
  )"));
  dir.Write("huge", GraphBytes(R"(
    x = Placeholder() {dtype=float32, shape=(?,?,?)}
    y = Relu(x) {T=float32}
  )"));
  dir.Write("flops.json", R"({"flops": 1})");
  dir.Write("preset.json", R"({"preset": "p1000"})");
  dir.Write("range.json", R"({"mem_eff": 2})");
  dir.Write("rewrite.json", R"({"outcome": "OUTCOME_REWRITTEN", "forecast_before": {}})");
  dir.Write("no_memory.json", R"({"forecast": {"fit": "FIT_FITS"}})");
  dir.Write("models.json", R"({"meta_graphs": []})");
  dir.Write("other.json", R"({"a": [1, {"b": 2}]})");
  dir.Write("large.json", std::string((1 << 20) + 1, ' '));
  dir.Write("damaged.json", R"({"forecast": )");
  dir.Write("deep.json", R"({"forecast":)" + std::string(100'000, '['));
  dir.Write("wrong.json", R"({"forecast": 5, "memory": []})");
  dir.Write("sizes.json", R"({"sizes": [{"size": "8"}]})");
}

// Runs the words of a line.
void ExpectSentence(const std::string& words, int exit_code, const std::string& texts,
                    const TempDir& files) {
  SCOPED_TRACE(words);
  const TempDir dir;
  const TempDir empty;
  std::vector<std::string> command = {SPILLWAY_BIN_DIR "/spillway"};
  for (const absl::string_view word : absl::StrSplit(words, ' ', absl::SkipEmpty())) {
    command.push_back(absl::StrReplaceAll(word, {{"GRAPH", kMnistPath},
                                                 {"OUT", dir / "out"},
                                                 {"NOTHING", empty / "nothing"},
                                                 {"DIR", empty / "."},
                                                 {"FILES", files / "."},
                                                 {"''", ""}}));
  }
  const absl::Time begin = absl::Now();
  const ChildResult result = RunChild(command);
  EXPECT_LT(absl::Now() - begin, kAtOnce);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  const std::vector<std::string> said = absl::StrSplit(result.err, '\n', absl::SkipEmpty());
  ASSERT_EQ(said.size(), 1) << result.err;
  EXPECT_THAT(said[0], StartsWith("spillway: "));
  for (const absl::string_view text : absl::StrSplit(texts, ";; ")) {
    EXPECT_THAT(said[0], HasSubstr(std::string(text)));
  }
  EXPECT_TRUE(dir.Names().empty());
}

TEST(CommandLinesTest, EachMistakeGetsItsSentence) {
  const TempDir files;
  WriteFiles(files);
  int count = 0;
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(SPILLWAY_COMMAND_LINES), '\n');
  for (const std::string& line : lines) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(" | ", 2));
    ASSERT_EQ(parts.size(), 3) << line;
    int exit_code = -1;
    ASSERT_TRUE(absl::SimpleAtoi(parts[0], &exit_code)) << line;
    std::vector<std::string> commands = {parts[1]};
    if (absl::StartsWith(parts[1], "STEPS ")) {
      commands.clear();
      for (const char* command : {"simulate ", "explore ", "rewrite -o OUT "}) {
        commands.push_back(absl::StrReplaceAll(parts[1], {{"STEPS ", command}}));
      }
    }
    for (const std::string& words : commands) ExpectSentence(words, exit_code, parts[2], files);
    ++count;
  }
  EXPECT_GE(count, kLeastCommandLines);
}

}  // namespace
}  // namespace spillway::testing
