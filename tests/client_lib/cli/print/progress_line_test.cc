// The progress line: its text, and the program on a terminal (a pseudo terminal) and off it.
#include "client_lib/cli/print/progress_line.h"

#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/child_process.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway::cli {
namespace {

using testing::Fault;
using testing::GraphWithPadding;
using ::testing::HasSubstr;
using testing::kMnistPath;
using ::testing::Not;
using testing::ServerOptions;
using testing::TempDir;
using testing::TestServer;

constexpr char kProgram[] = SPILLWAY_BIN_DIR "/spillway";
constexpr char kErase[] = "\r\033[K";

TEST(FormatProgressTest, NamesStageAndBytesOrTime) {
  EXPECT_EQ(FormatProgress({Stage::kSending, 120 << 20, 480 << 20}, absl::Seconds(9), "rewriting"),
            "spillway: sending 120 of 480 MiB");
  EXPECT_EQ(FormatProgress({Stage::kReceiving, 1 << 19, 3 << 20}, absl::Seconds(9), "rewriting"),
            "spillway: receiving 0.5 of 3.0 MiB");
  EXPECT_EQ(FormatProgress({Stage::kRewriting, 0, 0}, absl::Milliseconds(3120), "exploring"),
            "spillway: exploring... 3.1 s");
}

// The program on a terminal of its own.
class OnTerminal {
 public:
  OnTerminal(const std::vector<std::string>& arguments, unsigned short columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ != 0) return;
    setenv("NO_COLOR", "1", 1);  // The test searches the text.
    std::vector<char*> argv = {const_cast<char*>(kProgram)};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.data()));
    argv.push_back(nullptr);
    execv(kProgram, argv.data());
    _exit(127);
  }
  ~OnTerminal() { close(terminal_); }

  // Reads until `text` has come. False if the program ends before.
  bool ReadUntil(const std::string& text) {
    while (seen_.find(text) == std::string::npos) {
      if (!ReadMore()) return false;
    }
    return true;
  }

  // Reads the rest and gives the exit code.
  int Finish() {
    while (ReadMore()) {
    }
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void Interrupt() { kill(child_, SIGINT); }
  const std::string& seen() const { return seen_; }

 private:
  bool ReadMore() {
    char buffer[1000];
    const ssize_t size = read(terminal_, buffer, sizeof(buffer));
    if (size <= 0) return false;  // EIO: the other end is closed.
    seen_.append(buffer, size);
    return true;
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string seen_;
};

ServerOptions Hang() {
  ServerOptions options;
  options.fault = Fault::kHang;
  return options;
}

TEST(ProgressLineTest, IsRedrawnInPlaceAndTakenAway) {
  TestServer server(Hang());
  const TempDir folder;
  OnTerminal run({"rewrite", kMnistPath, "-o", folder / "out.pb", "--server", server.target()}, 80);
  ASSERT_TRUE(run.ReadUntil("spillway: rewriting... 0.6 s")) << run.seen();
  run.Interrupt();
  EXPECT_EQ(run.Finish(), 6) << run.seen();
  // Every time the line is erased first, and there is no line end until the error.
  const std::string before = run.seen().substr(0, run.seen().find("[STOPPED]"));
  EXPECT_EQ(before.find('\n'), std::string::npos) << before;
  EXPECT_EQ(before.compare(0, 4, kErase), 0) << before;
  const size_t last_draw = before.rfind("rewriting...");
  const size_t last_erase = before.rfind(kErase);
  EXPECT_GT(last_erase, last_draw);
  EXPECT_EQ(before.substr(last_erase + 4, 10), "spillway: ");
  EXPECT_THAT(before.substr(last_erase), HasSubstr("cancelled"));
}

TEST(ProgressLineTest, CountsWhatIsSent) {
  // Larger than the connection's buffers while the server does not read.
  TestServer server(Hang());
  const TempDir folder;
  const std::string graph = folder.Write("graph.pb", GraphWithPadding(40 << 20));
  OnTerminal run({"rewrite", graph, "-o", folder / "out.pb", "--server", server.target()}, 80);
  EXPECT_TRUE(run.ReadUntil(" of 40 MiB")) << run.seen();
  EXPECT_THAT(run.seen(), HasSubstr("spillway: sending "));
  run.Interrupt();
  EXPECT_EQ(run.Finish(), 6) << run.seen();
}

TEST(ProgressLineTest, IsNotBrokenByANarrowTerminal) {
  TestServer server(Hang());
  const TempDir folder;
  OnTerminal run({"rewrite", kMnistPath, "-o", folder / "out.pb", "--server", server.target()}, 12);
  EXPECT_TRUE(run.ReadUntil("spillway: r")) << run.seen();
  run.Interrupt();
  EXPECT_EQ(run.Finish(), 6);
  EXPECT_THAT(run.seen(), Not(HasSubstr("spillway: re")));
}

TEST(ProgressLineTest, ARetryIsALineAboveIt) {
  ServerOptions full;
  full.fault = Fault::kEarlyError;
  full.pushback_ms = "1500";
  TestServer server(full);
  const TempDir folder;
  OnTerminal run({"rewrite", kMnistPath, "-o", folder / "out.pb", "--server", server.target(),
                  "--retries", "2"},
                 80);
  ASSERT_TRUE(run.ReadUntil("(3 of 3)\r\n")) << run.seen();
  run.Interrupt();
  run.Finish();
  // The second notice comes while the line stands: it begins in the first column, and the line is
  // drawn again below it.
  const size_t notice = run.seen().find("trying again", run.seen().find("(2 of 3)"));
  ASSERT_NE(notice, std::string::npos) << run.seen();
  const size_t start = run.seen().rfind(kErase, notice);
  ASSERT_NE(start, std::string::npos) << run.seen();
  EXPECT_EQ(run.seen().substr(start + 4, 10 + server.target().size()),
            "spillway: " + server.target());
}

TEST(ProgressLineTest, StaysOutOfPipesAndOfQuietRuns) {
  TestServer server(Hang());
  const TempDir folder;
  const std::vector<std::string> arguments = {"rewrite",         kMnistPath, "-o",
                                              folder / "out.pb", "--server", server.target(),
                                              "--timeout",       "1s"};
  std::vector<std::string> command = arguments;
  command.insert(command.begin(), kProgram);
  const testing::ChildResult piped = testing::RunChild(command);
  EXPECT_EQ(piped.exit_code, 6);
  EXPECT_THAT(piped.err, Not(HasSubstr("\r")));
  EXPECT_THAT(piped.err, Not(HasSubstr("rewriting")));

  std::vector<std::string> quiet = arguments;
  quiet.push_back("--quiet");
  OnTerminal run(quiet, 80);
  EXPECT_EQ(run.Finish(), 6);
  EXPECT_THAT(run.seen(), Not(HasSubstr("rewriting")));
}

// In process: how many plans were tried, and the best so far. Interrupted, it leaves nothing.
TEST(ProgressLineTest, TuningTellsItsPlans) {
  const TempDir folder;
  OnTerminal run({"rewrite", SPILLWAY_TEST_GRAPHS "/resnet50_tf1/graph_shapes.pb", "-o",
                  folder / "out.pb", "--gpu-memory-bytes", "8GiB", "--planning-effort", "high"},
                 120);
  ASSERT_TRUE(run.ReadUntil(" plans tried")) << run.seen();
  run.Interrupt();
  EXPECT_EQ(run.Finish(), 6) << run.seen();
  EXPECT_TRUE(folder.Names().empty());
}

// Or the best plan so far, if requested.
TEST(ProgressLineTest, KeepsTheBestPlanIfAskedTo) {
  const TempDir folder;
  const std::string graph = SPILLWAY_TEST_GRAPHS "/resnet50_tf1/graph_shapes.pb";
  OnTerminal run({"rewrite", graph, "-o", folder / "out.pb", "--gpu-memory-bytes", "8GiB",
                  "--planning-effort", "high", "--keep-best"},
                 120);
  ASSERT_TRUE(run.ReadUntil(", best step so far ")) << run.seen();
  run.Interrupt();
  EXPECT_EQ(run.Finish(), 10) << run.seen();
  EXPECT_THAT(run.seen(), HasSubstr("the search was ended: this is its best plan so far"));
  EXPECT_EQ(testing::RunChild({kProgram, "simulate", folder / "out.pb", "--gpu-memory-bytes",
                               "8GiB", "--require-fit"})
                .exit_code,
            0);
  // Without a plan, nothing is written, and it is a call that was stopped.
  EXPECT_EQ(testing::RunChild({kProgram, "rewrite", graph, "-o", folder / "none.pb", "--keep-best",
                               "--gpu-memory-bytes", "8GiB", "--timeout", "1ms"})
                .exit_code,
            6);
  EXPECT_FALSE(std::filesystem::exists(folder / "none.pb"));
}

// Tried sizes go to standard output and the line to standard error, on one terminal.
TEST(ProgressLineTest, ExploringTellsItsSizes) {
  const TempDir folder;
  const std::string graph = folder / "graph.pb";
  ASSERT_EQ(
      testing::RunChild({"/bin/sh", "-c",
                         "gzip -dc " SPILLWAY_TEST_GRAPHS "/resnet50_free/graph.pb.gz > " + graph})
          .exit_code,
      0);
  OnTerminal run({"explore", graph, "--sizes", "1:9000"}, 120);
  ASSERT_TRUE(run.ReadUntil(" sizes tried")) << run.seen();
  EXPECT_THAT(run.seen(), HasSubstr("spillway: exploring: "));
  run.Interrupt();
  EXPECT_EQ(run.Finish(), 6) << run.seen();
  EXPECT_THAT(run.seen(), HasSubstr("\n  9000 "));
  EXPECT_THAT(run.seen(), HasSubstr("; so far: "));
}

}  // namespace
}  // namespace spillway::cli
