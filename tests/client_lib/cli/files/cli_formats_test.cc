// The program on files of every format, and its appearance.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "client_lib/format/graph_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Rewrites are those of the strategy scope, which swaps something also in a graph that fits.
Words Scope(const Words& words) { return words + Words{"--strategy", "scope"}; }

std::string Mnist() { return ReadTestGraph("mnist_deep/graph_shapes.pb"); }

std::string MetaGraph(const std::string& graph, const std::string& tag) {
  return RawField(1, RawField(4, tag)) + RawField(2, graph) + RawField(4, "a collection");
}

// One MetaGraph to train, and one to serve.
std::string Model() {
  return RawNumber(1, 1) + RawField(2, MetaGraph(Mnist(), "train")) +
         RawField(2, MetaGraph(GraphBytes("a = Const()\nb = Relu(a)"), "serve"));
}

TEST(CliFormatsTest, RewritesAndStripsEveryBinaryFormat) {
  const TempDir dir;
  Done(Scope({"rewrite", dir.Write("g", Mnist()), "-o", dir / "graph", "--quiet"}));
  const std::string rewritten = ReadFile(dir / "graph");
  for (const auto& [original, expected] : std::vector<std::pair<std::string, std::string>>{
           {MetaGraph(Mnist(), "train"), MetaGraph(rewritten, "train")},
           {RawNumber(1, 1) + RawField(2, MetaGraph(Mnist(), "train")),
            RawNumber(1, 1) + RawField(2, MetaGraph(rewritten, "train"))}}) {
    const std::string in = dir.Write("in", original);
    Done(Scope({"rewrite", in, "-o", dir / "out"}));
    EXPECT_TRUE(ReadFile(dir / "out") == expected);
    Done({"strip", dir / "out", "-o", dir / "back"});
    EXPECT_TRUE(ReadFile(dir / "back") == original);
    // It contains no edits: every byte is the same.
    Done({"strip", in, "-o", dir / "same"});
    EXPECT_TRUE(ReadFile(dir / "same") == original);
  }
}

TEST(CliFormatsTest, AMetaGraphForServingIsKept) {
  const TempDir dir;
  const std::string in = dir.Write("saved_model.pb", Model());
  // The directory stands for the file in it.
  const ChildResult result = Spillway(Scope({"rewrite", dir / "", "-o", dir / "out", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("MetaGraph 0 (tags: train): rewritten"),
                                HasSubstr("MetaGraph 1 (tags: serve): kept as it is\n")));
  const json report = json::parse(result.out);
  ASSERT_EQ(report["meta_graphs"].size(), 2u);
  EXPECT_EQ(report["meta_graphs"][0]["tags"], json({"train"}));
  EXPECT_EQ(report["meta_graphs"][0]["report"]["outcome"], "OUTCOME_REWRITTEN");
  EXPECT_EQ(report["meta_graphs"][1]["index"], 1);
  EXPECT_EQ(report["meta_graphs"][1]["kept_because"]["reason"], "NO_BACKWARD_PART");
  EXPECT_THAT(ReadFile(dir / "out"),
              EndsWith(MetaGraph(GraphBytes("a = Const()\nb = Relu(a)"), "serve")));
  Done({"strip", dir / "out", "-o", dir / "back"});
  EXPECT_TRUE(ReadFile(dir / "back") == Model());
  // With none to train, no graph can be rewritten.
  const std::string serve =
      RawNumber(1, 1) + RawField(2, MetaGraph(GraphBytes("a = NoOp()"), "serve"));
  ExpectError(Spillway(Scope({"rewrite", dir.Write("serve", serve), "-o", dir / "x"})), 2,
              {"MetaGraph 0 (tags: serve): "});
  ExpectError(Spillway(Scope({"rewrite", dir / "", "-o", in})), 2, {"overwrite the input"});
}

// The plan of each MetaGraph is applied to it; that of one alone to its own.
TEST(CliFormatsTest, PlansOfAModel) {
  const TempDir dir;
  const std::string in = dir.Write("model", Model());
  const std::string plans = dir / "plans";
  Done(Scope({"rewrite", in, "-o", dir / "out", "--save-plan", plans, "--quiet"}));
  const json saved = json::parse(ReadFile(plans));
  ASSERT_EQ(saved["meta_graphs"].size(), 2u);
  EXPECT_EQ(saved["meta_graphs"][1]["kept_because"]["reason"], "NO_BACKWARD_PART");
  const json& plan = saved["meta_graphs"][0]["plan"];
  for (const std::string& file : {plans, dir.Write("plan", plan.dump())}) {
    const ChildResult result = Spillway({"apply", file, in, "-o", dir / "applied"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("MetaGraph 1 (tags: serve): kept as it is\n"));
    EXPECT_TRUE(ReadFile(dir / "applied") == ReadFile(dir / "out"));
  }
  // A plan of the wrong MetaGraph fits none.
  json wrong = saved;
  wrong["meta_graphs"][0]["index"] = 1;
  wrong["meta_graphs"][1]["index"] = 0;
  ExpectError(Spillway({"apply", dir.Write("wrong", wrong.dump()), in, "-o", dir / "x"}), 2,
              {"MetaGraph 0 (tags: train): "});
}

TEST(CliFormatsTest, OtherCommandsReadModels) {
  const TempDir dir;
  const std::string in = dir.Write("model", Model());
  const json inspected = json::parse(Spillway({"inspect", in, "--json"}).out);
  EXPECT_EQ(inspected["meta_graphs"][1]["graph"]["node_count"], "2");
  EXPECT_THAT(Spillway({"inspect", in}).out, HasSubstr("MetaGraph 1 (tags: serve)\n"));
  Done(Scope({"rewrite", in, "-o", dir / "out", "--quiet"}));
  const ChildResult diff = Spillway({"diff", in, dir / "out"});
  EXPECT_EQ(diff.exit_code, 1);
  EXPECT_THAT(diff.out, AllOf(HasSubstr("swaps\n"),
                              HasSubstr("MetaGraph 1 (tags: serve)\nthe graphs are identical; ")));
  EXPECT_EQ(Spillway({"diff", in, in}).out,
            "MetaGraph 0 (tags: train)\nthe files are identical\n\n"
            "MetaGraph 1 (tags: serve)\nthe files are identical\n");
  ExpectError(Spillway({"diff", in, dir.Write("graph", Mnist())}), 2,
              {"A has 2 MetaGraphs and B has 1"});
  // Names are replaced; the mapping lists them.
  Done({"anonymize", in, "-o", dir / "anon", "--mapping", dir / "map"});
  EXPECT_EQ(ReadFile(dir / "anon").find("adam_optimizer"), std::string::npos);
  EXPECT_THAT(ReadFile(dir / "map"), HasSubstr("adam_optimizer"));
  EXPECT_THAT(Spillway(Scope({"rewrite", dir / "anon", "-o", dir / "x"})).err,
              HasSubstr("9 tensors"));
}

TEST(CliFormatsTest, TextStaysText) {
  const TempDir dir;
  auto file = format::GraphFile::Read("node { name: 'a' op: 'b' }", absl::nullopt);
  const std::string text = *std::move(*file).WithGraphs({Mnist()});
  const std::string commented = "# Mine.\n" + text;
  const std::string in = dir.Write("graph.pbtxt", commented);
  Done(Scope({"rewrite", in, "-o", dir / "out"}));
  EXPECT_THAT(ReadFile(dir / "out"), HasSubstr("lms/swapout_"));
  Done({"strip", dir / "out", "-o", dir / "back"});
  EXPECT_TRUE(ReadFile(dir / "back") == text);  // The same graph; comments are gone.
  Done(Scope({"rewrite", in, "--save-plan", dir / "plan", "--quiet"}));
  Done({"apply", dir / "plan", in, "-o", dir / "applied"});
  EXPECT_TRUE(ReadFile(dir / "applied") == ReadFile(dir / "out"));
  Done({"strip", in, "-o", dir / "same"});
  EXPECT_TRUE(ReadFile(dir / "same") == commented);
}

// A disk that is full, and a limit on the size of files.
TEST(CliFormatsTest, NothingIsLeftOfAnOutputThatDoesNotFit) {
  const TempDir dir;
  const std::string in = dir.Write("in", Mnist());
  const std::string out = dir.Write("out", "old");
  const Words rewrite = {"rewrite", "--strategy", "scope"};
  ExpectError(Spillway(Scope({"rewrite", in, "-o", "/dev/full", "--quiet"})), 4, {"No space left"});
  for (const Words& command : {rewrite, {"anonymize"}}) {
    const Words limited = {"/bin/sh", "-c", "ulimit -f 8; exec \"$0\" \"$@\"", kProgram};
    ExpectError(RunChild(limited + command + Words{in, "-o", out, "--quiet"}), 4,
                {"File too large"});
  }
  EXPECT_EQ(ReadFile(out), "old");
  EXPECT_THAT(dir.Names(), ElementsAre("in", "out"));
}

std::string WithLongNames() {
  const std::string scope = std::string(150, 'a') + "/";
  auto file = format::GraphFile::Read("node { name: 'a' op: 'b' }", absl::nullopt);
  std::string text = *std::move(*file).WithGraphs({Mnist()});
  // Every name and every reference of it.
  for (const char* mark : {"  name: \"", "  input: \"^", "  input: \"", "loc:@"}) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      const size_t end = at + std::string(mark).size();
      if (text[end] != '^' && text.compare(end, scope.size(), scope) != 0) text.insert(end, scope);
    }
  }
  return text;
}

TEST(CliFormatsTest, NoLineOfAReportIsTooLong) {
  const TempDir dir;
  const std::string in = dir.Write("in", WithLongNames());
  const ChildResult rewrite =
      Spillway(Scope({"rewrite", in, "-o", dir / "out", "--debug", "--debug-level", "1"}));
  ASSERT_EQ(rewrite.exit_code, 0) << rewrite.err;
  const ChildResult inspect = Spillway({"inspect", in, "--batch-size", "7"});
  const ChildResult diff = Spillway({"diff", in, dir / "out"});
  EXPECT_THAT(diff.out, HasSubstr("swaps\n"));
  for (const std::string& text :
       {rewrite.err, inspect.out, diff.out, Spillway({"capabilities"}).out}) {
    std::istringstream lines(text);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_GT(count, 5);
  }
  EXPECT_THAT(inspect.out, HasSubstr("aaa..."));
}

// The program's output to a terminal as standard error.
std::string OnATerminal(const Words& command) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_EQ(grantpt(terminal), 0);
  EXPECT_EQ(unlockpt(terminal), 0);
  const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  const pid_t child = StartChild(command, -1, -1, other);
  close(other);
  std::string text(100000, '\0');
  size_t size = 0;
  // Ends with an error when the child has closed its end.
  for (ssize_t n; (n = read(terminal, &text[size], text.size() - size)) > 0;) size += n;
  WaitForChild(child);
  close(terminal);
  return text.substr(0, size);
}

TEST(CliFormatsTest, ColourIsForTerminals) {
  const auto with = [](const std::string& variables, const std::string& flags = "") {
    return Words{"/bin/sh", "-c",
                 "exec env " + variables + " " + kProgram + " inspect /nowhere " + flags};
  };
  EXPECT_THAT(OnATerminal(with("-u NO_COLOR TERM=xterm")), StartsWith("\x1b[31mspillway: "));
  EXPECT_THAT(OnATerminal(with("NO_COLOR=1 TERM=xterm")), StartsWith("spillway: "));
  EXPECT_THAT(OnATerminal(with("-u NO_COLOR TERM=dumb")), StartsWith("spillway: "));
  EXPECT_THAT(OnATerminal(with("-u NO_COLOR -u TERM")), StartsWith("spillway: "));
  EXPECT_THAT(OnATerminal(with("-u NO_COLOR TERM=xterm", "--color never")),
              StartsWith("spillway: "));
  // Not a terminal.
  EXPECT_THAT(RunChild(with("-u NO_COLOR TERM=xterm")).err, StartsWith("spillway: "));
  EXPECT_THAT(RunChild(with("NO_COLOR=1", "--color always")).err, StartsWith("\x1b[31mspillway: "));
  EXPECT_THAT(RunChild(with("A=1", "--color sometimes")).err, HasSubstr("--color"));
  const TempDir dir;
  const std::string in = dir.Write("in", Mnist());
  EXPECT_THAT(Spillway({"inspect", in, "--color", "always"}).out, HasSubstr("\x1b[1m  op type"));
  EXPECT_THAT(Spillway({"inspect", in}).out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace spillway::testing
