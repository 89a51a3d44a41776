// `check`, its files for the next rewrite, and `--hardware FILE`, as their users run them.
#include <sys/stat.h>

#include <cstdio>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client_lib/cli_json.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/testing/files.h"

namespace spillway::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kProfilePrefix[] = "spillway-profile-";

// A graph, and the trace that TensorFlow made of a step of it (make_run_metadata.py).
class CliCheckTest : public ::testing::Test {
 protected:
  CliCheckTest()
      : graph_(dir_.Write("graph.pb", ReadTestGraph("mnist_deep/graph_shapes.pb"))),
        trace_(dir_.Write("step.pb", ReadTestGraph("mnist_deep/run_metadata.pb"))) {}

  std::string StepTime(const Words& more) {
    return Parsed(Done(Words{"simulate", graph_, "--json"} + more).out)["forecast"]["step_time_ns"];
  }

  std::string StoredName() {
    for (const std::string& name : dir_.Names()) {
      if (name.rfind(kProfilePrefix, 0) == 0) return name;
    }
    return "";
  }

  TempDir dir_;
  const std::string graph_, trace_;
};

TEST_F(CliCheckTest, OfAGraphAsItCame) {
  const json found = Parsed(Done({"check", graph_, trace_, "--json"}).out);
  EXPECT_EQ(found["swap_outs"]["planned"], "0");
  // With the trace's times, as --profile has them.
  EXPECT_EQ(found["corrected_step_time_ns"], StepTime({"--profile", trace_}));
  EXPECT_EQ(found["step_time_ns"]["planned"], StepTime({}));
  EXPECT_NE(StepTime({}), StepTime({"--profile", trace_}));
  const ChildResult text = Spillway({"check", graph_, trace_});
  EXPECT_THAT(text.out, AllOf(HasSubstr("this graph has no swaps"),
                              HasSubstr("step, launched ahead"), HasSubstr("with the trace")));
}

TEST_F(CliCheckTest, SwapsThatTheTraceDoesNotHaveAreNamed) {
  const std::string out = dir_ / "out.pb";
  const ChildResult rewrite = Spillway(
      {"rewrite", graph_, "-o", out, "--strategy", "scope", "--n-tensors", "2", "--quiet"});
  ASSERT_EQ(rewrite.exit_code, 0) << rewrite.err;
  // The trace is of the graph without swaps.
  const json found = Parsed(Done({"check", out, trace_, "--json"}).out);
  EXPECT_EQ(found["swap_outs"]["planned"], "2");
  EXPECT_EQ(found["swap_outs"]["seen"], "0");
  EXPECT_THAT(std::string(found["missing"][0]), HasSubstr("lms/swapout_"));
  // The same of a graph whose record is gone, by the original.
  const json by_original = Parsed(Done({"check", out, trace_, "--original", graph_, "--json"}).out);
  EXPECT_EQ(by_original, found);
}

// Sizes are known only with the batch.
TEST_F(CliCheckTest, PlannedBytesAreThoseOfTheBatch) {
  const std::string open = dir_.Write("open.pb", ReadTestGraph("mnist_deep/graph.pb"));
  const std::string out = dir_ / "out.pb", report = dir_ / "report.json";
  Done({"rewrite", open, "-o", out, "--report", report, "--strategy", "scope", "--n-tensors", "2",
        "--batch-size", "24", "--quiet"});
  const json unknown = Parsed(Done({"check", out, trace_, "--json"}).out);
  EXPECT_FALSE(unknown["copy_out_bytes"].contains("planned"));
  EXPECT_EQ(unknown["unknown_size_count"], "2");
  const json known = Parsed(Done({"check", out, trace_, "--json", "--batch-size", "24"}).out);
  EXPECT_EQ(known["copy_out_bytes"]["planned"],
            Parsed(ReadFile(report))["devices"][0]["swap_out_bytes"]);
  EXPECT_EQ(known["unknown_size_count"], "0");
}

TEST_F(CliCheckTest, AStoredProfileIsUsedFromThenOn) {
  const std::string plain = StepTime({}), measured = StepTime({"--profile", trace_});
  const ChildResult check = Spillway({"check", graph_, trace_, "--save-profile"});
  ASSERT_EQ(check.exit_code, 0) << check.err;
  const std::string name = StoredName();
  EXPECT_THAT(check.err, HasSubstr(name));
  EXPECT_THAT(dir_.Names(), ElementsAre("graph.pb", name, "step.pb"));

  const ChildResult simulated = Spillway({"simulate", graph_});
  EXPECT_THAT(simulated.err, HasSubstr(name));
  EXPECT_EQ(StepTime({}), measured);
  EXPECT_EQ(StepTime({"--no-stored-profile"}), plain);
  // Of the same graph under another name, and of a rewrite.
  const std::string copy = dir_.Write("copy.pb", ReadFile(graph_));
  const ChildResult rewrite =
      Spillway({"rewrite", copy, "-o", dir_ / "out.pb", "--strategy", "scope"});
  EXPECT_THAT(rewrite.err, HasSubstr(name));
  EXPECT_THAT(
      Spillway({"rewrite", copy, "-o", dir_ / "out.pb", "--strategy", "scope", "--quiet"}).err,
      IsEmpty());

  // So do traces and pictures.
  const std::string of_rewrite = dir_ / "rewrite.json", of_file = dir_ / "file.json";
  Spillway({"rewrite", copy, "-o", dir_ / "out.pb", "--strategy", "scope", "--quiet", "--trace",
            of_rewrite});
  Spillway({"simulate", dir_ / "out.pb", "--trace", of_file});
  EXPECT_THAT(ReadFile(of_rewrite), HasSubstr("traceEvents"));
  EXPECT_EQ(ReadFile(of_rewrite), ReadFile(of_file));
  const auto picture = [&](const Words& flags) {
    return Spillway(Words{"plot", graph_, "-o", "-", "--no-plan"} + flags).out;
  };
  EXPECT_THAT(picture({}), HasSubstr("<svg"));
  EXPECT_EQ(picture({}), picture({"--profile", trace_}));
  EXPECT_NE(picture({}), picture({"--no-stored-profile"}));

  // Another batch is another step.
  const ChildResult other_batch = Spillway({"simulate", graph_, "--batch-size", "7"});
  EXPECT_THAT(other_batch.err, AllOf(HasSubstr("is not used"), HasSubstr("--batch-size 7")));
  // Other graphs have none.
  const std::string other = dir_.Write("cond.pb", ReadTestGraph("cond_v1/graph_shapes.pb"));
  EXPECT_THAT(Spillway({"simulate", other}).err, Not(HasSubstr("profile")));
}

TEST_F(CliCheckTest, ARunTakesItAndCachesByIt) {
  const Words run = {"run",         "--graph",      graph_,     "--strategy",         "scope",
                     "--cache-dir", dir_ / "cache", "--report", dir_ / "report.json", "--",
                     "true"};
  ASSERT_EQ(Spillway(run).exit_code, 0);
  const std::string before = ReadFile(dir_ / "report.json");
  ASSERT_EQ(Spillway({"check", graph_, trace_, "--save-profile"}).exit_code, 0);
  ASSERT_EQ(Spillway(run).exit_code, 0);
  EXPECT_NE(ReadFile(dir_ / "report.json"), before);
  Words without = run;
  without.insert(without.begin() + 1, "--no-stored-profile");
  ASSERT_EQ(Spillway(without).exit_code, 0);
  EXPECT_EQ(ReadFile(dir_ / "report.json"), before);
}

TEST_F(CliCheckTest, ADamagedProfileIsToldOfAndLeftAlone) {
  ASSERT_EQ(Spillway({"check", graph_, trace_, "--save-profile"}).exit_code, 0);
  const std::string name = StoredName();
  const std::string good = ReadFile(dir_ / name);
  const std::string plain = StepTime({"--no-stored-profile"});
  for (const std::string& bytes : {std::string(), std::string("x"), good.substr(0, 100)}) {
    dir_.Write(name, bytes);
    const ChildResult result = Spillway({"simulate", graph_});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("damaged"));
    EXPECT_EQ(StepTime({}), plain);
  }
  // No command opens a pipe so named.
  ASSERT_EQ(remove((dir_ / name).c_str()), 0);
  ASSERT_EQ(mkfifo((dir_ / name).c_str(), 0600), 0);
  EXPECT_EQ(StepTime({}), plain);
}

TEST_F(CliCheckTest, AMachineFromAFileIsThatOfTheFlags) {
  const std::string file =
      dir_.Write("card.json",
                 R"({"preset": "v100_nvlink2", "gpu_memory_bytes": "8000000000", "mem_eff": 0.5})");
  const std::string by_flags = StepTime(
      {"--hardware", "v100_nvlink2", "--gpu-memory-bytes", "8000000000", "--mem-eff", "0.5"});
  EXPECT_EQ(StepTime({"--hardware", file}), by_flags);
  // Flags replace its values.
  EXPECT_EQ(StepTime({"--hardware", file, "--mem-eff", "0.9"}),
            StepTime({"--hardware", "v100_nvlink2", "--gpu-memory-bytes", "8000000000", "--mem-eff",
                      "0.9"}));
}

}  // namespace
}  // namespace spillway::testing
