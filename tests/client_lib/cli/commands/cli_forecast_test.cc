// `simulate`, `explore`, `inspect --shapes` and `--memory`, and forecasts of `rewrite`, as their
// users run them on training graphs.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client_lib/cli_json.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/raw_bytes.h"
#include "tests/testing/sanitizers.h"

namespace spillway::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// The program's output; its failure fails the test.
std::string Output(const Words& arguments, const std::string& input = "") {
  const ChildResult result = Spillway(arguments, input);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

json Json(const Words& arguments, const std::string& input = "") {
  return Parsed(Output(arguments + Words{"--json"}, input));
}

// Lines of a table, by the text before the first tab.
std::map<std::string, std::string> ByName(const std::string& table) {
  std::map<std::string, std::string> rows;
  for (absl::string_view line : absl::StrSplit(table, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> row =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    EXPECT_TRUE(rows.emplace(row.first, row.second).second) << line;
  }
  return rows;
}

// A graph of tests/graphs in a file of its own.
class CliForecastTest : public ::testing::Test {
 protected:
  std::string Graph(const std::string& name) {
    return dir_.Write(absl::StrCat(name, ".pb"), ReadTestGraph(absl::StrCat(name, "/graph.pb")));
  }

  // In a folder `bin`, a program that is `script`.
  void InstallNvidiaSmi(const std::string& script) {
    std::filesystem::create_directory(dir_ / "bin");
    dir_.Write("bin/nvidia-smi", script);
    std::filesystem::permissions(dir_ / "bin/nvidia-smi", std::filesystem::perms::owner_all);
  }

  const TempDir dir_;
};

// The names whose shape TensorFlow knows but we do not report.
std::vector<std::string> Differences(const std::map<std::string, std::string>& truth,
                                     const std::map<std::string, std::string>& ours) {
  std::vector<std::string> names;
  for (const auto& [name, row] : truth) {
    const auto it = ours.find(name);
    // If TensorFlow has a question mark, we may know more.
    const bool equal = it != ours.end() && (it->second == row || absl::StrContains(row, '?'));
    if (!equal) names.push_back(name);
  }
  return names;
}

TEST_F(CliForecastTest, ShapesAreTensorFlows) {
  for (const char* name : {"resnet50_tf1", "mnist_deep", "cond_v1", "bert_base"}) {
    const std::string graph =
        dir_.Write(name, ReadTestGraph(absl::StrCat(name, "/graph_shapes.pb")));
    const auto truth = ByName(ReadTestGraph(absl::StrCat(name, "/shapes.tsv")));
    const auto ours = ByName(Output({"inspect", "--shapes", graph}));
    EXPECT_EQ(ours.size(), truth.size());
    EXPECT_THAT(Differences(truth, ours), IsEmpty()) << name;
  }
}

// Without `_output_shapes`: as TensorFlow infers them when it knows the feeds.
TEST_F(CliForecastTest, ShapesOfAPlainGraphWithItsBatch) {
  struct Case {
    std::string name, batch;
    Words flags;
  };
  for (const auto& [name, batch, flags] : std::vector<Case>{
           {"mnist_deep", "1024", {"--batch-size", "1024", "--feed", "dropout/keep_prob="}},
           {"cond_v1", "256", {"--batch-size", "256"}},
           {"resnet50_free", "200", {"--feed", "images=200,224,224,3", "--feed", "labels=200"}}}) {
    const auto truth = ByName(ReadTestGraph(absl::StrCat(name, "/shapes_b", batch, ".tsv")));
    const Words plain = {"inspect", "--shapes", Graph(name)};
    EXPECT_THAT(Differences(truth, ByName(Output(plain))), Not(IsEmpty())) << name;
    EXPECT_THAT(Differences(truth, ByName(Output(plain + flags))), IsEmpty()) << name;
  }
}

// Published: ResNet-50 trains on a P100 of 16 GB with 150 images, and not with 200.
TEST_F(CliForecastTest, TheLargestBatchOfResnet50) {
  const std::string graph = Graph("resnet50_free");
  const json report = Json({"explore", graph, "--hardware", "p100_pcie", "--sizes", "150,200"});
  const int64_t largest = Number(report["largest_fitting_size"]);
  EXPECT_GE(largest, 150);
  EXPECT_LT(largest, 200);
  EXPECT_EQ(report["size_is_batch"], true);
  EXPECT_EQ(report["hardware"]["hardware"]["preset"], "p100_pcie");
  for (const json& size : report["sizes"]) {
    EXPECT_EQ(size["unswapped"]["fit"],
              Number(size["size"]) <= largest ? "FIT_FITS" : "FIT_DOES_NOT_FIT");
    EXPECT_EQ(size.contains("sizes_per_s"), Number(size["size"]) <= largest);
  }
  for (const auto& [batch, fits] :
       std::vector<std::pair<int64_t, bool>>{{largest, true}, {largest + 1, false}}) {
    const json simulated = Json({"simulate", graph, "--batch-size", absl::StrCat(batch)});
    EXPECT_EQ(simulated["forecast"]["fit"], fits ? "FIT_FITS" : "FIT_DOES_NOT_FIT") << batch;
    EXPECT_EQ(simulated["forecast"].contains("out_of_memory"), !fits);
    EXPECT_EQ(simulated["forecast"].contains("step_time_ns"), fits);
  }
  const std::string text = Output({"explore", graph, "--sizes", "150,200"});
  EXPECT_THAT(text, HasSubstr(absl::StrCat("\nbatch ", largest, " is the largest that fits")));
  const json multiple = Json({"explore", graph, "--multiple-of", "32"});
  EXPECT_EQ(Number(multiple["largest_fitting_size"]), largest / 32 * 32);
  // The same batch as dimensions of the feeds.
  const json feeds = Json({"explore", graph, "--feed", "images=N,224,224,3", "--feed", "labels=N",
                           "--sizes", "150,200"});
  EXPECT_EQ(feeds["largest_fitting_size"], report["largest_fitting_size"]);
}

TEST_F(CliForecastTest, RangesOfSizes) {
  const json report = Json(
      {"explore", Graph("mnist_deep"), "--sizes", "8:24:8,40", "--sizes", "50:51", "--no-budget"});
  std::vector<int64_t> sizes;
  for (const json& size : report["sizes"]) sizes.push_back(Number(size["size"]));
  EXPECT_THAT(sizes, ::testing::ElementsAre(8, 16, 24, 40, 50, 51));
  EXPECT_FALSE(report.contains("largest_fitting_size"));
}

TEST_F(CliForecastTest, SimulateSaysWhatIsTooMuch) {
  const std::string graph = Graph("resnet50_tf1");
  const std::string text = Output({"simulate", graph});
  EXPECT_THAT(text, StartsWith("does not fit: the GPU would need "));
  EXPECT_THAT(text, AllOf(HasSubstr(" more than its 13.37 GiB\n"), HasSubstr("might make it fit"),
                          HasSubstr("ran out"), Not(HasSubstr("of the step's time"))));
  // One batch norm's tensors are more than a GiB.
  EXPECT_THAT(Output({"simulate", graph, "--gpu-memory-bytes", "1GiB"}),
              HasSubstr("cannot make it fit"));
  EXPECT_THAT(Output({"simulate", graph, "--gpu-memory-bytes", "40GiB"}),
              StartsWith("fits into 36.00 GiB per GPU"));
  EXPECT_THAT(Output({"simulate", graph, "--no-budget"}), StartsWith("with unlimited memory"));
  for (absl::string_view line : absl::StrSplit(text, '\n')) EXPECT_LE(line.size(), 100) << line;
}

// The third answer, and the option that makes it known.
TEST_F(CliForecastTest, WhetherItFitsMayBeUnknown) {
  const std::string graph = Graph("resnet50_free");
  const std::string text = Output({"simulate", graph});
  EXPECT_THAT(text, AllOf(StartsWith("unknown whether it fits into 13.37 GiB per GPU: "),
                          HasSubstr("  unknown "), HasSubstr("node 'images'"),
                          HasSubstr("batch_size or feeds, ")));
  const json forecast = Json({"simulate", graph})["forecast"];
  EXPECT_EQ(forecast["fit"], "FIT_UNKNOWN");
  EXPECT_EQ(forecast["fit_unknown"][0]["cause"], "FIT_UNKNOWN_CAUSE_SIZES");
  for (const auto& [flags, code] :
       std::vector<std::pair<Words, int>>{{{}, 9},
                                          {{"--batch-size", "100"}, 0},
                                          {{"--batch-size", "300"}, 8},
                                          {{"--gpu-memory-bytes", "1MiB"}, 8},
                                          {{"--no-budget"}, 0}}) {
    EXPECT_EQ(Spillway(Words{"simulate", graph, "--require-fit"} + flags).exit_code, code)
        << ::testing::PrintToString(flags);
  }
}

// A rewrite that plans for a budget knows that third answer, too; the graph is written.
TEST_F(CliForecastTest, WhetherSwappingIsNeededMayBeUnknown) {
  const std::string graph = dir_.Write("unknown.pb", GraphBytes(R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    w = VariableV2() {dtype=float32, shape=(4,4)}
    product = MatMul(x, w) {T=float32, transpose_a=false, transpose_b=false}
    rows = OfAnotherPackage(product)
    gradient = MatMul(x, rows) {T=float32, transpose_a=true, transpose_b=false}
    rate = Const() {dtype=float32}
    update = ApplyGradientDescent(w, rate, gradient) {T=float32}
  )"));
  for (const char* strategy : {"budget", "level"}) {
    const std::string out = dir_ / absl::StrCat(strategy, ".pb");
    const ChildResult result = Spillway({"rewrite", graph, "-o", out, "--strategy", strategy});
    EXPECT_EQ(result.exit_code, 9) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("unknown whether swapping is needed"),
                                  HasSubstr("'rows'"), Not(HasSubstr("no swapping is needed"))));
    EXPECT_EQ(Spillway({"diff", graph, out}).exit_code, 0);
  }
}

// A conditional takes the side that is fed, and the worse one if that is unknown.
TEST_F(CliForecastTest, ConditionalsTakeOneSide) {
  const Words simulate = {"simulate", Graph("cond_v1"), "--batch-size", "256"};
  const auto with = [&](const std::string& feed) { return simulate + Words{"--feed", feed}; };
  EXPECT_THAT(Output(simulate), HasSubstr("'wide' is assumed true"));
  EXPECT_THAT(Output(with("wide=")), HasSubstr("'wide' is assumed true"));
  EXPECT_THAT(Output(with("wide=true")), Not(HasSubstr("'wide' is assumed")));
  const json wide = Json(with("wide=true"))["forecast"];
  EXPECT_EQ(wide["devices"][0]["peak_bytes"],
            Json(simulate)["forecast"]["devices"][0]["peak_bytes"]);
  EXPECT_NE(wide["devices"][0]["compute_ns"],
            Json(with("wide=false"))["forecast"]["devices"][0]["compute_ns"]);
  EXPECT_EQ(wide, Json(with("wide=:1"))["forecast"]);
}

TEST_F(CliForecastTest, EveryGpuHasItsRowAndItsColumn) {
  const Words simulate = {"simulate", Graph("tfcnn_inception3_4gpu")};
  EXPECT_THAT(Output(simulate),
              AllOf(HasSubstr("\n  /device:GPU:0 "), HasSubstr("\n  /device:GPU:3 ")));
  const std::string text = Output(simulate + Words{"--verbose"});
  EXPECT_THAT(text, HasSubstr("/device:GPU:0  /device:GPU:1  /device:GPU:2  /device:GPU:3\n"));
  const json report = Json({"simulate", dir_ / "tfcnn_inception3_4gpu.pb"});
  EXPECT_THAT(report["forecast"]["devices"], SizeIs(4));
}

TEST_F(CliForecastTest, MemoryAddsUp) {
  const std::string graph = Graph("unet3d");
  const json report =
      Json({"inspect", "--memory", graph, "--batch-size", "1", "--hardware", "v100_pcie"});
  EXPECT_EQ(report["hardware"]["hardware"]["preset"], "v100_pcie");
  ASSERT_THAT(report["memory"], SizeIs(1));
  int64_t peak = 0;
  for (const json& sample : report["memory"][0]["timeline"]) {
    peak = std::max(peak, Number(sample["bytes"]));
  }
  int64_t alive = 0, resident = 0, last = INT64_MAX;
  for (const json& live : report["memory"][0]["live_at_peak"]) {
    const int64_t bytes = Number(live["tensor"]["size_bytes"]);
    EXPECT_LE(bytes, last);  // Largest first.
    last = bytes;
    // The allocator rounds up to 256.
    alive += (bytes + 255) / 256 * 256;
    if (live["resident"] == true) resident += (bytes + 255) / 256 * 256;
  }
  // And the memory of the peak's kernel besides its outputs.
  const json& device = report["forecast"]["devices"][0];
  for (const json& temporary : report["temporaries"]) {
    if (temporary["node"] == device["peak_node"])
      alive += (Number(temporary["bytes"]) + 255) / 256 * 256;
  }
  EXPECT_EQ(alive, peak);
  EXPECT_EQ(resident, Number(report["forecast"]["devices"][0]["resident_bytes"]));
  const std::string text =
      Output({"inspect", "--memory", graph, "--batch-size", "1", "--top", "3"});
  EXPECT_THAT(text, AllOf(StartsWith("memory of the GPU\n"), HasSubstr("live at the peak"),
                          HasSubstr(" more\n"), HasSubstr("distance in levels")));
}

// The forecast in a rewrite's report is that of the rewritten file.
TEST_F(CliForecastTest, RewriteForetellsWhatSimulateSaysOfItsOutput) {
  const std::string graph = Graph("resnet50_free");
  const ChildResult result = Spillway({"rewrite", graph, "-o", dir_ / "out", "--strategy", "scope",
                                       "--batch-size", "200", "--json", "--verbose"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("  forecast "), HasSubstr(" before "),
                                HasSubstr("does not fit: the GPU would need ")));
  const json report = json::parse(result.out);
  EXPECT_EQ(report["forecast_before"]["fit"], "FIT_DOES_NOT_FIT");
  EXPECT_EQ(report["forecast_after"]["fit"], "FIT_FITS");
  json before = Json({"simulate", graph, "--batch-size", "200"})["forecast"];
  json after = Json({"simulate", dir_ / "out", "--batch-size", "200"})["forecast"];
  EXPECT_EQ(report["forecast_before"]["devices"][0]["peak_bytes"],
            before["devices"][0]["peak_bytes"]);
  EXPECT_EQ(report["forecast_after"]["step_time_ns"], after["step_time_ns"]);
  EXPECT_EQ(report["forecast_after"]["devices"][0]["peak_bytes"],
            after["devices"][0]["peak_bytes"]);
  // And it can be left out.
  const ChildResult off = Spillway(
      {"rewrite", graph, "-o", dir_ / "out", "--strategy", "scope", "--simulation", "off"});
  EXPECT_EQ(off.exit_code, 0);
  EXPECT_THAT(off.err, Not(HasSubstr("peak memory")));
}

TEST_F(CliForecastTest, LevelSaysWhatItChoseAndWhy) {
  const std::string graph = Graph("resnet50_tf1");
  const ChildResult tuned = Spillway(
      {"rewrite", graph, "-o", dir_ / "out", "--strategy", "level", "--json", "--verbose"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.err,
              AllOf(HasSubstr("  setting      swapout_threshold "),
                    HasSubstr("  budget       13.37 GiB, from the preset p100_pcie, less 10% for "),
                    HasSubstr(" more than the budget\n"), HasSubstr(" fitting\n")));
  const json report = json::parse(tuned.out);
  EXPECT_EQ(report["fits"][0]["budget_source"], "MEMORY_SOURCE_PRESET");
  // Given these values, it takes the same setting, and makes the same graph.
  const json& device = report["level"]["devices"][0];
  Words given = {"rewrite",      graph,         "-o",
                 dir_ / "again", "--strategy",  "level",
                 "--verbose",    "--sync-mode", device["sync_mode"].dump()};
  for (const auto& [flag, field] :
       std::map<std::string, std::string>{{"--swapout-threshold", "swapout_threshold"},
                                          {"--swapin-ahead", "swapin_ahead"},
                                          {"--swapin-groupby", "swapin_groupby"}}) {
    if (!device.contains(field)) continue;
    given.insert(given.end(), {flag, device[field].dump()});
  }
  const ChildResult again = Spillway(given);
  EXPECT_THAT(again.err, HasSubstr("given)\n"));
  EXPECT_EQ(Spillway({"diff", dir_ / "out", dir_ / "again"}).exit_code, 0);

  EXPECT_THAT(Spillway({"rewrite", graph, "-o", dir_ / "out", "--strategy", "level",
                        "--gpu-memory-bytes", "32GiB", "--verbose"})
                  .err,
              HasSubstr("  budget       28.80 GiB, from --gpu-memory-bytes, less 10% for "));
  // One batch norm's tensors are more than a GiB.
  ExpectError(Spillway({"rewrite", graph, "-o", dir_ / "none", "--strategy", "level",
                        "--gpu-memory-bytes", "1GiB"}),
              8, {"921.60 MiB", "DOES_NOT_FIT"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "none"));
}

// Both as the flags that a user would give.
TEST_F(CliForecastTest, WhatMoreRecomputationWouldGain) {
  if (spillway::testing::kAddressSanitizer) GTEST_SKIP() << "searches take minutes";
  const std::vector<std::string> line = {"rewrite",
                                         SPILLWAY_TEST_GRAPHS "/resnet50_tf1/graph_shapes.pb",
                                         "-o",
                                         dir_ / "out.pb",
                                         "--hardware",
                                         "a100_40gb_pcie4",
                                         "--gpu-memory-bytes",
                                         "9GiB",
                                         "--verbose"};
  const ChildResult fits = Spillway(line);
  EXPECT_EQ(fits.exit_code, 0);
  EXPECT_THAT(fits.err, HasSubstr("bits         the same with Grappler off, or with"));
  EXPECT_THAT(fits.err, HasSubstr("advice       with --recompute all a step takes at most "));
  // In short it is the first line, unless the user has chosen.
  std::vector<std::string> brief(line.begin(), line.end() - 1);
  EXPECT_THAT(Spillway(brief).err,
              HasSubstr("(strategy budget)\n  advice  with --recompute all a step takes at most "));
  brief.insert(brief.end(), {"--recompute", "cheap"});
  EXPECT_THAT(Spillway(brief).err, Not(HasSubstr("--recompute all")));
  std::vector<std::string> little = line;
  little.insert(little.end(), {"--host-memory-bytes", "2GiB", "--recompute", "off"});
  ExpectError(
      Spillway(little), 8,
      {"or allow more recomputation (--recompute all), which makes a plan fit", "DOES_NOT_FIT"});
}

TEST_F(CliForecastTest, ExploreTellsWhatSwappingMakesPossible) {
  if (spillway::testing::kAddressSanitizer) GTEST_SKIP() << "searches take minutes";
  const std::string graph = Graph("resnet50_free");
  const Words command = {"explore", graph, "--sizes", "128,192", "--multiple-of", "64"};
  const Words swapping =
      command + Words{"--swapping", "--recompute", "off"};  // In a third of the time.
  const json report = Json(swapping);
  EXPECT_EQ(report["largest_fitting_size"], "128");
  EXPECT_GE(Number(report["largest_fitting_size_swapped"]), 192);
  for (const json& size : report["sizes"]) {
    const double full_speed = size["full_speed_sizes_per_s"];
    EXPECT_GT(full_speed, 0);
    if (!size.contains("swapped")) continue;
    EXPECT_LE(Number(size["swapped"]["devices"][0]["peak_bytes"]),
              Number(report["hardware"]["hardware"]["gpu_memory_bytes"]));
    EXPECT_LE(size["swapped_sizes_per_s"], full_speed * 1.0001);  // Rounded.
  }
  EXPECT_THAT(Output(swapping),
              AllOf(HasSubstr("\n  largest    batch "), HasSubstr("\n  fastest    batch "),
                    HasSubstr(" of full speed, with swapping\n"), HasSubstr(" not needed ")));
  // Only on request.
  EXPECT_FALSE(Json(command).contains("largest_fitting_size_swapped"));
  EXPECT_THAT(Output(command), Not(HasSubstr("swapping")));
}

TEST_F(CliForecastTest, AProfileReplacesEstimates) {
  const std::string graph = Graph("mnist_deep");
  const std::string profile = dir_.Write("profile", ReadTestGraph("mnist_deep/run_metadata.pb"));
  const json measured = Json({"simulate", graph, "--batch-size", "8", "--profile", profile});
  const json estimated = Json({"simulate", graph, "--batch-size", "8"});
  // It was recorded on a CPU, which takes longer than a GPU's roofline.
  EXPECT_GT(Number(measured["forecast"]["step_time_ns"]),
            10 * Number(estimated["forecast"]["step_time_ns"]));
}

// A command's output on both streams, with that first in PATH.
ChildResult WithPath(const std::string& folder, const Words& arguments) {
  const std::string path = getenv("PATH");
  setenv("PATH", absl::StrCat(folder, ":", path).c_str(), 1);
  const ChildResult result = Spillway(arguments);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

// A GPU of 24 GiB, less 700 MiB of the driver, less TensorFlow's 1536 MiB: 21.82 GiB.
TEST_F(CliForecastTest, NvidiaSmiSaysTheBudgetIfTheUserDoesNot) {
  const std::string graph = Graph("mnist_deep");
  InstallNvidiaSmi("#!/bin/sh\necho 24576, 8.6\n");
  const std::string bin = dir_ / "bin";
  // It gives this answer to each question, so that the name is unknown: like an A10 by its 8.6.
  const std::string note =
      "spillway: from nvidia-smi: 24576, 8.6, 21.82 GiB of 24.00 GiB for TensorFlow; planned for "
      "a10, the most similar ";
  const Words rewrite = {"rewrite",      graph, "-o",     dir_ / "out",
                         "--batch-size", "8",   "--feed", "dropout/keep_prob="};
  for (const Words& command : std::vector<Words>{{"simulate", graph},
                                                 {"inspect", graph, "--memory"},
                                                 {"explore", graph, "--sizes", "8"},
                                                 rewrite,
                                                 rewrite + Words{"--strategy", "level"}}) {
    EXPECT_THAT(WithPath(bin, command).err, StartsWith(note)) << ::testing::PrintToString(command);
  }
  EXPECT_THAT(
      WithPath(bin, {"simulate", graph, "--batch-size", "8", "--feed", "dropout/keep_prob="}).out,
      StartsWith("fits into 19.63 GiB per GPU"));
  for (const Words& command : std::vector<Words>{{"simulate", graph, "--hardware", "p100_pcie"},
                                                 {"inspect", graph},
                                                 rewrite + Words{"--quiet"},
                                                 {"strip", graph, "-o", dir_ / "out"}}) {
    EXPECT_THAT(WithPath(bin, command).err, Not(HasSubstr("nvidia-smi")))
        << ::testing::PrintToString(command);
  }
  const ChildResult run = WithPath(bin, {"run", "--graph", graph, "--cache-dir", dir_ / "cache",
                                         "--strategy", "scope", "--", "true"});
  EXPECT_THAT(run.err, HasSubstr(" (21.82 GiB per GPU from nvidia-smi)\n"));
  // From the cache it prints the same.
  const ChildResult again = WithPath(bin, {"run", "--graph", graph, "--cache-dir", dir_ / "cache",
                                           "--strategy", "scope", "--", "true"});
  EXPECT_THAT(again.err, HasSubstr(" per GPU from nvidia-smi, from the cache)\n"));
}

// 24 GiB, of which another process has 8: TensorFlow gets 16384 - 1536 MiB. Forecasts ignore that
// process.
TEST_F(CliForecastTest, RunPlansForTheMemoryThatIsFree) {
  const std::string graph = Graph("mnist_deep");
  InstallNvidiaSmi("#!/bin/sh\necho 24576, 8.6, 16384\n");
  const Words run = {"run",        "--graph", graph, "--cache-dir", dir_ / "cache",
                     "--strategy", "scope",   "--",  "true"};
  const auto warned = HasSubstr(
      "spillway: another process has memory of 24576, 8.6, 16384: TensorFlow would get 14.50 GiB "
      "of "
      "21.82 GiB now, so the plan is for 14.50 GiB; ");
  for (int i = 0; i < 2; ++i) {  // Also from the cache.
    const ChildResult ran = WithPath(dir_ / "bin", run);
    EXPECT_THAT(ran.err, AllOf(warned, HasSubstr("14.50 GiB per GPU from nvidia-smi")));
  }
  setenv("SPILLWAY_GPU_MEMORY_BYTES", "20GiB", 1);
  const ChildResult given = WithPath(dir_ / "bin", run);
  unsetenv("SPILLWAY_GPU_MEMORY_BYTES");
  EXPECT_THAT(given.err, AllOf(Not(warned), Not(HasSubstr("GiB per GPU from nvidia-smi"))));
  EXPECT_THAT(WithPath(dir_ / "bin", {"simulate", graph, "--batch-size", "8"}).err,
              AllOf(Not(warned), HasSubstr("21.82 GiB of 24.00 GiB")));
}

// As `nvidia-smi --query-gpu=name` and the query of the memory answer on two L4.
TEST_F(CliForecastTest, HardwareAutoIsTheMachineThatNvidiaSmiNames) {
  const std::string graph = Graph("mnist_deep");
  InstallNvidiaSmi(
      "#!/bin/sh\ncase $1 in *=name) echo NVIDIA L4; echo NVIDIA L4;; "
      "*) echo 23034, 8.9; echo 23034, 8.9;; esac\n");
  const Words simulate = {"simulate", graph, "--batch-size", "8", "--hardware", "auto"};
  const ChildResult text = WithPath(dir_ / "bin", simulate);
  EXPECT_THAT(text.err,
              StartsWith("spillway: from nvidia-smi: 2 times NVIDIA L4, 20.31 GiB of 22.49 GiB "));
  EXPECT_THAT(text.out, HasSubstr("  machine  l4, "));
  const Words as_json = simulate + Words{"--json"};
  const json machine = json::parse(WithPath(dir_ / "bin", as_json).out)["hardware"]["hardware"];
  EXPECT_EQ(machine["preset"], "l4");
  EXPECT_EQ(machine["gpu_memory_source"], "MEMORY_SOURCE_NVIDIA_SMI");
  EXPECT_EQ(machine["mem_bytes_per_s"], 300e9);
  // The user's value of the memory takes precedence.
  const json given =
      json::parse(WithPath(dir_ / "bin", as_json + Words{"--gpu-memory-bytes", "8GB"})
                      .out)["hardware"]["hardware"];
  EXPECT_EQ(given["gpu_memory_bytes"], "8000000000");
  EXPECT_EQ(given["gpu_memory_source"], "MEMORY_SOURCE_OPTION");
  for (const Words& command : std::vector<Words>{
           {"explore", graph, "--sizes", "8", "--hardware", "auto"},
           {"inspect", graph, "--memory", "--hardware", "auto"},
           {"rewrite", graph, "-o", dir_ / "out", "--strategy", "level", "--batch-size", "8",
            "--feed", "dropout/keep_prob=", "--hardware", "auto"},
           {"run", "--graph", graph, "--cache-dir", dir_ / "cache", "--strategy", "scope",
            "--fail-closed", "--hardware", "auto", "--", "true"}}) {
    WithPath(dir_ / "bin", command);
  }
  // If it names no preset, the user must.
  dir_.Write("bin/nvidia-smi", "#!/bin/sh\necho NVIDIA GeForce RTX 3090\n");
  const std::string path = getenv("PATH");
  setenv("PATH", absl::StrCat(dir_ / "bin", ":", path).c_str(), 1);
  ExpectError(Spillway(simulate), 2,
              {"--hardware is auto, and this machine has NVIDIA GeForce RTX 3090, and there is no "
               "preset for it; name a preset"});
  setenv("PATH", path.c_str(), 1);
}

TEST_F(CliForecastTest, ALongListOfSizesIsTriedCoarseToFineAndPrintedBySize) {
  const Words explore = {"explore", Graph("mnist_deep"), "--sizes", "1:33", "--no-budget",
                         "--feed",  "dropout/keep_prob="};
  std::vector<int> sizes;
  const std::string text = Output(explore);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    int size = 0;
    const absl::string_view first = absl::StripLeadingAsciiWhitespace(line);
    if (absl::SimpleAtoi(first.substr(0, first.find(' ')), &size)) sizes.push_back(size);
  }
  ASSERT_EQ(sizes.size(), 33) << text;
  for (int i = 0; i < 33; ++i) EXPECT_EQ(sizes[i], i + 1);
  // Stopped, it reports its results: the largest were among the first.
  const ChildResult stopped =
      Spillway({"explore", Graph("resnet50_free"), "--sizes", "1:9000", "--timeout", "3s"});
  EXPECT_EQ(stopped.exit_code, 6);
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("; so far: "), HasSubstr(" sizes tried, "),
                                 HasSubstr(" does not [STOPPED]")));
  EXPECT_THAT(stopped.out, HasSubstr(" 9000 "));
}

// The command runs with the rewritten graph all the same.
TEST_F(CliForecastTest, AnNvidiaSmiThatHangsLeavesTimeForTheRewrite) {
  const std::string graph = Graph("mnist_deep");
  InstallNvidiaSmi("#!/bin/sh\nsleep 1000\n");
  const ChildResult run =
      WithPath(dir_ / "bin", {"run", "--graph", graph, "--cache-dir", dir_ / "cache", "--strategy",
                              "scope", "--fail-closed", "--timeout", "4s", "--", "echo", "ran"});
  EXPECT_EQ(run.out, "ran\n") << run.err;
}

TEST_F(CliForecastTest, AllFormatsAndPipes) {
  const std::string graph = ReadTestGraph("mnist_deep/graph.pb");
  const json expected = Json({"simulate", "-"}, graph);
  EXPECT_EQ(expected["forecast"]["fit"], "FIT_UNKNOWN");
  const std::string meta =
      RawField(1, RawField(4, "train")) + RawField(2, graph);  // MetaInfoDef.tags, graph_def.
  EXPECT_EQ(Json({"simulate", "-"}, meta), expected);
  // A SavedModel: one answer for each MetaGraph.
  dir_.Write("saved_model.pb", RawNumber(1, 1) + RawField(2, meta) + RawField(2, meta));
  for (const auto& [command, key] : std::vector<std::pair<Words, const char*>>{
           {{"simulate"}, "simulation"},
           {{"inspect", "--memory"}, "simulation"},
           {{"explore", "--sizes", "4", "--no-budget"}, "exploration"}}) {
    const Words arguments = command + Words{dir_ / ""};
    const json models = Json(arguments)["meta_graphs"];
    ASSERT_THAT(models, SizeIs(2)) << command[0];
    EXPECT_TRUE(models[1].contains(key)) << models[1];
    EXPECT_THAT(Output(arguments), HasSubstr("\nMetaGraph 1 (tags: train)\n"));
  }
  EXPECT_EQ(Json({"simulate", dir_ / ""})["meta_graphs"][0]["simulation"], expected);
}

TEST_F(CliForecastTest, CapabilitiesListTheMachines) {
  const json report = Json({"capabilities"});
  std::vector<std::string> presets;
  const std::string text = Output({"capabilities"});
  for (const json& preset : report["hardware_presets"]) {
    presets.push_back(preset["hardware"]["preset"]);
    EXPECT_THAT(text, HasSubstr(presets.back()));
  }
  EXPECT_THAT(presets, ::testing::IsSupersetOf({"p100_pcie", "a100_40gb_sxm4"}));
  // Each is one that --hardware takes.
  const std::string graph = dir_.Write("small", GraphBytes("a = NoOp() @/gpu:0"));
  for (const std::string& preset : presets) {
    EXPECT_EQ(Json({"simulate", graph, "--hardware", preset})["hardware"]["hardware"]["preset"],
              preset);
  }
}

}  // namespace
}  // namespace spillway::testing
