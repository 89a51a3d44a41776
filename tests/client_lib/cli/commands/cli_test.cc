// The program `spillway` as its users run it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "rewrite_core/rewriter.h"
#include "spillway/v1/diff.pb.h"
#include "spillway/v1/inspect.pb.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// `rewrite PATH` with options that are right for the graph of mnist, and `more`.
Words Rewrite(const std::string& path, const Words& more) {
  return Words{"rewrite", path, "--strategy", "scope", "--optimizer-scopes", "adam_optimizer"} +
         more;
}

template <typename Message>
Message FromJson(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

// The core's rewrite of mnist with those options.
v1::RewriteResponse Expected(v1::Output extra = v1::OUTPUT_REPORT) {
  v1::RewriteOptions options = MnistOptions();
  options.add_outputs(v1::OUTPUT_GRAPH);
  options.add_outputs(extra);
  const auto response =
      core::Rewrite(ReadFile(kMnistPath), options, core::DefaultLimits(), core::StopToken());
  EXPECT_TRUE(response.ok()) << response.status();
  return *response;
}

TEST(CliTest, RewritesAFile) {
  const TempDir dir;
  const ChildResult result = Done(Rewrite(kMnistPath, {"-o", dir / "out.pb"}));
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("spillway: "));
  EXPECT_TRUE(ReadFile(dir / "out.pb") == Expected().graph_def());
  EXPECT_THAT(dir.Names(), ElementsAre("out.pb"));
}

TEST(CliTest, RewritesStandardInputToStandardOutput) {
  const ChildResult result = Done(Rewrite("-", {"-o", "-"}), ReadFile(kMnistPath));
  EXPECT_TRUE(result.out == Expected().graph_def());
  EXPECT_THAT(result.err, Not(IsEmpty()));
}

TEST(CliTest, QuietIsQuiet) {
  const ChildResult result = Done(Rewrite("-", {"-o", "-", "--quiet"}), ReadFile(kMnistPath));
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(result.out == Expected().graph_def());
}

TEST(CliTest, RewritesOnAServer) {
  TestServer server;
  const TempDir dir;
  const ChildResult result = Done(
      Rewrite(kMnistPath, {"-o", dir / "out.pb", "--server", server.target(), "--timeout", "1m"}));
  EXPECT_EQ(server.unary_calls(), 1);
  EXPECT_TRUE(ReadFile(dir / "out.pb") == Expected().graph_def());
}

TEST(CliTest, StripGivesTheOriginalBack) {
  const TempDir dir;
  Done(Rewrite(kMnistPath, {"-o", dir / "out.pb"}));
  const ChildResult result = Done({"strip", dir / "out.pb", "-o", dir / "original.pb"});
  EXPECT_TRUE(ReadFile(dir / "original.pb") == ReadFile(kMnistPath));
}

TEST(CliTest, APlanIsSavedAndApplied) {
  const TempDir dir;
  const std::string plan = dir / "plan.json";
  Done(Rewrite(kMnistPath, {"--save-plan", plan, "--quiet"}));
  const std::string json = ReadFile(plan);
  EXPECT_THAT(json, AllOf(HasSubstr("\"format_version\": 1"), HasSubstr("\"STRATEGY_SCOPE\""),
                          HasSubstr("\"triggers\"")));
  EXPECT_THAT(json, Not(HasSubstr("\"clones\""))) << "which programs of format 1 do not know";
  const ChildResult result =
      Done({"apply", plan, kMnistPath, "-o", dir / "out.pb", "--report", dir / "report.json"});
  EXPECT_THAT(result.err, HasSubstr("(strategy apply)"));
  EXPECT_TRUE(ReadFile(dir / "out.pb") == Expected().graph_def());
  EXPECT_THAT(ReadFile(dir / "report.json"), HasSubstr("STRATEGY_APPLY"));
  Done({"strip", dir / "out.pb", "-o", dir / "original.pb"});
  EXPECT_TRUE(ReadFile(dir / "original.pb") == ReadFile(kMnistPath));
}

TEST(CliTest, PlanAndGraphMayComeThroughPipes) {
  const ChildResult saved =
      Done(Rewrite("-", {"--save-plan", "-", "--quiet"}), ReadFile(kMnistPath));
  const ChildResult applied = Done({"apply", "-", kMnistPath, "-o", "-", "--quiet"}, saved.out);
  EXPECT_TRUE(applied.out == Expected().graph_def());
  const TempDir dir;
  const std::string plan = dir.Write("plan.json", saved.out);
  const ChildResult piped =
      Spillway({"apply", plan, "-", "-o", "-", "--quiet"}, ReadFile(kMnistPath));
  EXPECT_TRUE(piped.out == Expected().graph_def());
  ExpectError(Spillway({"apply", "-", "-", "-o", dir / "x"}), 2,
              {"PLAN and IN are both", "[CONFLICTING_OPTIONS]\n"});
}

TEST(CliTest, APlanIsAppliedOnAServer) {
  TestServer server;
  const TempDir dir;
  const std::string plan = dir / "plan.json";
  const Words remote = {"--server", server.target(), "--timeout", "1m", "--quiet"};
  Done(Rewrite(kMnistPath, {"--save-plan", plan}) + remote);
  Done(Words{"apply", plan, kMnistPath, "-o", dir / "out.pb"} + remote);
  EXPECT_EQ(server.unary_calls(), 2);
  EXPECT_TRUE(ReadFile(dir / "out.pb") == Expected().graph_def());
}

TEST(CliTest, APlanThatCannotBeApplied) {
  const TempDir dir;
  const std::string plan = dir / "plan.json", out = dir / "out.pb";
  Done(Rewrite(kMnistPath, {"--save-plan", plan, "--quiet"}));
  const auto apply = [&](const std::string& text) {
    return Spillway({"apply", dir.Write("other.json", text), kMnistPath, "-o", out});
  };
  ExpectError(Spillway({"apply", plan, SPILLWAY_TEST_GRAPHS "/cond_v1/graph.pb", "-o", out}), 2,
              {"the plan was made for another graph", "[OTHER_GRAPH]\n"});
  for (const char* text : {"", "{", "[]", "null", "{\"swap\": 1}", "{\"meta_graphs\": 1}",
                           "{\"meta_graphs\": [{\"plan\": {}}]}",
                           "{\"meta_graphs\": [{\"index\": 0, \"plan\": 5}]}"}) {
    ExpectError(apply(text), 2, {"this is no plan", "[BAD_PLAN]\n"});
  }
  ExpectError(apply(std::string(1 << 20, '[')), 2, {"this is no plan", "[BAD_PLAN]\n"});
  ExpectError(apply("{}"), 2, {"there is no plan in it", "[BAD_PLAN]\n"});
  ExpectError(apply("{\"cpu_device\": \"/cpu:0\"}"), 2,
              {"format_version of the plan is 0", "[UNKNOWN_OPTION]\n"});
  // A tensor that the graph does not have.
  std::string json = ReadFile(plan);
  const size_t at = json.find("\"tensor\": \"") + 11;
  json.insert(at, "no_such_");
  ExpectError(apply(json), 2, {"the graph has no node 'no_such_", "[BAD_PLAN]\n"});
  ExpectError(Spillway({"apply", dir / "none.json", kMnistPath, "-o", out}), 4,
              {"none.json", "[FILE]\n"});
  ExpectError(Spillway({"apply", plan, kMnistPath, "-o", plan}), 2,
              {"would overwrite the input", "[CONFLICTING_OPTIONS]\n"});
  EXPECT_THAT(dir.Names(), ElementsAre("other.json", "plan.json"));
}

TEST(CliTest, ThereIsNoPlanOfAGraphThatIsKept) {
  const TempDir dir;
  Done(Rewrite(kMnistPath, {"-o", dir / "out.pb"}));
  ExpectError(Spillway(Rewrite(dir / "out.pb", {"--save-plan", dir / "plan.json", "--quiet"})), 2,
              {"there is no plan to save", "[CONFLICTING_OPTIONS]\n"});
  EXPECT_THAT(dir.Names(), ElementsAre("out.pb"));
}

TEST(CliTest, TheReportIsTheJsonOfTheProto) {
  const TempDir dir;
  const ChildResult result =
      Done(Rewrite(kMnistPath, {"-o", dir / "out.pb", "--report", dir / "report.json"}));
  const std::string json = ReadFile(dir / "report.json");
  EXPECT_THAT(json, HasSubstr("\"node_count_before\""));
  auto report = FromJson<v1::RewriteReport>(json);
  v1::RewriteReport expected = Expected().report();
  report.clear_stages();  // Times differ.
  expected.clear_stages();
  EXPECT_EQ(report.SerializeAsString(), expected.SerializeAsString());
}

TEST(CliTest, AReportAloneNeedsNoOutputFile) {
  const ChildResult result = Done(Rewrite(kMnistPath, {"--report", "-"}));
  const auto report = FromJson<v1::RewriteReport>(result.out);
  EXPECT_EQ(report.strategy(), v1::STRATEGY_SCOPE);
}

// Beside -o in a command line that writes a graph otherwise, and alone.
TEST(CliTest, ADryRunWritesNoGraph) {
  const TempDir dir;
  const std::string out = dir.Write("out.pb", "old graph");
  for (const Words& output : {Words{"-o", out}, Words{"-o", dir / "new.pb"}, Words{}}) {
    const ChildResult result = Done(Rewrite(kMnistPath, Words{"--dry-run"} + output));
    EXPECT_THAT(result.err, AllOf(HasSubstr("dry run, the graph is unchanged"),
                                  HasSubstr(" tensors would be swapped to host memory")));
  }
  EXPECT_EQ(ReadFile(out), "old graph");
  EXPECT_THAT(dir.Names(), ElementsAre("out.pb"));
  const std::string plan = dir / "plan.json";
  Done(Rewrite(kMnistPath, {"--dry-run", "--save-plan", plan}));
  Done({"apply", plan, kMnistPath, "-o", dir / "applied.pb"});
  EXPECT_TRUE(ReadFile(dir / "applied.pb") == Expected().graph_def());
  EXPECT_THAT(Done({"apply", plan, kMnistPath, "--dry-run"}).err,
              HasSubstr("dry run, the graph is unchanged"));
}

TEST(CliTest, ThePatchIsTheJsonOfTheProto) {
  const ChildResult result = Done(Rewrite(kMnistPath, {"--patch", "-", "--quiet"}));
  const auto patch = FromJson<v1::GraphPatch>(result.out);
  EXPECT_EQ(patch.SerializeAsString(), Expected(v1::OUTPUT_PATCH).patch().SerializeAsString());
}

TEST(CliTest, TheInputIsNeverOverwritten) {
  const TempDir dir;
  const std::string in = dir.Write("in.pb", ReadFile(kMnistPath));
  ExpectError(Spillway(Rewrite(in, {"-o", dir / "./in.pb"})), 2,
              {"overwrite the input", "[CONFLICTING_OPTIONS]\n"});
  EXPECT_TRUE(ReadFile(in) == ReadFile(kMnistPath));
}

// For any failure, at any time: existing outputs stay, and no other files appear.
TEST(CliTest, AFailureLeavesEverythingAsItWas) {
  const TempDir dir;
  const std::string out = dir.Write("out.pb", "old graph");
  const std::string report = dir.Write("report.json", "old report");
  const Words files = {"-o", out, "--report", report};
  const auto with = [&files](const Words& more) { return more + files; };
  EXPECT_EQ(Spillway(Rewrite("-", with({}))).exit_code, 3);
  EXPECT_EQ(Spillway(Rewrite(kMnistPath, with({"--timeout", "1ns"}))).exit_code, 6);
  EXPECT_EQ(
      Spillway(Rewrite(kMnistPath, with({"--server", "127.0.0.1:1", "--retries", "0"}))).exit_code,
      5);
  EXPECT_EQ(Spillway(Rewrite(kMnistPath, with({"--patch", "/dev/full"}))).exit_code, 4);
  EXPECT_EQ(Spillway(Rewrite(kMnistPath, with({"--patch", dir / "no/patch"}))).exit_code, 4);
  EXPECT_EQ(ReadFile(out), "old graph");
  EXPECT_EQ(ReadFile(report), "old report");
  EXPECT_THAT(dir.Names(), ElementsAre("out.pb", "report.json"));
}

TEST(CliTest, EachRetryIsALineUnlessQuiet) {
  const Words arguments =
      Rewrite(kMnistPath, {"--report", "-", "--server", "127.0.0.1:1", "--retries", "1"});
  const ChildResult result = Spillway(arguments);
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, StartsWith("spillway: 127.0.0.1:1 cannot be reached; trying again in "));
  EXPECT_THAT(result.err, HasSubstr(" s (2 of 2)\nspillway: cannot reach the server"));
  ExpectError(Spillway(arguments + Words{"--quiet"}), 5, {"127.0.0.1:1", "[UNAVAILABLE]\n"});
}

TEST(CliTest, InspectsAFileAndStandardInput) {
  const ChildResult file = Done({"inspect", kMnistPath});
  EXPECT_EQ(file.err, "");
  EXPECT_THAT(file.out, AllOf(HasSubstr("name scope"), HasSubstr("adam_optimizer")));
  EXPECT_EQ(Spillway({"inspect", "-"}, ReadFile(kMnistPath)).out, file.out);
  const ChildResult json =
      Spillway({"inspect", kMnistPath, "--json", "--top", "3", "--batch-size", "50"});
  const auto summary = FromJson<v1::GraphSummary>(json.out);
  EXPECT_EQ(summary.size_bytes(), static_cast<int64_t>(ReadFile(kMnistPath).size()));
  EXPECT_EQ(summary.largest_tensors_size(), 3);
}

TEST(CliTest, DiffTellsARewriteAndHasTheExitCodesOfDiff) {
  const TempDir dir;
  const std::string out = dir / "out.pb";
  Done(Rewrite(kMnistPath, {"-o", out}));
  const ChildResult same = Done({"diff", kMnistPath, kMnistPath});
  EXPECT_EQ(same.out, "the files are identical\n");
  const ChildResult differ = Spillway({"diff", kMnistPath, out});
  EXPECT_EQ(differ.exit_code, 1);
  EXPECT_EQ(differ.err, "");
  const int swaps = Expected().report().swaps_size();
  EXPECT_THAT(differ.out, AllOf(HasSubstr("\n" + std::to_string(swaps) + " tensors swapped out, "),
                                EndsWith("; other differences: none\n")));
  EXPECT_EQ(Spillway({"diff", "-", out}, ReadFile(kMnistPath)).out, differ.out);
  const ChildResult json = Spillway({"diff", kMnistPath, out, "--json"});
  EXPECT_EQ(json.exit_code, 1);
  const auto diff = FromJson<v1::GraphDiff>(json.out);
  EXPECT_EQ(diff.swaps_size(), swaps);
}

TEST(CliTest, AnOverloadedServerAndADamagedAnswerHaveTheirExitCodes) {
  const TempDir dir;
  ServerOptions options;
  options.fault = Fault::kEarlyError;
  TestServer overloaded(options);
  ExpectError(
      Spillway(Rewrite(kMnistPath, {"-o", dir / "out.pb", "--server", overloaded.target()})), 5,
      {"no room now", "[OVERLOADED]\n"});
  options.fault = Fault::kWrongChecksum;
  TestServer damaging(options);
  const std::string large = dir.Write("large.pb", GraphWithPadding(3 << 20));  // Is streamed.
  ExpectError(Spillway(Rewrite(large, {"-o", dir / "out.pb", "--server", damaging.target()})), 7,
              {"CRC-32C", "[BAD_STREAM]\n"});
  EXPECT_THAT(dir.Names(), ElementsAre("large.pb"));
}

// Starts a rewrite on a server that never answers, and sends it `signal_number` once it waits.
ChildResult Interrupt(int signal_number, const std::string& out) {
  ServerOptions options;
  options.fault = Fault::kHang;
  TestServer server(options);
  const pid_t child = StartChild(
      Words{kProgram} + Rewrite(kMnistPath, {"-o", out, "--server", server.target()}), -1, -1, -1);
  while (server.hanging() == 0) absl::SleepFor(absl::Milliseconds(1));
  kill(child, signal_number);
  return WaitForChild(child);
}

TEST(CliTest, SignalsCancelAndCleanUp) {
  const TempDir dir;
  const std::string out = dir.Write("out.pb", "old");
  for (const int signal_number : {SIGINT, SIGTERM}) {
    EXPECT_EQ(Interrupt(signal_number, out).exit_code, 6) << signal_number;
    EXPECT_EQ(ReadFile(out), "old");
    EXPECT_THAT(dir.Names(), ElementsAre("out.pb"));
  }
}

// The first ends no writing of a plan that is to be kept, and it may have no reader.
TEST(CliTest, ASecondInterruptEndsAtOnce) {
  const TempDir dir;
  int output[2];
  ASSERT_EQ(pipe2(output, O_CLOEXEC), 0);
  const std::string graph = dir.Write("graph.pb", GraphWithPadding(1 << 20));
  const pid_t child = StartChild(
      Words{kProgram} + Rewrite(graph, {"-o", "-", "--report", dir / "report", "--keep-best"}), -1,
      output[1], -1);
  pollfd written{output[0], POLLIN, 0};
  ASSERT_EQ(poll(&written, 1, /*timeout=*/-1), 1);
  kill(child, SIGINT);
  // Two at the same time are one.
  absl::SleepFor(absl::Seconds(1));
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  kill(child, SIGINT);
  EXPECT_EQ(WaitForChild(child).signal, SIGINT);
  EXPECT_THAT(dir.Names(), ElementsAre("graph.pb"));
  close(output[0]);
  close(output[1]);
}

TEST(CliTest, ASignalEndsAWaitForInput) {
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  const pid_t child =
      StartChild(Words{kProgram} + Rewrite("-", {"-o", "/dev/null"}), input[0], -1, -1);
  kill(child, SIGTERM);
  const ChildResult result = WaitForChild(child);
  close(input[0]);
  close(input[1]);
  // The signal may come before the program is ready for it: then it ends as any program does.
  EXPECT_TRUE(result.exit_code == 6 || result.signal == SIGTERM) << result.exit_code;
}

// Without standard streams, no file of the program's own is read or written in their place.
TEST(CliTest, ClosedStandardStreams) {
  const TempDir dir;
  const auto closed = [](const Words& words, const std::string& how) {
    return RunChild(Words{"/bin/sh", "-c", "exec \"$0\" \"$@\" " + how, kProgram} + words);
  };
  ExpectError(closed({"inspect", "-"}, "<&-"), 3, {"standard input is empty", "write the graph"});
  ExpectError(closed({"strip", kMnistPath, "-o", "-"}, ">&-"), 4,
              {"cannot write standard output: Bad file descriptor"});
  const ChildResult all =
      closed({"strip", kMnistPath, "-o", dir / "out.pb", "--quiet"}, "<&- >&- 2>&-");
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(ReadFile(dir / "out.pb"), ReadFile(kMnistPath));
  EXPECT_EQ(closed({"inspect", "-"}, "<&- >&- 2>&-").exit_code, 3);
}

// As `| head`: silent, and by the signal, like other tools.
TEST(CliTest, AClosedPipeIsNoError) {
  const TempDir dir;
  for (const Words& arguments :
       {Rewrite(kMnistPath, {"-o", "-", "--quiet"}), Words{"--help"}, Words{"rewrite", "--help"},
        Words{"capabilities"}, Words{"version"},
        Words{"inspect", kMnistPath, "--shapes"}}) {  // More than a buffer holds.
    int output[2], errors[2];
    ASSERT_EQ(pipe2(output, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(errors, O_CLOEXEC), 0);
    close(output[0]);  // No reader.
    const pid_t child = StartChild(Words{kProgram} + arguments, -1, output[1], errors[1]);
    close(errors[1]);
    const ChildResult result = WaitForChild(child);
    close(output[1]);
    EXPECT_EQ(result.signal, SIGPIPE) << arguments[0];
    char said = 0;
    EXPECT_EQ(read(errors[0], &said, 1), 0) << arguments[0] << " has something to say";
    close(errors[0]);
  }
  // Files beside it are lost, which must be reported.
  int output[2];
  ASSERT_EQ(pipe2(output, O_CLOEXEC), 0);
  close(output[0]);
  const pid_t child =
      StartChild(Words{kProgram} + Rewrite(kMnistPath, {"-o", dir / "out.pb", "--report", "-"}), -1,
                 output[1], -1);
  const ChildResult result = WaitForChild(child);
  close(output[1]);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(dir.Names(), IsEmpty());
}

TEST(CliTest, Capabilities) {
  const ChildResult local = Done({"capabilities"});
  EXPECT_THAT(local.out, AllOf(HasSubstr(core::Version()), HasSubstr("max_node_count")));
  TestServer server;
  EXPECT_THAT(Spillway({"capabilities", "--server", server.target()}).out,
              HasSubstr(core::Version() + " (this program: " + core::Version() + ")"));
  const ChildResult json = Done({"capabilities", "--server", server.target(), "--json"});
  const auto response = FromJson<v1::GetCapabilitiesResponse>(json.out);
  EXPECT_EQ(response.limits().max_unary_bytes(), core::DefaultLimits().max_unary_bytes());
}

TEST(CliTest, HealthIsInTheExitCode) {
  TestServer healthy;
  ServerOptions options;
  options.healthy = false;
  TestServer unhealthy(options);
  const auto health = [](const TestServer& server, const Words& more = {}) {
    return Spillway(Words{"health", "--server", server.target()} + more);
  };
  EXPECT_EQ(health(healthy).exit_code, 0);
  EXPECT_EQ(health(healthy).out, "SERVING\n");
  EXPECT_EQ(health(healthy, {"--service", "spillway.v1.RewriteService"}).exit_code, 0);
  const ChildResult unknown = health(healthy, {"--service", "no.such.Service"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.out, "SERVICE_UNKNOWN\n");
  EXPECT_EQ(health(unhealthy).exit_code, 1);
  EXPECT_EQ(health(unhealthy).out, "NOT_SERVING\n");
  EXPECT_EQ(Spillway({"health", "--server", "127.0.0.1:1"}).exit_code, 5);
}

TEST(CliTest, VersionAndHelp) {
  EXPECT_EQ(Spillway({"--version"}).out, "spillway " + core::Version() + "\n");
  const ChildResult help = Done({"--help"});
  EXPECT_THAT(help.out, AllOf(HasSubstr("rewrite"), HasSubstr("Exit codes:")));
  for (const char* command :
       {"rewrite", "apply", "strip", "run", "inspect", "diff", "capabilities", "health"}) {
    const ChildResult result = Spillway({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_THAT(result.out, HasSubstr("Example")) << command;
  }
}

}  // namespace
}  // namespace spillway::testing
