// The program `spillway` as its users run it.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
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
#include "tests/client_lib/child_process.h"
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

const char kProgram[] = SPILLWAY_BIN_DIR "/spillway";

using Arguments = std::vector<std::string>;

std::vector<std::string> Command(Arguments arguments) {
  arguments.insert(arguments.begin(), kProgram);
  return arguments;
}

ChildResult Spillway(const Arguments& arguments, const std::string& input = "") {
  return RunChild(Command(arguments), input);
}

// `rewrite PATH` with options that are right for the graph of mnist, and `more`.
Arguments Rewrite(const std::string& path, const Arguments& more) {
  Arguments arguments = {"rewrite",       path, "--strategy", "scope", "--optimizer-scopes",
                         "adam_optimizer"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// What the core makes of mnist with those options.
v1::RewriteResponse Expected(v1::Output extra = v1::OUTPUT_REPORT) {
  v1::RewriteOptions options = MnistOptions();
  options.add_outputs(v1::OUTPUT_GRAPH);
  options.add_outputs(extra);
  const auto response =
      core::Rewrite(ReadFile(kMnistPath), options, core::DefaultLimits(), core::StopToken());
  EXPECT_TRUE(response.ok()) << response.status();
  return *response;
}

// One line on standard error, from us, with the reason in brackets.
void ExpectError(const ChildResult& result, int exit_code, const std::string& text,
                 const std::string& reason) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_THAT(result.err,
              AllOf(StartsWith("spillway: "), HasSubstr(text), EndsWith(" [" + reason + "]\n")));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(CliTest, RewritesAFile) {
  const TempDir dir;
  const ChildResult result = Spillway(Rewrite(kMnistPath, {"-o", dir / "out.pb"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("spillway: "));
  EXPECT_TRUE(ReadFile(dir / "out.pb") == Expected().graph_def());
  EXPECT_THAT(dir.Names(), ElementsAre("out.pb"));
}

TEST(CliTest, RewritesStandardInputToStandardOutput) {
  const ChildResult result = Spillway(Rewrite("-", {"-o", "-"}), ReadFile(kMnistPath));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out == Expected().graph_def());
  EXPECT_THAT(result.err, Not(IsEmpty()));
}

TEST(CliTest, QuietIsQuiet) {
  const ChildResult result = Spillway(Rewrite("-", {"-o", "-", "--quiet"}), ReadFile(kMnistPath));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(result.out == Expected().graph_def());
}

TEST(CliTest, RewritesOnAServer) {
  TestServer server;
  const TempDir dir;
  const ChildResult result = Spillway(
      Rewrite(kMnistPath, {"-o", dir / "out.pb", "--server", server.target(), "--timeout", "1m"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(server.unary_calls(), 1);
  EXPECT_TRUE(ReadFile(dir / "out.pb") == Expected().graph_def());
}

TEST(CliTest, StripGivesTheOriginalBack) {
  const TempDir dir;
  ASSERT_EQ(Spillway(Rewrite(kMnistPath, {"-o", dir / "out.pb"})).exit_code, 0);
  const ChildResult result = Spillway({"strip", dir / "out.pb", "-o", dir / "original.pb"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(ReadFile(dir / "original.pb") == ReadFile(kMnistPath));
}

TEST(CliTest, APlanIsSavedAndApplied) {
  const TempDir dir;
  const std::string plan = dir / "plan.json";
  ASSERT_EQ(Spillway(Rewrite(kMnistPath, {"--save-plan", plan, "--quiet"})).exit_code, 0);
  const std::string json = ReadFile(plan);
  EXPECT_THAT(json, AllOf(HasSubstr("\"format_version\": 1"), HasSubstr("\"STRATEGY_SCOPE\""),
                          HasSubstr("\"triggers\"")));
  const ChildResult result =
      Spillway({"apply", plan, kMnistPath, "-o", dir / "out.pb", "--report", dir / "report.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("(strategy apply)"));
  EXPECT_TRUE(ReadFile(dir / "out.pb") == Expected().graph_def());
  EXPECT_THAT(ReadFile(dir / "report.json"), HasSubstr("STRATEGY_APPLY"));
  ASSERT_EQ(Spillway({"strip", dir / "out.pb", "-o", dir / "original.pb"}).exit_code, 0);
  EXPECT_TRUE(ReadFile(dir / "original.pb") == ReadFile(kMnistPath));
}

TEST(CliTest, PlanAndGraphMayComeThroughPipes) {
  const ChildResult saved =
      Spillway(Rewrite("-", {"--save-plan", "-", "--quiet"}), ReadFile(kMnistPath));
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  const ChildResult applied = Spillway({"apply", "-", kMnistPath, "-o", "-", "--quiet"}, saved.out);
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_TRUE(applied.out == Expected().graph_def());
  const TempDir dir;
  const std::string plan = dir.Write("plan.json", saved.out);
  const ChildResult piped =
      Spillway({"apply", plan, "-", "-o", "-", "--quiet"}, ReadFile(kMnistPath));
  EXPECT_TRUE(piped.out == Expected().graph_def());
  ExpectError(Spillway({"apply", "-", "-", "-o", dir / "x"}), 2, "PLAN and IN are both",
              "CONFLICTING_OPTIONS");
}

TEST(CliTest, APlanIsAppliedOnAServer) {
  TestServer server;
  const TempDir dir;
  const std::string plan = dir / "plan.json";
  const Arguments remote = {"--server", server.target(), "--timeout", "1m", "--quiet"};
  Arguments save = Rewrite(kMnistPath, {"--save-plan", plan});
  save.insert(save.end(), remote.begin(), remote.end());
  ASSERT_EQ(Spillway(save).exit_code, 0);
  Arguments apply = {"apply", plan, kMnistPath, "-o", dir / "out.pb"};
  apply.insert(apply.end(), remote.begin(), remote.end());
  const ChildResult result = Spillway(apply);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(server.unary_calls(), 2);
  EXPECT_TRUE(ReadFile(dir / "out.pb") == Expected().graph_def());
}

TEST(CliTest, APlanThatCannotBeApplied) {
  const TempDir dir;
  const std::string plan = dir / "plan.json", out = dir / "out.pb";
  ASSERT_EQ(Spillway(Rewrite(kMnistPath, {"--save-plan", plan, "--quiet"})).exit_code, 0);
  const auto apply = [&](const std::string& text) {
    return Spillway({"apply", dir.Write("other.json", text), kMnistPath, "-o", out});
  };
  ExpectError(Spillway({"apply", plan, SPILLWAY_TEST_GRAPHS "/cond_v1/graph.pb", "-o", out}), 2,
              "the plan was made for another graph", "OTHER_GRAPH");
  for (const char* text : {"", "{", "[]", "null", "{\"swap\": 1}", "{\"meta_graphs\": 1}",
                           "{\"meta_graphs\": [{\"plan\": {}}]}",
                           "{\"meta_graphs\": [{\"index\": 0, \"plan\": 5}]}"}) {
    ExpectError(apply(text), 2, "this is no plan", "BAD_PLAN");
  }
  ExpectError(apply(std::string(1 << 20, '[')), 2, "this is no plan", "BAD_PLAN");
  ExpectError(apply("{}"), 2, "there is no plan in it", "BAD_PLAN");
  ExpectError(apply("{\"cpu_device\": \"/cpu:0\"}"), 2, "format_version of the plan is 0",
              "UNKNOWN_OPTION");
  // A tensor that the graph does not have.
  std::string json = ReadFile(plan);
  const size_t at = json.find("\"tensor\": \"") + 11;
  json.insert(at, "no_such_");
  ExpectError(apply(json), 2, "the graph has no node 'no_such_", "BAD_PLAN");
  ExpectError(Spillway({"apply", dir / "none.json", kMnistPath, "-o", out}), 4, "none.json",
              "FILE");
  ExpectError(Spillway({"apply", plan, kMnistPath, "-o", plan}), 2, "would overwrite the input",
              "CONFLICTING_OPTIONS");
  EXPECT_THAT(dir.Names(), ElementsAre("other.json", "plan.json"));
}

TEST(CliTest, ThereIsNoPlanOfAGraphThatIsKept) {
  const TempDir dir;
  ASSERT_EQ(Spillway(Rewrite(kMnistPath, {"-o", dir / "out.pb"})).exit_code, 0);
  ExpectError(Spillway(Rewrite(dir / "out.pb", {"--save-plan", dir / "plan.json", "--quiet"})), 2,
              "there is no plan to save", "CONFLICTING_OPTIONS");
  EXPECT_THAT(dir.Names(), ElementsAre("out.pb"));
}

TEST(CliTest, TheReportIsTheJsonOfTheProto) {
  const TempDir dir;
  const ChildResult result =
      Spillway(Rewrite(kMnistPath, {"-o", dir / "out.pb", "--report", dir / "report.json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string json = ReadFile(dir / "report.json");
  EXPECT_THAT(json, HasSubstr("\"node_count_before\""));
  v1::RewriteReport report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &report).ok()) << json;
  v1::RewriteReport expected = Expected().report();
  report.clear_stages();  // Times differ.
  expected.clear_stages();
  EXPECT_EQ(report.SerializeAsString(), expected.SerializeAsString());
}

TEST(CliTest, AReportAloneNeedsNoOutputFile) {
  const ChildResult result = Spillway(Rewrite(kMnistPath, {"--report", "-"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  v1::RewriteReport report;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &report).ok()) << result.out;
  EXPECT_EQ(report.strategy(), v1::STRATEGY_SCOPE);
}

TEST(CliTest, ThePatchIsTheJsonOfTheProto) {
  const ChildResult result = Spillway(Rewrite(kMnistPath, {"--patch", "-", "--quiet"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  v1::GraphPatch patch;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &patch).ok()) << result.out;
  EXPECT_EQ(patch.SerializeAsString(), Expected(v1::OUTPUT_PATCH).patch().SerializeAsString());
}

TEST(CliTest, WrongCommandLinesAreUsageErrors) {
  const TempDir dir;
  const Arguments out = {"-o", dir / "out.pb"};
  const auto with = [&out](Arguments more) {
    more.insert(more.end(), out.begin(), out.end());
    return Rewrite(kMnistPath, more);
  };
  ExpectError(Spillway({}), 2, "subcommand", "USAGE");
  ExpectError(Spillway({"rewrit"}), 2, "'rewrit'", "USAGE");
  ExpectError(Spillway({"rewrite"}), 2, "IN", "USAGE");
  ExpectError(Spillway(with({"--no-such-flag"})), 2, "--no-such-flag", "USAGE");
  ExpectError(Spillway({"health"}), 2, "--server", "USAGE");
  ExpectError(Spillway(with({"--lb", "many"})), 2, "--lb: 'many'", "BAD_OPTION");
  ExpectError(Spillway(with({"--feed", "x=1,-2"})), 2, "--feed: 'x=1,-2'", "BAD_OPTION");
  ExpectError(Spillway(with({"--timeout", "30"})), 2, "--timeout: '30'", "BAD_OPTION");
  ExpectError(Spillway(with({"--timeout", "-1s"})), 2, "--timeout", "BAD_OPTION");
  ExpectError(Spillway({"rewrite", kMnistPath, "-o", dir / "x", "--strategy", "magic"}), 2,
              "give one of: budget, level, scope (to undo", "UNKNOWN_OPTION");
  ExpectError(Spillway(Rewrite(kMnistPath, {})), 2, "-o FILE", "CONFLICTING_OPTIONS");
  EXPECT_THAT(dir.Names(), IsEmpty());
}

TEST(CliTest, TheInputIsNeverOverwritten) {
  const TempDir dir;
  const std::string in = dir.Write("in.pb", ReadFile(kMnistPath));
  ExpectError(Spillway(Rewrite(in, {"-o", dir / "./in.pb"})), 2, "overwrite the input",
              "CONFLICTING_OPTIONS");
  EXPECT_TRUE(ReadFile(in) == ReadFile(kMnistPath));
}

TEST(CliTest, AWrongGraphIsNamed) {
  const TempDir dir;
  const std::string empty = dir.Write("empty.pb", "");
  ExpectError(Spillway(Rewrite(empty, {"-o", dir / "out.pb"})), 3, "empty.pb", "EMPTY_GRAPH");
  ExpectError(Spillway(Rewrite("-", {"-o", dir / "out.pb"})), 3, "standard input", "EMPTY_GRAPH");
  EXPECT_THAT(dir.Names(), ElementsAre("empty.pb"));
}

TEST(CliTest, FilesThatCannotBeReadOrWrittenAreNamed) {
  const TempDir dir;
  ExpectError(Spillway(Rewrite(dir / "missing.pb", {"-o", dir / "out.pb"})), 4, "missing.pb",
              "FILE");
  ExpectError(Spillway(Rewrite(dir / "", {"-o", dir / "out.pb"})), 4, "directory", "FILE");
  ExpectError(Spillway(Rewrite(kMnistPath, {"-o", dir / ""})), 4, "directory", "FILE");
  ExpectError(Spillway(Rewrite(kMnistPath, {"-o", dir / "no/out.pb"})), 4, "no/out.pb", "FILE");
  ExpectError(Spillway(Rewrite(kMnistPath, {"-o", "/dev/full"})), 4, "/dev/full", "FILE");
  EXPECT_THAT(dir.Names(), IsEmpty());
}

// Whatever fails, and whenever: the outputs that were there stay, and nothing else appears.
TEST(CliTest, AFailureLeavesEverythingAsItWas) {
  const TempDir dir;
  const std::string out = dir.Write("out.pb", "old graph");
  const std::string report = dir.Write("report.json", "old report");
  const Arguments files = {"-o", out, "--report", report};
  const auto with = [&files](Arguments more) {
    more.insert(more.end(), files.begin(), files.end());
    return more;
  };
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

TEST(CliTest, AnUnreachableServerIsNamedWithWhatToDo) {
  const TempDir dir;
  const ChildResult result = Spillway(
      Rewrite(kMnistPath, {"-o", dir / "out.pb", "--server", "127.0.0.1:1", "--retries", "0"}));
  ExpectError(result, 5, "127.0.0.1:1", "UNAVAILABLE");
  EXPECT_THAT(result.err, HasSubstr("check the address"));
}

TEST(CliTest, EachRetryIsALineUnlessQuiet) {
  const Arguments arguments =
      Rewrite(kMnistPath, {"--report", "-", "--server", "127.0.0.1:1", "--retries", "1"});
  const ChildResult result = Spillway(arguments);
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, StartsWith("spillway: 127.0.0.1:1 cannot be reached; trying again in "));
  EXPECT_THAT(result.err, HasSubstr(" s (2 of 2)\nspillway: cannot reach the server"));
  Arguments quiet = arguments;
  quiet.push_back("--quiet");
  ExpectError(Spillway(quiet), 5, "127.0.0.1:1", "UNAVAILABLE");
  ExpectError(Spillway({"capabilities", "--server", "127.0.0.1:1", "--retries", "-1"}), 2,
              "--retries", "USAGE");
}

TEST(CliTest, InspectsAFileAndStandardInput) {
  const ChildResult file = Spillway({"inspect", kMnistPath});
  EXPECT_EQ(file.exit_code, 0) << file.err;
  EXPECT_EQ(file.err, "");
  EXPECT_THAT(file.out, AllOf(HasSubstr("name scope"), HasSubstr("adam_optimizer")));
  EXPECT_EQ(Spillway({"inspect", "-"}, ReadFile(kMnistPath)).out, file.out);
  const ChildResult json =
      Spillway({"inspect", kMnistPath, "--json", "--top", "3", "--batch-size", "50"});
  v1::GraphSummary summary;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.out, &summary).ok()) << json.out;
  EXPECT_EQ(summary.size_bytes(), static_cast<int64_t>(ReadFile(kMnistPath).size()));
  EXPECT_EQ(summary.largest_tensors_size(), 3);
}

TEST(CliTest, InspectNamesWhatIsWrong) {
  const TempDir dir;
  const std::string damaged = dir.Write("damaged.pb", ReadFile(kMnistPath).substr(0, 5000));
  ExpectError(Spillway({"inspect", damaged}), 3, "damaged.pb: ", "MALFORMED_GRAPH");
  ExpectError(Spillway({"inspect", dir / "missing.pb"}), 4, "missing.pb", "FILE");
  ExpectError(Spillway({"inspect", kMnistPath, "--top", "many"}), 2, "--top: 'many'", "BAD_OPTION");
  ExpectError(Spillway({"inspect", kMnistPath, "--top", "-1"}), 2, "--top is -1", "BAD_OPTION");
  ExpectError(Spillway({"inspect", kMnistPath, "--feed", "no=1"}), 2, "'no'",
              "NAME_MATCHES_NOTHING");
  ExpectError(Spillway({"inspect"}), 2, "GRAPH", "USAGE");
}

TEST(CliTest, DiffTellsARewriteAndHasTheExitCodesOfDiff) {
  const TempDir dir;
  const std::string out = dir / "out.pb";
  ASSERT_EQ(Spillway(Rewrite(kMnistPath, {"-o", out})).exit_code, 0);
  const ChildResult same = Spillway({"diff", kMnistPath, kMnistPath});
  EXPECT_EQ(same.exit_code, 0);
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
  v1::GraphDiff diff;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.out, &diff).ok()) << json.out;
  EXPECT_EQ(diff.swaps_size(), swaps);
}

TEST(CliTest, DiffNamesWhatIsWrong) {
  const TempDir dir;
  const std::string damaged = dir.Write("damaged.pb", ReadFile(kMnistPath).substr(0, 5000));
  ExpectError(Spillway({"diff", kMnistPath, damaged}), 3, "damaged.pb: ", "MALFORMED_GRAPH");
  ExpectError(Spillway({"diff", damaged, kMnistPath}), 3, "damaged.pb: ", "MALFORMED_GRAPH");
  ExpectError(Spillway({"diff", "-", "-"}), 2, "standard input", "CONFLICTING_OPTIONS");
  ExpectError(Spillway({"diff", kMnistPath}), 2, "B", "USAGE");
}

TEST(CliTest, AnOverloadedServerAndADamagedAnswerHaveTheirExitCodes) {
  const TempDir dir;
  ServerOptions options;
  options.fault = Fault::kEarlyError;
  TestServer overloaded(options);
  ExpectError(
      Spillway(Rewrite(kMnistPath, {"-o", dir / "out.pb", "--server", overloaded.target()})), 5,
      "no room now", "OVERLOADED");
  options.fault = Fault::kWrongChecksum;
  TestServer damaging(options);
  const std::string large = dir.Write("large.pb", GraphWithPadding(3 << 20));  // Is streamed.
  ExpectError(Spillway(Rewrite(large, {"-o", dir / "out.pb", "--server", damaging.target()})), 7,
              "CRC-32C", "BAD_STREAM");
  EXPECT_THAT(dir.Names(), ElementsAre("large.pb"));
}

// Starts a rewrite on a server that never answers, and sends it `signal_number` once it waits.
ChildResult Interrupt(int signal_number, const std::string& out) {
  ServerOptions options;
  options.fault = Fault::kHang;
  TestServer server(options);
  const pid_t child = StartChild(
      Command(Rewrite(kMnistPath, {"-o", out, "--server", server.target()})), -1, -1, -1);
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

TEST(CliTest, ASignalEndsAWaitForInput) {
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  const pid_t child = StartChild(Command(Rewrite("-", {"-o", "/dev/null"})), input[0], -1, -1);
  kill(child, SIGTERM);
  const ChildResult result = WaitForChild(child);
  close(input[0]);
  close(input[1]);
  // The signal may come before the program is ready for it: then it ends as any program does.
  EXPECT_TRUE(result.exit_code == 6 || result.signal == SIGTERM) << result.exit_code;
}

// As `| head`: silent, and by the signal, as of tools that never asked for anything else.
TEST(CliTest, AClosedPipeIsNoError) {
  const TempDir dir;
  for (const Arguments& arguments :
       {Rewrite(kMnistPath, {"-o", "-", "--quiet"}), Arguments{"--help"},
        Arguments{"rewrite", "--help"}, Arguments{"capabilities"}, Arguments{"version"},
        Arguments{"inspect", kMnistPath, "--shapes"}}) {  // More than a buffer holds.
    int output[2], errors[2];
    ASSERT_EQ(pipe2(output, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(errors, O_CLOEXEC), 0);
    close(output[0]);  // Nobody reads.
    const pid_t child = StartChild(Command(arguments), -1, output[1], errors[1]);
    close(errors[1]);
    const ChildResult result = WaitForChild(child);
    close(output[1]);
    EXPECT_EQ(result.signal, SIGPIPE) << arguments[0];
    char said = 0;
    EXPECT_EQ(read(errors[0], &said, 1), 0) << arguments[0] << " has something to say";
    close(errors[0]);
  }
  // Files beside it are lost, which has to be told.
  int output[2];
  ASSERT_EQ(pipe2(output, O_CLOEXEC), 0);
  close(output[0]);
  const pid_t child = StartChild(
      Command(Rewrite(kMnistPath, {"-o", dir / "out.pb", "--report", "-"})), -1, output[1], -1);
  const ChildResult result = WaitForChild(child);
  close(output[1]);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(dir.Names(), IsEmpty());
}

TEST(CliTest, Capabilities) {
  const ChildResult local = Spillway({"capabilities"});
  EXPECT_EQ(local.exit_code, 0) << local.err;
  EXPECT_THAT(local.out, AllOf(HasSubstr(core::Version()), HasSubstr("max_node_count")));
  TestServer server;
  EXPECT_THAT(Spillway({"capabilities", "--server", server.target()}).out,
              HasSubstr(core::Version() + " (this program: " + core::Version() + ")"));
  const ChildResult json = Spillway({"capabilities", "--server", server.target(), "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  v1::GetCapabilitiesResponse response;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.out, &response).ok()) << json.out;
  EXPECT_EQ(response.limits().max_unary_bytes(), core::DefaultLimits().max_unary_bytes());
}

TEST(CliTest, HealthIsInTheExitCode) {
  TestServer healthy;
  ServerOptions options;
  options.healthy = false;
  TestServer unhealthy(options);
  const auto health = [](const TestServer& server, Arguments more = {}) {
    Arguments arguments = {"health", "--server", server.target()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Spillway(arguments);
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
  const ChildResult help = Spillway({"--help"});
  EXPECT_EQ(help.exit_code, 0);
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
