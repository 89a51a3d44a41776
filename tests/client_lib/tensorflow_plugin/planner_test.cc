// Decisions on placed graphs, with the real library, which is loaded as the plug-in loads it.
#include "client_lib/tensorflow_plugin/planner.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "client_lib/tensorflow_plugin/graph_facts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/tensorflow_plugin/placed_graph.h"

namespace spillway::tensorflow_plugin {
namespace {

using ::spillway::testing::TempDir;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of cond_v1 at this batch: a step takes 108 MiB, and there are plans for 99 MiB.
constexpr int64_t kBatch = 256;
constexpr int64_t kTight = int64_t{110} << 20, kAmple = int64_t{1} << 30, kTooSmall = 3 << 20;
// Without the memory of a GPU's kernels besides outputs.
constexpr char kPlain[] = R"({"step": {"kernel_memory": "KERNEL_MEMORY_OFF"}})",
               kSwapsAlone[] = R"({"budget": {"recompute": "RECOMPUTE_OFF"},
                                   "step": {"kernel_memory": "KERNEL_MEMORY_OFF"}})";

class PlannerTest : public ::testing::Test {
 protected:
  PlannerTest() {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    setenv("SPILLWAY_LIBRARY", SPILLWAY_LIB_DIR "/libspillway.so.0", 1);
    settings_.batch_size = kBatch;
    settings_.gpu_memory_bytes = kTight;
    settings_.options_json = kPlain;
  }

  // With a name of its own, so that its line is not a repeated one.
  std::optional<std::string> Plan(const std::string& graph, const std::string& type = "GPU") {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    ::testing::internal::CaptureStderr();
    auto planned = PlanGraph(settings_, type, {graph, {}, {name}});
    lines_ = ::testing::internal::GetCapturedStderr();
    return planned;
  }

  const std::string original_ = ReadTestGraph("cond_v1/graph_shapes.pb");
  const std::string graph_ = Placed(original_, "GPU:0");
  Settings settings_;
  std::string lines_;
};

TEST_F(PlannerTest, WhatDoesNotFitIsPlannedOnce) {
  settings_.options_json = kSwapsAlone;
  const auto planned = Plan(graph_);
  ASSERT_TRUE(planned.has_value()) << lines_;
  EXPECT_THAT(
      lines_,
      ContainsRegex("^spillway: graph of 'WhatDoesNotFitIsPlannedOnce' .[0-9]+ nodes.: "
                    "fits with [1-9][0-9]* swaps, [0-9.]+ MiB, .*, host memory [0-9.]+ MiB\n$"));
  EXPECT_TRUE(ReadGraph(*planned, {}, {}).has_swaps);
  EXPECT_THAT(
      ReadGraph(*planned, {}, {}).devices,
      ElementsAre(std::string(kTask) + "/device:CPU:0", std::string(kTask) + "/device:GPU:0"));
  EXPECT_FALSE(Plan(*planned, "CPU").has_value());
  EXPECT_EQ(lines_, "");
}

TEST_F(PlannerTest, WhatFitsStaysAndSaysSo) {
  settings_.gpu_memory_bytes = kAmple;
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, AllOf(HasSubstr("no swapping is needed: a step takes at most 107.77 MiB")));
}

TEST_F(PlannerTest, WhatNoPlanFitsStays) {
  settings_.gpu_memory_bytes = kTooSmall;
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_,
              AllOf(ContainsRegex("no plan .* fit.* 2.70 MiB .*of GPU memory would suffice"),
                    HasSubstr("[DOES_NOT_FIT]"), HasSubstr("; the program runs without swaps\n")));
}

TEST_F(PlannerTest, NothingOnAGpuOrNothingThatTrainsOrOff) {
  EXPECT_FALSE(Plan(Placed(original_, "CPU:0"), "CPU").has_value());
  EXPECT_EQ(lines_, "");
  EXPECT_FALSE(Plan("no graph").has_value());
  EXPECT_EQ(lines_, "");
  settings_.enabled = false;
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_EQ(lines_, "");
}

// TensorFlow then calls both libraries.
TEST_F(PlannerTest, AGraphOnBothIsTheCpusToPlan) {
  std::string node, host;
  AppendBytesField(1, "host", &node);
  AppendBytesField(2, "NoOp", &node);
  AppendBytesField(1, node, &host);
  const std::string mixed = graph_ + Placed(host, "CPU:0");
  EXPECT_FALSE(Plan(mixed, "GPU").has_value());
  EXPECT_EQ(lines_, "");
  EXPECT_TRUE(Plan(mixed, "CPU").has_value()) << lines_;
}

TEST_F(PlannerTest, AStandInForTheGpu) {
  settings_.options_json = kSwapsAlone;
  const auto on_gpu = Plan(graph_);
  settings_.gpu_stand_in = "CPU:0";
  settings_.cpu_device = "CPU:1";
  const std::string on_cpu = Placed(original_, "CPU:0");
  const auto planned = Plan(on_cpu, "CPU");
  ASSERT_TRUE(planned.has_value() && on_gpu.has_value()) << lines_;
  const GraphFacts facts = ReadGraph(*planned, {}, {});
  EXPECT_THAT(facts.devices, ElementsAre(std::string(kTask) + "/device:CPU:0",
                                         std::string(kTask) + "/device:CPU:1"));
  EXPECT_EQ(facts.node_count, ReadGraph(*on_gpu, {}, {}).node_count);
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_,
              HasSubstr("SPILLWAY_GPU_STAND_IN is 'CPU:0', but the graph has nodes on a GPU"));
}

// Each variable of the README, wrong, empty and of a newer version: a line at most, in which
// nothing moves a terminal, and the program goes on.
TEST_F(PlannerTest, WhateverASettingIsTheProgramGoesOn) {
  std::ifstream readme(SPILLWAY_SOURCE_DIR "/client_lib/tensorflow_plugin/README.md");
  std::vector<std::string> variables = {"SPILLWAY_SETTINGS"};
  for (std::string line; std::getline(readme, line);) {
    if (line.rfind("| `SPILLWAY_", 0) != 0) continue;
    for (size_t at = 2; (at = line.find("`SPILLWAY_", at)) < line.find(" | ", 2); ++at) {
      variables.push_back(line.substr(at + 1, line.find('`', at + 1) - at - 1));
    }
  }
  EXPECT_GT(variables.size(), 18u);
  const TempDir dir;  // For the folder of reports, with any name.
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(dir / "");
  for (const std::string& variable : variables) {
    if (variable == "SPILLWAY_LIBRARY") continue;  // Is loaded once, and has been.
    for (const char* value :
         {"nonsense", "", "-1", "of_a_newer_version", "\x1b[31m\a\n", "/dev/zero",
          R"({"of_a_newer_version": 1})", R"({"recompute": "ALL"})"}) {
      setenv("SPILLWAY_JOB_BATCH_SIZE", "256", 1);
      setenv("SPILLWAY_GPU_MEMORY_BYTES", "110MiB", 1);
      setenv("SPILLWAY_TIMEOUT_S", "20", 1);
      setenv(variable.c_str(), value, 1);
      settings_ = ReadSettings();
      for (const char* each : {"SPILLWAY_JOB_BATCH_SIZE", "SPILLWAY_GPU_MEMORY_BYTES",
                               "SPILLWAY_TIMEOUT_S", variable.c_str()}) {
        unsetenv(each);
      }
      EXPECT_FALSE(settings_.fail_closed);
      Plan(graph_);
      EXPECT_LE(std::count(lines_.begin(), lines_.end(), '\n'), 1) << variable << value << lines_;
      EXPECT_EQ(lines_.find_first_of("\x1b\a"), std::string::npos) << variable << lines_;
    }
  }
  std::filesystem::current_path(here);
}

TEST_F(PlannerTest, AnUnknownBatchIsAsked) {
  settings_.batch_size = 0;
  EXPECT_FALSE(Plan(Placed(ReadTestGraph("mnist_deep/graph.pb"), "GPU:0")).has_value());
  EXPECT_THAT(lines_,
              ContainsRegex("^[^\n]*the batch of node 'x' is not known[^\n]*batch_size is "
                            "SPILLWAY_JOB_BATCH_SIZE here; the program runs without swaps\n$"));
}

TEST_F(PlannerTest, AnUnknownBudgetIsAsked) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  settings_.gpu_memory_bytes = 0;
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, HasSubstr("set SPILLWAY_GPU_MEMORY_BYTES (e.g. 16GiB) or SPILLWAY_HARDWARE"));
  settings_.strategy = "scope";  // It swaps without a budget.
  EXPECT_TRUE(Plan(graph_).has_value()) << lines_;
  settings_.strategy = "";
  settings_.hardware = "p100_pcie";
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, HasSubstr("no swapping is needed"));
  setenv("PATH", path.c_str(), 1);
}

TEST_F(PlannerTest, NvidiaSmiSaysTheBudget) {
  const TempDir dir;
  const std::string script =
      dir.Write("nvidia-smi", "#!/bin/sh\necho \"$1\" >> " + dir / "asked" + "\necho 16280, 6.0\n");
  ASSERT_EQ(chmod(script.c_str(), 0700), 0);
  settings_.gpu_memory_bytes = 0;
  // Asked once in a process: so in one of its own.
  EXPECT_EXIT(
      {
        setenv("PATH", (dir / "").c_str(), 1);
        PlanGraph(settings_, "GPU", {graph_, {}, {"smi"}});
        // Of the memory, the names and the places, for the budget and the rewrite together.
        std::ifstream asked(dir / "asked");
        exit(std::count(std::istreambuf_iterator<char>(asked), {}, '\n') == 3 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "no swapping is needed: .* of a GPU .nvidia-smi");
}

TEST_F(PlannerTest, SettingsThatTheLibraryDoesNotKnow) {
  settings_.strategy = "bugdet";
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, AllOf(HasSubstr("SPILLWAY_STRATEGY"), HasSubstr("bugdet")));
  settings_.strategy = "";
  settings_.hardware = "p1000";
  settings_.gpu_memory_bytes = 0;
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, AllOf(HasSubstr("p1000"), HasSubstr("[BAD_OPTION]")));
}

TEST_F(PlannerTest, OptionsReachTheLibrary) {
  settings_.options_json =
      R"({"level": {"swapout_threshold": 2, "swapin_ahead": 1, "swapin_groupby": 0}})";
  EXPECT_TRUE(Plan(graph_).has_value()) << lines_;
}

TEST_F(PlannerTest, StateStaysWhereItIs) {
  settings_.options_json = R"({"budget": {"offload": "OFFLOAD_OPTIMIZER"}})";
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, HasSubstr("the plug-in cannot keep state in host memory (offload)"));
}

TEST_F(PlannerTest, AServerThatIsNotThere) {
  settings_.server = "unix:/nowhere/spillway.sock";
  settings_.timeout_s = 1;
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, HasSubstr("; the program runs without swaps\n"));
}

TEST_F(PlannerTest, MalformedSettingsOnAnyMachine) {
  settings_.problem = "SPILLWAY_TIMEOUT_S is 'x'; it has to be a number";
  EXPECT_FALSE(Plan(Placed(original_, "CPU:0"), "CPU").has_value());
  EXPECT_EQ(lines_,
            "spillway: SPILLWAY_TIMEOUT_S is 'x'; it has to be a number; the program runs without "
            "swaps\n");
  EXPECT_FALSE(Plan(Placed(original_, "CPU:0"), "CPU").has_value());
  EXPECT_EQ(lines_, "");  // Printed once.
}

TEST_F(PlannerTest, AFedNodeThatIsNoPlaceholder) {
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(PlanGraph(settings_, "GPU", {graph_, {"Relu"}, {"fed"}}).has_value());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("it feeds 'Relu', which is no placeholder"));
}

TEST_F(PlannerTest, FailClosedEndsTheProcess) {
  settings_.fail_closed = true;
  settings_.gpu_memory_bytes = kTooSmall;
  EXPECT_EXIT(PlanGraph(settings_, "GPU", {graph_, {}, {"closed"}}), ::testing::ExitedWithCode(1),
              "DOES_NOT_FIT.*SPILLWAY_FAIL_CLOSED requires");
  EXPECT_EXIT(
      {
        settings_.gpu_memory_bytes = kAmple;
        PlanGraph(settings_, "GPU", {graph_, {}, {"closed"}});
        exit(3);
      },
      ::testing::ExitedWithCode(3), "no swapping is needed");
}

TEST_F(PlannerTest, NoLibrary) {
  EXPECT_EXIT(
      {
        setenv("SPILLWAY_LIBRARY", "/nowhere/libspillway.so.0", 1);
        const bool planned = PlanGraph(settings_, "GPU", {graph_, {}, {"alone"}}).has_value();
        exit(planned ? 1 : 0);
      },
      ::testing::ExitedWithCode(0),
      "cannot load Spillway's library .*/nowhere/libspillway.so.0.*runs without swaps");
}

TEST_F(PlannerTest, ADryRun) {
  settings_.options_json = R"({"dry_run": true, "step": {"kernel_memory": "KERNEL_MEMORY_OFF"}})";
  EXPECT_FALSE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, HasSubstr(": dry run: fits with "));
}

TEST_F(PlannerTest, AReportOfEachGraph) {
  const TempDir dir;
  settings_.report_dir = dir / "reports";
  const auto planned = Plan(graph_);
  ASSERT_TRUE(planned.has_value()) << lines_;
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(settings_.report_dir)) {
      found.push_back(entry.path().string());
    }
    return found;
  };
  ASSERT_EQ(names().size(), 1u);
  EXPECT_THAT(names()[0], HasSubstr("-AReportOfEachGraph.json"));
  EXPECT_THAT(lines_, HasSubstr("; report: " + names()[0] + "\n"));
  std::ifstream file(names()[0]);
  const nlohmann::json report = nlohmann::json::parse(file);
  EXPECT_EQ(report["outcome"], "OUTCOME_REWRITTEN");
  EXPECT_EQ(report["node_count_after"], std::to_string(ReadGraph(*planned, {}, {}).node_count));
  EXPECT_FALSE(report["decisions"].empty());

  settings_.report_dir = dir.Write("file", "");
  EXPECT_TRUE(Plan(graph_).has_value());
  EXPECT_THAT(lines_, HasSubstr("cannot be written; SPILLWAY_REPORT_DIR has to be a folder"));
}

// TensorFlow shows a graph again after another iteration of its passes, which folds constants.
class ShownGraphsTest : public PlannerTest {
 protected:
  // Shown for the result of that name.
  bool IsPlanned(ShownGraphs* shown, const std::string& graph, const std::string& result) {
    ::testing::internal::CaptureStderr();
    const bool planned = shown->Plan(settings_, "GPU", {graph, {}, {result}}).has_value();
    lines_ = ::testing::internal::GetCapturedStderr();
    return planned;
  }
  // With an unknown op in place of the first convolution, no size behind it is known.
  static std::string Unfolded(std::string graph) {
    const std::string name =
                          "\x0a\x06"
                          "Conv2D\x12\x06",
                      op = "Conv2D";
    const size_t at = graph.find(name + op);
    EXPECT_NE(at, graph.npos);
    return graph.replace(at + name.size(), op.size(), "Folded");
  }
  // The same with one node more, so that a second line on it would differ.
  static std::string Changed(const std::string& graph) {
    std::string node;
    AppendBytesField(1, "one_more", &node);
    AppendBytesField(2, "NoOp", &node);
    std::string changed = graph;
    AppendBytesField(1, node, &changed);
    return changed;
  }

  const std::string folded_ = Placed(ReadTestGraph("cond_v1/graph.pb"), "GPU:0");
  const std::string unfolded_ = Unfolded(folded_);
};

TEST_F(ShownGraphsTest, UnknownSizesThatTheNextIterationFoldsArePlanned) {
  ShownGraphs shown;
  EXPECT_FALSE(IsPlanned(&shown, unfolded_, "folds"));
  EXPECT_THAT(lines_, ContainsRegex("^spillway: graph of 'folds' .*unknown.*\n$"));
  EXPECT_TRUE(IsPlanned(&shown, folded_, "folds"));
  EXPECT_THAT(lines_, ContainsRegex("^spillway: graph of 'folds' .*fits with .*\n$"));
}

TEST_F(ShownGraphsTest, UnknownSizesAreSaidOnce) {
  ShownGraphs shown;
  EXPECT_FALSE(IsPlanned(&shown, unfolded_, "unknown"));
  EXPECT_NE(lines_, "");
  EXPECT_FALSE(IsPlanned(&shown, unfolded_, "unknown"));
  EXPECT_EQ(lines_, "");
  EXPECT_FALSE(IsPlanned(&shown, Changed(unfolded_), "unknown"));
  EXPECT_EQ(lines_, "");
  // Another graph has a line of its own.
  EXPECT_FALSE(IsPlanned(&shown, unfolded_, "another"));
  EXPECT_THAT(lines_, HasSubstr("graph of 'another'"));
}

TEST_F(ShownGraphsTest, WhatIsKnownIsNotLookedAtAgain) {
  ShownGraphs shown;
  settings_.gpu_memory_bytes = kAmple;
  EXPECT_FALSE(IsPlanned(&shown, folded_, "known"));
  EXPECT_THAT(lines_, HasSubstr("no swapping is needed"));
  settings_.gpu_memory_bytes = kTight;  // Whoever looked would plan it now.
  EXPECT_FALSE(IsPlanned(&shown, Changed(folded_), "known"));
  EXPECT_EQ(lines_, "");
  EXPECT_TRUE(IsPlanned(&shown, Changed(folded_), "another"));
}

}  // namespace
}  // namespace spillway::tensorflow_plugin
