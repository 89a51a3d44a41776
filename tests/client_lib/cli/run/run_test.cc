// `spillway run` as job scripts use it.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "rewrite_core/rewriter.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Much more than any of these takes, much less than forever: for hangs without a deadline.
constexpr absl::Duration kNotForever = absl::Seconds(60);

// A command that shows the path of its graph.
const Words kShowGraph = {"--", "sh", "-c", "printf %s \"$SPILLWAY_GRAPH\""};

Words RunWords(const std::string& graph, const TempDir& dir, const Words& more) {
  return Words{kProgram,
               "run",
               "--graph",
               graph,
               "--strategy",
               "scope",
               "--optimizer-scopes",
               "adam_optimizer",
               "--cache-dir",
               dir / "cache"} +
         more;
}

ChildResult RunMnist(const TempDir& dir, const Words& more, const std::string& input = "") {
  return RunChild(RunWords(kMnistPath, dir, more), input);
}

// The names in the cache folder, hidden files too.
Words CacheNames(const TempDir& dir) {
  Words names;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(dir / "cache", error)) {
    names.push_back(file.path().filename());
  }
  return names;
}

std::string ExpectedGraph() {
  v1::RewriteOptions options = MnistOptions();
  options.add_outputs(v1::OUTPUT_GRAPH);
  const auto response =
      core::Rewrite(ReadFile(kMnistPath), options, core::DefaultLimits(), core::StopToken());
  EXPECT_TRUE(response.ok()) << response.status();
  return response->graph_def();
}

int LineCount(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Variables that the machine that runs the tests may have.
class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    for (const char* name : {"SPILLWAY_GRAPH",
                             "SPILLWAY_ORIGINAL_GRAPH",
                             "SPILLWAY_REPORT",
                             "SPILLWAY_SERVER",
                             "SPILLWAY_CACHE_DIR",
                             "SPILLWAY_METRICS_TEXTFILE",
                             "SLURM_TMPDIR",
                             "TF_GPU_HOST_MEM_LIMIT_IN_MB",
                             "TF_CUDNN_WORKSPACE_LIMIT_IN_MB",
                             "SPILLWAY_WORKSPACE_LIMIT_IN_MB",
                             "TF_DETERMINISTIC_OPS",
                             "TF_CUDNN_USE_AUTOTUNE",
                             "SPILLWAY_JOB",
                             "SPILLWAY_USER",
                             "SPILLWAY_QUEUE",
                             "SPILLWAY_MODEL",
                             "SLURM_JOB_ID",
                             "SLURM_ARRAY_JOB_ID",
                             "SLURM_ARRAY_TASK_ID",
                             "SLURM_JOB_USER",
                             "SLURM_JOB_PARTITION",
                             "SLURM_JOB_NAME",
                             "KUBERNETES_SERVICE_HOST"}) {
      unsetenv(name);
    }
  }

  const TempDir dir_;
};

// 20 MiB with the hole that an initializer may leave, of 20.7: in 14 variations they are there.
TEST_F(RunTest, TheLineSaysThatTensorFlowMayRunOut) {
  const std::string graph = dir_ / "tight.pb";
  std::ofstream(graph, std::ios::binary) << GraphBytes(kTightGraph);
  for (const char* cached : {"", "from the cache"}) {
    const ChildResult result =
        RunChild({kProgram, "run", "--graph", graph, "--targets", "sum", "--gpu-memory-bytes",
                  "21705523", "--cache-dir", dir_ / "cache", "--", "true"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(LineCount(result.err), 1) << result.err;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("fits in 14 of 20 variations: TensorFlow may run out of memory; "
                                "raise --allocator-reserve; "),
                      HasSubstr(cached)));
  }
}

TEST_F(RunTest, TheCommandGetsTheRewrittenGraph) {
  const ChildResult result = RunMnist(
      dir_,
      {"--report", dir_ / "report.json", "--", "sh", "-c",
       "printf '%s\\n' \"$SPILLWAY_GRAPH\" \"$SPILLWAY_ORIGINAL_GRAPH\" \"$SPILLWAY_REPORT\"; "
       "cat"},
      "the command's input");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Words lines = absl::StrSplit(result.out, '\n');
  ASSERT_THAT(lines, SizeIs(4)) << result.out;
  EXPECT_TRUE(ReadFile(lines[0]) == ExpectedGraph());
  EXPECT_THAT(lines[0], AllOf(StartsWith(dir_ / "cache/"), EndsWith(".pb")));
  EXPECT_EQ(lines[1], kMnistPath);
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(ReadFile(lines[2]), &report).ok());
  EXPECT_EQ(report.outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(ReadFile(dir_ / "report.json"), ReadFile(lines[2]));
  EXPECT_EQ(lines[3], "the command's input");
  EXPECT_THAT(result.err, AllOf(StartsWith("spillway: "), HasSubstr(lines[0])));
  EXPECT_EQ(LineCount(result.err), 1) << result.err;
  EXPECT_EQ(RunMnist(dir_, Words{"--quiet"} + kShowGraph).err, "");
}

TEST_F(RunTest, ReadsASavedModelButNotItsFolder) {
  // saved_model_schema_version: 1, and one MetaGraph with a graph.
  const auto saved_model = [](const std::string& graph) {
    return RawNumber(1, 1) + RawField(2, RawField(2, graph));
  };
  std::filesystem::create_directory(dir_ / "model");
  const std::string path = dir_ / "model/saved_model.pb";
  std::ofstream(path, std::ios::binary) << saved_model(ReadFile(kMnistPath));
  const ChildResult file = RunChild(RunWords(path, dir_, kShowGraph));
  EXPECT_EQ(file.exit_code, 0);
  EXPECT_TRUE(ReadFile(file.out) == saved_model(ExpectedGraph())) << file.err;
  const ChildResult folder = RunChild(RunWords(dir_ / "model", dir_, kShowGraph));
  EXPECT_EQ(folder.out, dir_ / "model");
  EXPECT_THAT(folder.err, HasSubstr("is a folder"));
}

TEST_F(RunTest, ExitCodeAndSignalsAreTheCommands) {
  for (const int code : {0, 1, 7, 126, 255}) {
    EXPECT_EQ(RunMnist(dir_, {"--", "sh", "-c", absl::StrCat("exit ", code)}).exit_code, code);
  }
  for (const int number : {SIGTERM, SIGKILL, SIGSEGV}) {
    EXPECT_EQ(RunMnist(dir_, {"--", "sh", "-c", absl::StrCat("kill -", number, " $$")}).signal,
              number);
  }
}

TEST_F(RunTest, TheCommandIsTheSameProcessWithNothingElseInIt) {
  // Its own id, its children, its open files (that of the folder listed is one), its signals.
  const std::vector<std::string> show = {
      "/usr/bin/env", "python3", "-c",
      "import os\n"
      "print(os.getpid())\n"
      "print(open('/proc/self/task/%d/children' % os.getpid()).read().strip())\n"
      "print(sorted(int(f) for f in os.listdir('/proc/self/fd')))\n"
      "print([l.split()[1] for l in open('/proc/self/status') if l[:6] == 'SigBlk'])\n"};
  // Its output without its id, which must be that of the process that was started.
  const auto shown = [this](const std::vector<std::string>& words) {
    const std::string out = dir_ / "out";
    const int fd = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const pid_t child = StartChild(words, -1, fd, -1);
    EXPECT_EQ(WaitForChild(child).exit_code, 0);
    close(fd);
    std::string text = ReadFile(out);
    const std::string id = absl::StrCat(child, "\n");
    EXPECT_EQ(text.substr(0, id.size()), id);
    return text.substr(std::min(id.size(), text.size()));
  };
  std::vector<std::string> after_dashes = {"--"};
  after_dashes.insert(after_dashes.end(), show.begin(), show.end());
  // The test may have been started with files open, as ctest does.
  EXPECT_EQ(shown(RunWords(kMnistPath, dir_, after_dashes)), shown(show));
}

// Python ignores SIGPIPE itself, so this runs a program that does not.
TEST_F(RunTest, SignalsAreInherited) {
  const std::string show = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
  for (const std::string trap : {"", "trap '' TERM PIPE; ", "trap '' USR1; "}) {
    std::string command;
    for (const std::string& word : RunWords(kMnistPath, dir_, {"--quiet"})) {
      absl::StrAppend(&command, " '", word, "'");
    }
    const ChildResult with = RunChild({"/bin/sh", "-c", trap + "exec" + command + " -- " + show});
    const ChildResult without = RunChild({"/bin/sh", "-c", trap + "exec " + show});
    EXPECT_THAT(without.out, HasSubstr("SigIgn"));
    EXPECT_EQ(with.out, without.out) << trap;
  }
}

TEST_F(RunTest, WhatFollowsTheDashesIsTheCommandsAlone) {
  const ChildResult result = RunMnist(
      dir_, {"--", "printf", "<%s>", "--graph", "--quiet", "--", "--help", "[1,2]", "", "a b"});
  EXPECT_EQ(result.out, "<--graph><--quiet><--><--help><[1,2]><><a b>") << result.err;
}

TEST_F(RunTest, ACommandThatCannotRunIsFoundBeforeTheRewrite) {
  TestServer server;
  const std::string script = dir_.Write("script", "#!/bin/sh\n");
  const auto run = [&](const std::string& command) {
    return RunMnist(dir_, {"--server", server.target(), "--", command});
  };
  for (const auto& [command, code] :
       std::vector<std::pair<std::string, int>>{{"no-such-command", 127},
                                                {dir_ / "no/such", 127},
                                                {"", 127},
                                                {script, 126},
                                                {dir_ / "", 126}}) {
    const ChildResult result = run(command);
    EXPECT_EQ(result.exit_code, code) << command;
    EXPECT_EQ(LineCount(result.err), 1) << result.err;
    EXPECT_THAT(result.err, EndsWith("[COMMAND]\n"));
  }
  EXPECT_EQ(server.unary_calls(), 0);
  // Errors found only by exec have the same code.
  ASSERT_EQ(chmod(dir_.Write("lost", "#!/no/such/shell\n").c_str(), 0700), 0);
  EXPECT_EQ(run(dir_ / "lost").exit_code, 127);
}

// Only without a command or a graph there is nothing to run.
TEST_F(RunTest, WithoutACommandOrAGraphNothingRuns) {
  for (const Words& words :
       {Words{"--graph", kMnistPath, "--"}, Words{"--graph", kMnistPath},
        Words{"--graph", kMnistPath, "true"}, Words{"--no-such", "--graph", kMnistPath},
        Words{"--", "true"}, Words{"--no-such", "--", "true"}, Words{"--graph", "--", "true"},
        Words{"--graph=", "--", "true"}, Words{"--graph", "", "--", "true"},
        Words{"--graph", "", "--no-such", "--", "true"}, Words{"--graph", "-", "--", "true"},
        Words{"--graph", "-", "--no-such", "--", "true"}}) {
    const ChildResult result =
        RunChild(Words{kProgram, "run", "--cache-dir", dir_ / "cache"} + words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(LineCount(result.err), 1) << result.err;
  }
  EXPECT_THAT(CacheNames(dir_), IsEmpty());
}

// A way to fail: its input, and its report.
struct Failure {
  std::string graph;
  Words options;
  int exit_code;
  std::string reason;
};

// After each of `failures`: the command runs with the original graph after one line, or not at all.
void ExpectFailures(const TempDir& dir, const std::vector<Failure>& failures) {
  for (const Failure& failure : failures) {
    SCOPED_TRACE(failure.graph + " " + failure.reason);
    const absl::Time start = absl::Now();
    const ChildResult open = RunChild(RunWords(failure.graph, dir, failure.options + kShowGraph));
    EXPECT_EQ(open.exit_code, 0);
    EXPECT_EQ(open.out, failure.graph);
    EXPECT_THAT(open.err, StartsWith("spillway: the command runs with the original graph: "));
    EXPECT_THAT(open.err, EndsWith(" [" + failure.reason + "]\n"));
    EXPECT_EQ(LineCount(open.err), 1) << open.err;
    const ChildResult closed = RunChild(
        RunWords(failure.graph, dir, failure.options + Words{"--fail-closed"} + kShowGraph));
    EXPECT_EQ(closed.exit_code, failure.exit_code);
    EXPECT_EQ(closed.out, "");
    EXPECT_THAT(closed.err,
                AllOf(StartsWith("spillway: "), EndsWith(" [" + failure.reason + "]\n")));
    EXPECT_EQ(LineCount(closed.err), 1) << closed.err;
    EXPECT_LT(absl::Now() - start, kNotForever);
  }
}

// Names that differ only in spelling are found before anything is read; links are found by the
// child. Either way no file is written over another.
TEST_F(RunTest, NoOutputOverwritesTheGraphOrAnother) {
  const std::string bytes = ReadFile(kMnistPath);
  const std::string graph = dir_.Write("graph.pb", bytes);
  const std::string other_name = dir_ / "./no/../graph.pb";
  for (const Words& words :
       {Words{"--report", graph}, Words{"--report", other_name}, Words{"--metrics-textfile", graph},
        Words{"--metrics-textfile", other_name},
        Words{"--report", dir_ / "out", "--metrics-textfile", dir_ / "./out"}}) {
    const ChildResult closed =
        RunChild(RunWords(graph, dir_, words + Words{"--fail-closed"} + kShowGraph));
    EXPECT_EQ(closed.exit_code, 2) << closed.err;
    EXPECT_EQ(closed.out, "");
    const ChildResult open = RunChild(RunWords(graph, dir_, words + kShowGraph));
    EXPECT_EQ(open.out, graph);
    for (const std::string& err : {closed.err, open.err}) {
      EXPECT_THAT(err, HasSubstr("would overwrite"));
    }
  }
  std::filesystem::create_symlink(graph, dir_ / "soft");
  std::filesystem::create_hard_link(graph, dir_ / "hard");
  for (const char* link : {"soft", "hard"}) {
    ExpectFailures(dir_, {{graph, {"--report", dir_ / link}, 2, "CONFLICTING_OPTIONS"}});
    const ChildResult metrics = RunChild(
        RunWords(graph, dir_, Words{"--quiet", "--metrics-textfile", dir_ / link} + kShowGraph));
    EXPECT_THAT(metrics.out, EndsWith(".pb"));
    EXPECT_THAT(metrics.err, AllOf(StartsWith("spillway: no metrics: "),
                                   HasSubstr("would overwrite the file of --graph")));
    EXPECT_EQ(LineCount(metrics.err), 1) << metrics.err;
    EXPECT_TRUE(ReadFile(dir_ / link) == bytes);
  }
  EXPECT_TRUE(ReadFile(graph) == bytes);
}

// The flags of `run`, from its help, so that a new one is among them: each with its value's syntax,
// or "".
std::vector<std::pair<std::string, std::string>> FlagsOfRun() {
  std::vector<std::pair<std::string, std::string>> flags;
  const ChildResult help = RunChild({kProgram, "run", "--help-all"});
  for (absl::string_view line : absl::StrSplit(help.out, '\n')) {
    // Texts beside and below a flag are indented further.
    if (!absl::ConsumePrefix(&line, "  --")) continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    flags.emplace_back("--" + words[0], words.size() > 1 ? words[1] : "");
  }
  return flags;
}

// A site's hook passes options to every job: an error in one, in spelling, value or version, costs
// a line and not the job.
TEST_F(RunTest, WhateverIsWrongWithAFlagTheCommandRuns) {
  const auto flags = FlagsOfRun();
  EXPECT_GT(flags.size(), 70u);
  for (const char* one : {"--graph", "--recompute", "--timeout", "--tls-key", "--job", "--color"}) {
    EXPECT_TRUE(std::any_of(flags.begin(), flags.end(), [&](const auto& flag) {
      return flag.first == one;
    })) << one;
  }
  std::vector<Words> wrong = {{"--of-a-newer-version"},
                              {"--of-a-newer-version=3"},
                              {"--of-a-newer-version", "3"},
                              {"-z"},
                              {"stray"}};
  for (const auto& [flag, syntax] : flags) {
    if (flag == "--help" || flag == "--help-all" || flag == "--fail-closed") continue;
    wrong.push_back({flag + "-of-a-newer-version"});
    wrong.push_back({flag + "=nonsense\n\a"});  // No flag without a value has such a one, either.
    if (syntax.empty() || flag == "--graph") continue;
    wrong.push_back({flag, ""});
    wrong.push_back({flag});  // Its value is missing.
    wrong.push_back({flag, "1", flag, "1"});
    if (absl::StrContains(syntax, '|')) wrong.push_back({flag, "of_a_newer_version"});
  }
  // With an unchanged graph, right flags give the same output.
  const std::string graph = dir_.Write("cut.pb", ReadFile(kMnistPath).substr(0, 5000));
  const auto run = [&](const Words& words) {
    // Some write a file or folder named by a leftover word.
    return RunChild(Words{"/usr/bin/env", "-C", dir_ / "", kProgram, "run"} + words +
                    Words{"--graph", graph, "--quiet", "--timeout", "20s", "--retries", "0"} +
                    kShowGraph);
  };
  setenv("SPILLWAY_SERVER", "unix:/nowhere", 1);  // So that flags of the connection are of use.
  for (const Words& words : wrong) {
    const ChildResult result = run(words);
    const std::string what = ::testing::PrintToString(words) + result.err;
    EXPECT_EQ(result.exit_code, 0) << what;
    EXPECT_EQ(result.out, graph) << what;
    EXPECT_THAT(result.err, StartsWith("spillway: the command runs with the original graph: "))
        << what;
    EXPECT_EQ(LineCount(result.err), 1) << what;
  }
  unsetenv("SPILLWAY_SERVER");
}

TEST_F(RunTest, WrongFlagsAreFailuresLikeOthers) {
  ExpectFailures(dir_, {{kMnistPath, {"--no-such"}, 2, "BAD_OPTION"},
                        {kMnistPath, {"stray"}, 2, "BAD_OPTION"},
                        {kMnistPath, {"--lb", "many"}, 2, "BAD_OPTION"},
                        {kMnistPath, {"--timeout", "30"}, 2, "BAD_OPTION"},
                        {kMnistPath, {"--hardware", "nope"}, 2, "BAD_OPTION"},
                        {kMnistPath, {"--report", "-"}, 2, "CONFLICTING_OPTIONS"}});
  // They are counted, too.
  const std::string file = dir_ / "m.prom";
  for (const Words& words : {Words{"--no-such"}, Words{"--lb", "many"}}) {
    RunMnist(dir_, words + Words{"--metrics-textfile", file} + kShowGraph);
  }
  EXPECT_THAT(ReadFile(file), HasSubstr("spillway_hook_failures_total{reason=\"options\"} 2\n"));
  const ChildResult both = RunMnist(dir_, Words{"--fail-open", "--fail-closed"} + kShowGraph);
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_EQ(both.out, "");
}

// Options may name files, which may hang.
TEST_F(RunTest, AProfileThatHangsEndsWithTheTimeout) {
  const std::string fifo = dir_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int writer = open(fifo.c_str(), O_RDWR | O_CLOEXEC);  // Says nothing.
  ExpectFailures(dir_, {{kMnistPath, {"--profile", fifo, "--timeout", "300ms"}, 6, "STOPPED"}});
  close(writer);
}

// Variables that a site or a job may set.
TEST_F(RunTest, WhateverIsWrongWithAVariableTheCommandRuns) {
  const std::string folder = dir_ / "";
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"SPILLWAY_SERVER", "nonsense"},
           {"SPILLWAY_SERVER", "a:7070,\n"},
           {"SPILLWAY_SERVER", std::string(100'000, 'x')},
           {"SPILLWAY_CACHE_DIR", "/dev/null"},
           {"SPILLWAY_CACHE_DIR", "/nowhere/at/all"},
           {"SPILLWAY_METRICS_TEXTFILE", folder},
           {"SPILLWAY_METRICS_TEXTFILE", kMnistPath}}) {
    const ChildResult result =
        RunChild(Words{"/usr/bin/env", name + "=" + value, kProgram, "run", "--strategy", "scope",
                       "--quiet", "--graph", kMnistPath} +
                 kShowGraph);
    EXPECT_EQ(result.exit_code, 0) << name;
    EXPECT_EQ(LineCount(result.err), 1) << name << result.err;
    EXPECT_THAT(result.out, EndsWith(".pb"));
  }
}

TEST_F(RunTest, WrongGraphsAndOptions) {
  ExpectFailures(
      dir_, {{dir_.Write("cut.pb", ReadFile(kMnistPath).substr(0, 5000)), {}, 3, "MALFORMED_GRAPH"},
             {dir_.Write("empty.pb", ""), {}, 3, "EMPTY_GRAPH"},
             {dir_ / "missing.pb", {}, 4, "FILE"},
             {dir_ / "", {}, 4, "FILE"},
             {kMnistPath, {"--report", dir_ / "no/report.json"}, 4, "FILE"},
             {kMnistPath, {"--starting-scope", "nowhere"}, 2, "NAME_MATCHES_NOTHING"}});
}

TEST_F(RunTest, ServersThatFail) {
  ServerOptions options;
  options.fault = Fault::kEarlyError;
  TestServer overloaded(options);
  options.fault = Fault::kWrongChecksum;
  TestServer damaging(options);
  options.fault = Fault::kHang;
  TestServer silent(options);
  const std::string large = dir_.Write("large.pb", GraphWithPadding(3 << 20));  // Is streamed.
  ExpectFailures(dir_,
                 {{kMnistPath, {"--server", "127.0.0.1:1", "--retries", "0"}, 5, "UNAVAILABLE"},
                  {kMnistPath, {"--server", overloaded.target()}, 5, "OVERLOADED"},
                  {large, {"--server", damaging.target()}, 7, "BAD_STREAM"},
                  {kMnistPath, {"--server", silent.target(), "--timeout", "300ms"}, 6, "STOPPED"}});
  EXPECT_EQ(silent.hanging(), 2);
}

TEST_F(RunTest, WaitsThatWouldNotEnd) {
  const std::string fifo = dir_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ExpectFailures(dir_, {{fifo, {"--timeout", "300ms"}, 6, "STOPPED"}});
  // Another task that has the lock and does not come to an end.
  ASSERT_EQ(RunMnist(dir_, kShowGraph).exit_code, 0);
  for (const std::string& name : CacheNames(dir_)) {
    if (!absl::EndsWith(name, ".entry")) continue;
    const int fd = open((dir_ / "cache/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(flock(fd, LOCK_EX), 0);
    ExpectFailures(dir_, {{kMnistPath, {"--timeout", "300ms"}, 6, "STOPPED"}});
    EXPECT_THAT(RunMnist(dir_, Words{"--timeout", "300ms"} + kShowGraph).err,
                HasSubstr("while waiting for another run"));
    close(fd);
  }
  EXPECT_THAT(RunMnist(dir_, kShowGraph).out, EndsWith(".pb"));
}

// A frozen file system holds its writers in the kernel, where no signal reaches them, as a lost NFS
// server does. The command begins all the same, and the metrics are given up.
TEST_F(RunTest, AChildThatCannotBeKilledIsLeftBehind) {
  const std::string script = dir_.Write("script", R"(
    cd "$1" && command -v fsfreeze >/dev/null && truncate -s 16M image && mkfs.ext4 -q image &&
      mkdir mounted && mount -o loop image mounted || exit 77
    mkdir -m 700 mounted/cache
    fsfreeze -f mounted && "$2" run --graph "$3" --cache-dir mounted/cache --timeout 300ms \
      --metrics-textfile mounted/m.prom -- sh -c 'printf %s "$SPILLWAY_GRAPH"
        for child in $(cat /proc/$$/task/$$/children); do cat /proc/$child/comm; done >children'
    code=$?
    fsfreeze -u mounted
    until umount mounted; do sleep 0.1; done
    exit $code)");
  const ChildResult result = geteuid() == 0
                                 ? RunChild({"/bin/sh", script, dir_ / "", kProgram, kMnistPath})
                                 : ChildResult();
  if (geteuid() != 0 || result.exit_code == 77) {
    GTEST_SKIP() << "no file system can be mounted and frozen here: " << result.err;
  }
  EXPECT_EQ(result.out, kMnistPath) << result.err;
  EXPECT_THAT(result.err, HasSubstr("while opening the cache folder"));
  EXPECT_THAT(result.err, HasSubstr("no metrics: not done after 1s"));
  EXPECT_THAT(ReadFile(dir_ / "children"), HasSubstr("spillway"));
}

TEST_F(RunTest, CacheFoldersThatCannotBeUsed) {
  Words folders = {dir_.Write("file", ""), dir_ / "no/such/folder", dir_ / "shared"};
  ASSERT_EQ(mkdir((dir_ / "shared").c_str(), 0700), 0);
  ASSERT_EQ(chmod((dir_ / "shared").c_str(), 0770), 0);  // The group may write.
  ASSERT_EQ(mkdir((dir_ / "mine").c_str(), 0500), 0);
  if (geteuid() != 0) folders.push_back(dir_ / "mine");  // Root may write anywhere ...
  if (geteuid() == 0) {  // ... but to a folder that another user could fill.
    ASSERT_EQ(mkdir((dir_ / "foreign").c_str(), 0700), 0);
    ASSERT_EQ(chown((dir_ / "foreign").c_str(), 65534, 65534), 0);
    folders.push_back(dir_ / "foreign");
  }
  for (const std::string& folder : folders) {
    const Words words = {kProgram, "run", "--graph", kMnistPath, "--cache-dir", folder};
    const ChildResult open = RunChild(words + kShowGraph);
    EXPECT_EQ(open.out, kMnistPath) << open.err;
    EXPECT_EQ(LineCount(open.err), 1) << open.err;
    EXPECT_THAT(open.err, AllOf(HasSubstr(folder), EndsWith("[FILE]\n")));
    EXPECT_EQ(RunChild(words + Words{"--fail-closed"} + kShowGraph).exit_code, 4);
  }
}

// The default folder is in $TMPDIR, for this user alone; a foreign link there is refused.
TEST_F(RunTest, TheDefaultFolderIsPrivate) {
  const std::string before = getenv("TMPDIR") != nullptr ? getenv("TMPDIR") : "";
  const TempDir temporary;
  ASSERT_EQ(mkdir((temporary / "tmp").c_str(), 0700), 0);
  setenv("TMPDIR", (temporary / "tmp").c_str(), 1);
  const std::string folder = temporary / absl::StrCat("tmp/spillway-", geteuid());
  const Words words =
      Words{kProgram, "run", "--graph", kMnistPath, "--strategy", "scope"} + kShowGraph;
  EXPECT_THAT(RunChild(words).out, StartsWith(folder + "/"));
  struct stat info;
  ASSERT_EQ(stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  std::filesystem::remove_all(folder);
  ASSERT_EQ(mkdir((temporary / "elsewhere").c_str(), 0700), 0);
  ASSERT_EQ(symlink((temporary / "elsewhere").c_str(), folder.c_str()), 0);
  const std::string next = RunChild(words).out;  // In the next default folder.
  EXPECT_THAT(next, StartsWith(absl::StrCat("/tmp/spillway-", geteuid(), "/")));
  EXPECT_TRUE(std::filesystem::is_empty(temporary / "elsewhere"));
  for (const char* extension : {".pb", ".json", ".entry"}) {
    std::filesystem::remove(std::filesystem::path(next).replace_extension(extension));
  }
  rmdir(std::filesystem::path(next).parent_path().c_str());  // Unless there is more in it.
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
}

// A limit on the size of files, and as root a disk that really is full.
TEST_F(RunTest, AFullDiskLeavesNothing) {
  std::string command;
  for (const std::string& word : RunWords(kMnistPath, dir_, kShowGraph)) {
    absl::StrAppend(&command, " '", word, "'");
  }
  const ChildResult limited = RunChild({"/bin/sh", "-c", "ulimit -f 8; exec" + command});
  EXPECT_EQ(limited.out, kMnistPath) << limited.err;
  EXPECT_THAT(limited.err, AllOf(HasSubstr("File too large"), EndsWith("[FILE]\n")));
  EXPECT_EQ(LineCount(limited.err), 1) << limited.err;
  EXPECT_THAT(CacheNames(dir_), ElementsAre(EndsWith(".entry")));

  if (geteuid() != 0 ||
      mount("none", (dir_ / "cache").c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted here: only a file size limit was tried";
  }
  ExpectFailures(dir_, {{kMnistPath, {}, 4, "FILE"}});
  EXPECT_THAT(RunMnist(dir_, kShowGraph).err, HasSubstr("No space left on device"));
  EXPECT_THAT(CacheNames(dir_), ElementsAre(EndsWith(".entry")));
  EXPECT_EQ(umount((dir_ / "cache").c_str()), 0);
}

TEST_F(RunTest, AWarningThatNobodyReadsEndsNothing) {
  int error[2];
  ASSERT_EQ(pipe2(error, O_CLOEXEC), 0);
  close(error[0]);
  const pid_t child = StartChild(RunWords(dir_ / "missing.pb", dir_, {"--", "sh", "-c", "exit 7"}),
                                 -1, -1, error[1]);
  close(error[1]);
  EXPECT_EQ(WaitForChild(child).exit_code, 7);
}

// A dry run that the caller requests is one for ever; a server's lasts until the server rewrites.
TEST_F(RunTest, ADryRunLeavesTheGraph) {
  const auto show = [&](const Words& words) {
    return RunMnist(dir_, words + Words{"--metrics-textfile", dir_ / "m.prom", "--", "sh", "-c",
                                        "echo \"$SPILLWAY_GRAPH\""});
  };
  ServerOptions options;
  options.dry_run = true;
  auto server = std::make_unique<TestServer>(options);
  const Words address = absl::StrSplit(server->target(), ':');
  for (int i = 0; i < 2; ++i) {
    const ChildResult here = show({"--dry-run"}), there = show({"--server", server->target()});
    for (const ChildResult* result : {&here, &there}) {
      EXPECT_EQ(result->out, absl::StrCat(kMnistPath, "\n")) << result->err;
      EXPECT_THAT(result->err, HasSubstr(" stays as it is: dry run: "));
      EXPECT_EQ(LineCount(result->err), 1) << result->err;
    }
    EXPECT_EQ(absl::StrContains(here.err, "from the cache"), i == 1);
    EXPECT_THAT(there.err, Not(HasSubstr("from the cache")));
  }
  EXPECT_EQ(server->unary_calls(), 2);
  EXPECT_THAT(ReadFile(dir_ / "m.prom"),
              HasSubstr("spillway_hook_rewrite_outcomes_total{outcome=\"dry_run\"} 3\n"));
  server.reset();
  options.dry_run = false;
  ASSERT_TRUE(absl::SimpleAtoi(address.back(), &options.port));
  server = std::make_unique<TestServer>(options);
  const ChildResult now = show({"--server", server->target()});
  EXPECT_TRUE(ReadFile(std::string(absl::StripSuffix(now.out, "\n"))) == ExpectedGraph())
      << now.err;
  EXPECT_THAT(show({"--server", server->target()}).err, HasSubstr("from the cache"));
  EXPECT_EQ(server->unary_calls(), 1);
}

TEST_F(RunTest, TasksThatStartTogetherShareOneRewrite) {
  constexpr int kTasks = 8;
  TestServer server;
  std::vector<pid_t> children;
  for (int i = 0; i < kTasks; ++i) {
    const std::string out = dir_ / absl::StrCat("out", i);
    const int fd = open(out.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    children.push_back(StartChild(
        RunWords(
            kMnistPath, dir_,
            Words{"--server", server.target(), "--metrics-textfile", dir_ / "m.prom"} + kShowGraph),
        -1, fd, -1));
    close(fd);
  }
  std::set<std::string> graphs;
  for (int i = 0; i < kTasks; ++i) {
    EXPECT_EQ(WaitForChild(children[i]).exit_code, 0);
    graphs.insert(ReadFile(dir_ / absl::StrCat("out", i)));
  }
  EXPECT_EQ(server.unary_calls(), 1);
  ASSERT_THAT(graphs, SizeIs(1));
  EXPECT_TRUE(ReadFile(*graphs.begin()) == ExpectedGraph());
  EXPECT_THAT(CacheNames(dir_), SizeIs(3));
  const std::string metrics = ReadFile(dir_ / "m.prom");
  EXPECT_THAT(metrics,
              AllOf(HasSubstr("spillway_hook_runs_total{result=\"rewritten\"} 1\n"),
                    HasSubstr("spillway_hook_runs_total{result=\"cached\"} 7\n"),
                    HasSubstr("spillway_hook_rewrite_outcomes_total{outcome=\"rewritten\"} 1\n"),
                    HasSubstr("spillway_hook_duration_seconds_count 8\n")));
}

// Waits until `count` processes have `path` open for writing, like one that waits for its lock.
void WaitForOpenFiles(const std::string& path, int count) {
  const auto is_open = [&path](const std::filesystem::path& process) {
    std::error_code error;  // It may end while this looks.
    for (auto fd = std::filesystem::directory_iterator(process / "fd", error);
         !error && fd != std::filesystem::directory_iterator(); fd.increment(error)) {
      std::error_code gone;
      if (std::filesystem::read_symlink(fd->path(), gone) != path) continue;
      const std::string info = ReadFile(process / "fdinfo" / fd->path().filename());
      if (absl::StrContains(info, "flags:\t0") && absl::StrContains(info, "02\n")) return true;
    }
    return false;
  };
  while (true) {
    int open = 0;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      int pid = 0;
      open += absl::SimpleAtoi(process.path().filename().string(), &pid) && is_open(process);
    }
    if (open >= count) return;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

// One task calls the server, which fails, and those that waited for it take its failure. Later
// tasks, or tasks with other options, call again.
TEST_F(RunTest, TasksThatStartTogetherShareOneFailure) {
  constexpr int kTasks = 6;
  ServerOptions options;
  options.fault = Fault::kEarlyError;
  TestServer server(options);
  const Words words =
      Words{"--server", server.target(), "--metrics-textfile", dir_ / "m.prom"} + kShowGraph;
  ASSERT_EQ(RunMnist(dir_, words).out, kMnistPath);
  ASSERT_THAT(CacheNames(dir_), ElementsAre(EndsWith(".entry")));
  const std::string entry = dir_ / ("cache/" + CacheNames(dir_)[0]);
  const auto calls_of = [&](const std::vector<Words>& tasks) {
    const int before = server.unary_calls();
    const int fd = open(entry.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(flock(fd, LOCK_EX), 0);
    std::vector<pid_t> children;
    for (const Words& task : tasks) {
      children.push_back(StartChild(RunWords(kMnistPath, dir_, task), -1, -1, -1));
    }
    WaitForOpenFiles(std::filesystem::canonical(entry), static_cast<int>(tasks.size()));
    close(fd);
    for (const pid_t child : children) EXPECT_EQ(WaitForChild(child).exit_code, 0);
    return server.unary_calls() - before;
  };
  EXPECT_EQ(calls_of(std::vector<Words>(kTasks, words)), 1);
  EXPECT_THAT(ReadFile(dir_ / "m.prom"),
              AllOf(HasSubstr("spillway_hook_runs_total{result=\"failed_open\"} 7\n"),
                    HasSubstr("spillway_hook_failures_total{reason=\"server\"} 7\n")));
  EXPECT_EQ(calls_of({words}), 1);
  EXPECT_EQ(calls_of({words, Words{"--retries", "0"} + words}), 2);
}

TEST_F(RunTest, AnythingElseIsAnotherEntry) {
  TestServer server;
  std::set<std::string> graphs;
  const auto run = [&](const std::string& graph, const Words& options) {
    graphs.insert(RunChild(RunWords(graph, dir_, options + kShowGraph)).out);
  };
  run(kMnistPath, {});
  run(kMnistPath, {"--lb", "2"});
  run(kMnistPath, {"--server", server.target()});
  run(dir_.Write("other.pb", GraphWithPadding(1)), {});
  EXPECT_THAT(graphs, SizeIs(4));
  run(dir_.Write("same.pb", ReadFile(kMnistPath)), {});  // By content, not by name.
  EXPECT_THAT(graphs, SizeIs(4));
}

// Starts a run on a server that never answers and sends `signal_number` once that waits.
ChildResult EndInTheMiddle(const TempDir& dir, TestServer* server, int signal_number) {
  const int before = server->hanging();
  const pid_t child = StartChild(
      RunWords(kMnistPath, dir, Words{"--server", server->target(), "--", "touch", dir / "ran"}),
      -1, -1, -1);
  while (server->hanging() == before) absl::SleepFor(absl::Milliseconds(1));
  kill(child, signal_number);
  const ChildResult result = WaitForChild(child);
  // Its child is gone, too, and the call ends.
  while (server->released() == before) absl::SleepFor(absl::Milliseconds(1));
  return result;
}

TEST_F(RunTest, AKillInTheMiddleLeavesNothingAndTheNextRunWorks) {
  ServerOptions options;
  options.fault = Fault::kHang;
  auto server = std::make_unique<TestServer>(options);
  for (const int number : {SIGKILL, SIGTERM, SIGINT}) {
    EXPECT_EQ(EndInTheMiddle(dir_, server.get(), number).signal, number);
    EXPECT_THAT(CacheNames(dir_), ElementsAre(EndsWith(".entry")));
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
  // The same entry, from a server at the same address.
  int port = 0;
  const Words address = absl::StrSplit(server->target(), ':');
  ASSERT_TRUE(absl::SimpleAtoi(address[1], &port));
  server.reset();
  options.fault = Fault::kNone;
  options.port = port;
  server = std::make_unique<TestServer>(options);
  const ChildResult result = RunMnist(dir_, Words{"--server", server->target()} + kShowGraph);
  EXPECT_TRUE(ReadFile(result.out) == ExpectedGraph()) << result.err;
  EXPECT_THAT(CacheNames(dir_), SizeIs(3));
}

// Each kill comes as soon as anything appears where the report will be: a temporary file would be
// left, since a kill is faster than a disk.
TEST_F(RunTest, AKillLeavesNothingOfAReport) {
  ASSERT_EQ(RunMnist(dir_, kShowGraph).exit_code, 0);
  const int probe = open((dir_ / "").c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (probe < 0) GTEST_SKIP() << "the folder for temporary files has no O_TMPFILE";
  close(probe);
  std::string entry;
  for (const std::string& name : CacheNames(dir_)) {
    if (absl::EndsWith(name, ".entry")) entry = dir_ / ("cache/" + name);
  }
  for (int i = 0; i < 20; ++i) {
    const std::string folder = dir_ / absl::StrCat("reports", i);
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    const int events = inotify_init1(IN_CLOEXEC);
    ASSERT_GE(inotify_add_watch(events, folder.c_str(), IN_CREATE), 0);
    const pid_t child = StartChild(
        RunWords(kMnistPath, dir_, {"--report", folder + "/report.json", "--", "sleep", "60"}), -1,
        -1, -1);
    char event[4096];
    ASSERT_GT(read(events, event, sizeof(event)), 0);
    kill(child, SIGKILL);
    WaitForChild(child);
    close(events);
    // Its own child, which has the lock, may take a moment longer.
    const int fd = open(entry.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(flock(fd, LOCK_EX), 0);
    close(fd);
    Words names;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      names.push_back(file.path().filename());
    }
    EXPECT_THAT(names, ElementsAre("report.json"));
    v1::RewriteReport report;
    EXPECT_TRUE(
        google::protobuf::util::JsonStringToMessage(ReadFile(folder + "/report.json"), &report)
            .ok());
  }
}

TEST_F(RunTest, DamageInTheCacheIsMended) {
  const std::string graph = RunMnist(dir_, kShowGraph).out;
  const std::string stem = graph.substr(0, graph.size() - 3);
  const auto overwrite = [](const std::string& path, const std::string& bytes) {
    chmod(path.c_str(), 0600);
    std::ofstream(path, std::ios::binary) << bytes;
  };
  for (const std::string& name : {graph, stem + ".json", stem + ".entry"}) {
    const std::string whole = ReadFile(name);
    std::string flipped = whole;
    flipped[whole.size() / 2] ^= 1;
    for (const std::string& damaged : {whole.substr(0, whole.size() / 2), flipped, std::string()}) {
      overwrite(name, damaged);
      const ChildResult result = RunMnist(dir_, kShowGraph);
      EXPECT_EQ(result.out, graph);
      EXPECT_THAT(result.err, Not(HasSubstr("from the cache"))) << name;
      EXPECT_TRUE(ReadFile(graph) == ExpectedGraph());
    }
    std::filesystem::remove(name);
    EXPECT_EQ(RunMnist(dir_, kShowGraph).out, graph);
    EXPECT_TRUE(ReadFile(graph) == ExpectedGraph());
  }
  EXPECT_THAT(RunMnist(dir_, kShowGraph).err, HasSubstr("from the cache"));
  EXPECT_THAT(CacheNames(dir_), SizeIs(3));
}

TEST_F(RunTest, EntriesThatNobodyUsesAreDeleted) {
  const std::string old = RunMnist(dir_, kShowGraph).out;
  const std::string recent = RunMnist(dir_, Words{"--lb", "2"} + kShowGraph).out;
  const auto set_age = [&](const std::string& graph, absl::Duration age) {
    const timespec time = absl::ToTimespec(absl::Now() - age);
    const timespec times[] = {time, time};
    const std::string entry = graph.substr(0, graph.size() - 3) + ".entry";
    EXPECT_EQ(utimensat(AT_FDCWD, entry.c_str(), times, 0), 0);
  };
  set_age(old, absl::Hours(24 * 31));
  set_age(recent, absl::Hours(24 * 29));
  RunMnist(dir_, Words{"--lb", "3"} + kShowGraph);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(recent));
  EXPECT_THAT(CacheNames(dir_), SizeIs(6));
  // A use counts as young again.
  set_age(recent, absl::Hours(24 * 31));
  RunMnist(dir_, Words{"--lb", "2"} + kShowGraph);
  RunMnist(dir_, Words{"--lb", "4"} + kShowGraph);
  EXPECT_TRUE(std::filesystem::exists(recent));
}

// A cache folder may have other files: only entries are deleted, regardless of age.
TEST_F(RunTest, FilesThatAreNoEntriesStay) {
  const std::string old = RunMnist(dir_, kShowGraph).out;
  const std::string key = std::filesystem::path(old).stem();
  const Words others = {
      "job.entry", "job.pb",        "results.entry",      ".entry",
      "a.pb",      key + "0.entry", key + "0.pb",         key,
      key + "x",   key + ".pb.bak", "." + key + ".notes", key.substr(1) + ".entry"};
  const timespec time = absl::ToTimespec(absl::Now() - absl::Hours(24 * 31));
  const timespec times[] = {time, time};
  const auto make_old = [&](const std::string& name) {
    EXPECT_EQ(utimensat(AT_FDCWD, (dir_ / ("cache/" + name)).c_str(), times, 0), 0) << name;
  };
  for (const std::string& name : others) {
    dir_.Write("cache/" + name, "mine");
    make_old(name);
  }
  make_old(key + ".entry");
  RunMnist(dir_, Words{"--lb", "3"} + kShowGraph);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_THAT(CacheNames(dir_), SizeIs(3 + others.size()));
  for (const std::string& name : others) EXPECT_EQ(ReadFile(dir_ / ("cache/" + name)), "mine");
}

// Where a file system has only files with names, a kill leaves them.
TEST_F(RunTest, WhatAKillLeftIsDeletedUnlessSomebodyWorksOnIt) {
  const std::string graph = RunMnist(dir_, kShowGraph).out;
  const std::string key = std::filesystem::path(graph).stem();
  const std::string left = dir_.Write("cache/." + key + ".pb.tmp", "half");
  const int fd = open((dir_ / ("cache/" + key + ".entry")).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  RunMnist(dir_, Words{"--lb", "2"} + kShowGraph);
  EXPECT_TRUE(std::filesystem::exists(left));
  close(fd);
  RunMnist(dir_, Words{"--lb", "3"} + kShowGraph);
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(ReadFile(graph) == ExpectedGraph());
}

TEST_F(RunTest, ARunWithinARunChangesNothing) {
  const std::string show = "printf '%s %s' \"$SPILLWAY_GRAPH\" \"$SPILLWAY_ORIGINAL_GRAPH\"";
  const std::string graph = RunMnist(dir_, kShowGraph).out;
  for (const std::string& inner_graph :
       {std::string("\"$SPILLWAY_GRAPH\""), std::string(kMnistPath)}) {
    const ChildResult result = RunMnist(
        dir_,
        {"--", "sh", "-c",
         absl::StrCat(kProgram, " run --cache-dir ", dir_ / "cache",
                      " --strategy scope --optimizer-scopes adam_optimizer --graph ", inner_graph,
                      " -- sh -c '", absl::StrReplaceAll(show, {{"'", "'\\''"}}), "'")});
    EXPECT_EQ(result.out, absl::StrCat(graph, " ", kMnistPath)) << result.err;
  }
}

TEST_F(RunTest, AGraphThatStaysAsItIsIsNotCopied) {
  const ChildResult first = RunMnist(dir_, Words{"--n-tensors", "0"} + kShowGraph);
  EXPECT_EQ(first.out, kMnistPath);
  EXPECT_THAT(first.err, HasSubstr("stays as it is"));
  EXPECT_EQ(RunMnist(dir_, Words{"--n-tensors", "0"} + kShowGraph).out, kMnistPath);
  EXPECT_THAT(CacheNames(dir_), SizeIs(2));
}

TEST_F(RunTest, TheAdviceIsInTheEnvironmentUnlessItIsThere) {
  const Words print = {"--", "sh", "-c", "printf %s \"$TF_GPU_HOST_MEM_LIMIT_IN_MB\""};
  EXPECT_EQ(RunMnist(dir_, print).out, "");  // TensorFlow's default is enough.
  const Words show = Words{"--batch-size", "1000000"} + print;
  int64_t mib = 0;
  EXPECT_TRUE(absl::SimpleAtoi(RunMnist(dir_, show).out, &mib));
  EXPECT_GT(mib, 0);
  EXPECT_EQ(RunMnist(dir_, show).out, absl::StrCat(mib));  // From the cache.
  EXPECT_EQ(RunMnist(dir_, Words{"--no-advice-env"} + show).out, "");
  setenv("TF_GPU_HOST_MEM_LIMIT_IN_MB", "17", 1);
  EXPECT_EQ(RunMnist(dir_, show).out, "17");
  unsetenv("TF_GPU_HOST_MEM_LIMIT_IN_MB");
}

TEST_F(RunTest, APlanLimitsWorkspacesUnlessTheyMustBeThere) {
  const Words show = {"--batch-size", "64", "--",
                      "sh",           "-c", "printf %s \"$TF_CUDNN_WORKSPACE_LIMIT_IN_MB\""};
  EXPECT_EQ(RunMnist(dir_, show).out, "256");
  EXPECT_EQ(RunMnist(dir_, show).out, "256");  // From the cache.
  EXPECT_EQ(RunMnist(dir_, Words{"--no-advice-env"} + show).out, "");
  EXPECT_EQ(RunMnist(dir_, Words{"--dry-run"} + show).out, "");
  EXPECT_EQ(RunMnist(dir_, Words{"--kernel-memory", "off"} + show).out, "");
  setenv("TF_CUDNN_USE_AUTOTUNE", "0", 1);
  EXPECT_EQ(RunMnist(dir_, show).out, "");
  unsetenv("TF_CUDNN_USE_AUTOTUNE");
  const Words of_run = {"--batch-size", "64", "--",
                        "sh",           "-c", "printf %s \"$SPILLWAY_WORKSPACE_LIMIT_IN_MB\""};
  EXPECT_EQ(RunMnist(dir_, of_run).out, "256");
  setenv("TF_CUDNN_WORKSPACE_LIMIT_IN_MB", "17", 1);
  EXPECT_EQ(RunMnist(dir_, show).out, "17");
  EXPECT_EQ(RunMnist(dir_, of_run).out, "");
  unsetenv("TF_CUDNN_WORKSPACE_LIMIT_IN_MB");
}

TEST_F(RunTest, SaysWhatTheSessionsNeed) {
  constexpr char kNeeds[] =
      "for sessions with gpu_options.experimental.internal_fragmentation_fraction 0.001";
  const Words fraction = {"--internal-fragmentation-fraction", "0.001"};
  EXPECT_THAT(RunMnist(dir_, fraction + kShowGraph).err, HasSubstr(kNeeds));
  EXPECT_THAT(RunMnist(dir_, fraction + kShowGraph).err, HasSubstr(kNeeds));  // From the cache.
  EXPECT_THAT(RunMnist(dir_, fraction + Words{"--n-tensors", "0"} + kShowGraph).err,
              HasSubstr(kNeeds));
  EXPECT_THAT(RunMnist(dir_, kShowGraph).err, Not(HasSubstr("sessions")));
}

TEST_F(RunTest, WarnsOfAnAllocatorThatPlansAreNotMadeFor) {
  EXPECT_THAT(RunMnist(dir_, kShowGraph).err, Not(HasSubstr("allocator")));
  setenv("TF_GPU_ALLOCATOR", "cuda_malloc_async", 1);
  EXPECT_THAT(RunMnist(dir_, kShowGraph).err, HasSubstr("unset TF_GPU_ALLOCATOR"));
  setenv("TF_GPU_ALLOCATOR", "memory_guard", 1);
  EXPECT_THAT(RunMnist(dir_, kShowGraph).err, Not(HasSubstr("allocator")));
  unsetenv("TF_GPU_ALLOCATOR");
  setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true", 1);
  setenv("TF_CUDNN_USE_AUTOTUNE", "0", 1);
  EXPECT_THAT(RunMnist(dir_, kShowGraph).err,
              AllOf(HasSubstr("spillway: TF_FORCE_GPU_ALLOW_GROWTH is true: "),
                    HasSubstr("spillway: TF_CUDNN_USE_AUTOTUNE is off: ")));
  unsetenv("TF_FORCE_GPU_ALLOW_GROWTH");
  unsetenv("TF_CUDNN_USE_AUTOTUNE");
}

TEST_F(RunTest, VariablesStandForFlags) {
  TestServer server;
  setenv("SPILLWAY_SERVER", server.target().c_str(), 1);
  setenv("SPILLWAY_METRICS_TEXTFILE", (dir_ / "m.prom").c_str(), 1);
  EXPECT_EQ(RunMnist(dir_, kShowGraph).exit_code, 0);
  EXPECT_EQ(server.unary_calls(), 1);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "m.prom"));
  unsetenv("SPILLWAY_SERVER");
  unsetenv("SPILLWAY_METRICS_TEXTFILE");
}

// Which of the job's names a run in an environment sends, as `job user queue model`; `-`: none.
std::string NamesSent(const Words& environment, const Words& flags = {}) {
  const TestServer server;
  const TempDir dir;
  const ChildResult result =
      RunChild(Words{"/usr/bin/env"} + environment +
               RunWords(kMnistPath, dir, Words{"--server", server.target()} + flags + kShowGraph));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(server.unary_calls(), 1) << result.err;
  const auto metadata = server.last_metadata();
  std::string sent;
  for (const char* name : {"job", "user", "queue", "model"}) {
    const auto found = metadata.find(absl::StrCat("x-spillway-", name));
    absl::StrAppend(&sent, sent.empty() ? "" : " ",
                    found != metadata.end() ? found->second : std::string("-"));
  }
  return sent;
}

TEST_F(RunTest, TheServerIsToldOfTheJob) {
  EXPECT_EQ(NamesSent({}), "- - - -");
  const Words slurm = {"SLURM_JOB_ID=17", "SLURM_JOB_USER=ann", "SLURM_JOB_PARTITION=gpu",
                       "SLURM_JOB_NAME=my model"};
  EXPECT_EQ(NamesSent(slurm), "17 ann gpu my_model");
  const Words array = {"SLURM_ARRAY_JOB_ID=12", "SLURM_ARRAY_TASK_ID=3"};
  EXPECT_EQ(NamesSent(slurm + array), "12_3 ann gpu my_model");
  EXPECT_EQ(NamesSent(slurm + Words{"SPILLWAY_JOB=j", "SPILLWAY_MODEL=m"}), "j ann gpu m");
  EXPECT_EQ(NamesSent(slurm + Words{"SPILLWAY_JOB=j"}, {"--job", "flag", "--queue", "q"}),
            "flag ann q my_model");
  EXPECT_EQ(NamesSent({"HOSTNAME=pod-1"}), "- - - -");
  EXPECT_EQ(NamesSent({"HOSTNAME=pod-1", "KUBERNETES_SERVICE_HOST=10.0.0.1"}), "pod-1 - - -");
}

TEST_F(RunTest, TheServerIsToldWhoAsks) {
  const TestServer server;
  const ChildResult result =
      RunChild(Words{"/usr/bin/env", "SPILLWAY_TOKEN=secret"} +
               RunWords(kMnistPath, dir_,
                        Words{"--server", server.target(), "--request-id", "step-1"} + kShowGraph));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto metadata = server.last_metadata();
  EXPECT_EQ(metadata.count("authorization"), 1u);
  EXPECT_EQ(metadata.find("x-request-id")->second, "step-1");
}

TEST_F(RunTest, TheNameOfTheJobMakesNoOtherEntry) {
  const TestServer server;
  const Words to = {"--server", server.target()};
  for (const char* job : {"1", "2", "3"}) {
    EXPECT_EQ(RunMnist(dir_, to + Words{"--job", job, "--user", job} + kShowGraph).exit_code, 0);
  }
  EXPECT_EQ(server.unary_calls(), 1);
  EXPECT_THAT(CacheNames(dir_), SizeIs(3));
}

TEST_F(RunTest, SaysWhatSwappingCosts) {
  const std::string file = dir_ / "m.prom";
  const Words metrics = {"--metrics-textfile", file};
  const ChildResult first = RunMnist(dir_, metrics + kShowGraph);
  EXPECT_THAT(
      first.err,
      AllOf(HasSubstr("fit"), HasSubstr(" swaps, "), HasSubstr("host memory"),
            HasSubstr(" (assuming p100_pcie, as neither --hardware nor nvidia-smi identifies "
                      "the machine: see spillway doctor)")));
  const ChildResult second = RunMnist(dir_, metrics + kShowGraph);
  // The brief in the cache has all parts of the line.
  EXPECT_EQ(second.err, absl::StrReplaceAll(first.err, {{")\n", ", from the cache)\n"}}));
  const std::string text = ReadFile(file);
  EXPECT_THAT(text, AllOf(HasSubstr("rewrite_peak_before_bytes_count{strategy=\"scope\",outcome="
                                    "\"rewritten\"} 2\n"),
                          HasSubstr("rewrite_swap_bytes_per_step_count{strategy=\"scope\",outcome="
                                    "\"rewritten\"} 2\n"),
                          Not(HasSubstr("strategy=\"\""))));
}

TEST_F(RunTest, AFolderIsNoGraph) {
  const ChildResult result = RunChild(RunWords(dir_ / "", dir_, kShowGraph));
  EXPECT_THAT(result.err, AllOf(HasSubstr("give --graph a graph file"),
                                Not(HasSubstr("directory of a SavedModel"))));
}

TEST_F(RunTest, MetricsAddUpAndPassTheLint) {
  const std::string file = dir_ / "spillway.prom";
  const Words metrics = {"--metrics-textfile", file};
  ASSERT_EQ(RunMnist(dir_, metrics + kShowGraph).exit_code, 0);
  const std::string once = ReadFile(file);
  EXPECT_THAT(once, HasSubstr("spillway_hook_runs_total{result=\"failed_open\"} 0\n"));
  const Words dead = {"--server", "127.0.0.1:1", "--retries", "0"};
  ASSERT_EQ(RunMnist(dir_, metrics + dead + kShowGraph).exit_code, 0);
  ASSERT_EQ(RunMnist(dir_, metrics + dead + Words{"--fail-closed"} + kShowGraph).exit_code, 5);
  ASSERT_EQ(RunMnist(dir_, metrics + Words{"--lb", "2"} + kShowGraph).exit_code, 0);
  const std::string text = ReadFile(file);
  EXPECT_THAT(text, AllOf(HasSubstr("spillway_hook_runs_total{result=\"rewritten\"} 2\n"),
                          HasSubstr("spillway_hook_runs_total{result=\"failed_open\"} 1\n"),
                          HasSubstr("spillway_hook_runs_total{result=\"failed_closed\"} 1\n"),
                          HasSubstr("spillway_hook_failures_total{reason=\"server\"} 2\n")));
  EXPECT_THAT(dir_.Names(),
              ElementsAre("cache", "spillway.prom", "spillway.prom.lock", "spillway.prom.state"));

  for (const char* program : {"/usr/bin/promtool", SPILLWAY_BIN_DIR "/../tools/bin/promtool"}) {
    if (access(program, X_OK) != 0) continue;
    const ChildResult lint = RunChild({program, "check", "metrics"}, text);
    EXPECT_EQ(lint.exit_code, 0) << lint.out << lint.err;
    return;
  }
  GTEST_SKIP() << "promtool is not installed (Debian: package prometheus): metrics not linted";
}

TEST_F(RunTest, FilesOfOthersAreNotReplacedByMetrics) {
  const std::string file = dir_ / "m.prom";
  for (const std::string& others :
       {std::string("other_total 1\n"), std::string("# HELP other_total Of another exporter.\n"),
        std::string("\n"), std::string("#!/bin/sh\n"), std::string(2 << 20, 'x')}) {
    dir_.Write("m.prom", others);
    const ChildResult result =
        RunMnist(dir_, Words{"--quiet", "--metrics-textfile", file} + kShowGraph);
    EXPECT_THAT(result.out, EndsWith(".pb"));
    EXPECT_THAT(result.err, AllOf(StartsWith("spillway: no metrics: "),
                                  HasSubstr("is not a file of spillway run")));
    EXPECT_EQ(LineCount(result.err), 1) << result.err;
    EXPECT_TRUE(ReadFile(file) == others);
  }
  dir_.Write("n.prom.state", "somebody's\n");
  EXPECT_THAT(RunMnist(dir_, Words{"--metrics-textfile", dir_ / "n.prom"} + kShowGraph).err,
              HasSubstr("n.prom.state' is not a file of spillway run"));
  EXPECT_EQ(ReadFile(dir_ / "n.prom.state"), "somebody's\n");
}

TEST_F(RunTest, CountsThatAreDamagedStartFromZeroAndWithoutAFolderNothingFails) {
  const std::string file = dir_ / "m.prom";
  const Words quiet = {"--quiet", "--metrics-textfile", file};
  for (const char* damage : {"{\"spillway_hook_runs_total",
                             "{\"spillway_hook_runs_total\":{\"series\":{\"\":\"x\"}}}"}) {
    std::ofstream(file + ".state", std::ios::binary) << damage;
    const ChildResult result = RunMnist(dir_, quiet + kShowGraph);
    EXPECT_THAT(result.err, HasSubstr("m.prom.state' was damaged: the counts start again"));
    EXPECT_EQ(LineCount(result.err), 1) << result.err;
    EXPECT_THAT(ReadFile(file), HasSubstr("spillway_hook_duration_seconds_count 1\n"));
  }
  ASSERT_EQ(unlink((file + ".state").c_str()), 0);
  EXPECT_THAT(RunMnist(dir_, quiet + kShowGraph).err, HasSubstr("m.prom.state' was missing"));
  // Damage of the text file costs no count.
  std::ofstream(file, std::ios::binary) << "# HELP spillway_hook_runs";
  EXPECT_EQ(RunMnist(dir_, quiet + kShowGraph).err, "");
  EXPECT_THAT(ReadFile(file), HasSubstr("spillway_hook_duration_seconds_count 2\n"));
  std::ofstream(file, std::ios::binary);  // An empty file is free.
  EXPECT_EQ(RunMnist(dir_, quiet + kShowGraph).err, "");
  EXPECT_THAT(ReadFile(file), HasSubstr("spillway_hook_duration_seconds_count 3\n"));
  const Words nowhere = {"--quiet", "--metrics-textfile", dir_ / "no/m.prom"};
  const ChildResult result = RunMnist(dir_, nowhere + kShowGraph);
  EXPECT_THAT(result.out, EndsWith(".pb"));
  EXPECT_THAT(result.err, StartsWith("spillway: no metrics: "));
  const ChildResult both = RunChild(RunWords(dir_ / "missing.pb", dir_, nowhere + kShowGraph));
  EXPECT_EQ(both.out, dir_ / "missing.pb");
  EXPECT_EQ(LineCount(both.err), 1) << both.err;
}

}  // namespace
}  // namespace spillway::testing
