// `plot`, and `--trace` of simulate and rewrite, as their users run them.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client_lib/cli_json.h"
#include "tests/client_lib/cli_program.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/raw_bytes.h"
#include "tests/testing/xml_elements.h"

namespace spillway::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<XmlElement> Svg(const std::string& text) {
  std::string problem;
  std::vector<XmlElement> elements = ParseXml(text, &problem);
  EXPECT_EQ(problem, "") << text.substr(0, 200);
  return elements;
}

std::string AllText(const std::vector<XmlElement>& elements) {
  std::string text;
  for (const XmlElement& element : elements) {
    if (element.name == "text") absl::StrAppend(&text, element.text, "\n");
  }
  return text;
}

// The `data-` number of the elements that have it, in order.
std::vector<int64_t> DataOf(const std::vector<XmlElement>& elements, const std::string& name) {
  std::vector<int64_t> values;
  for (const XmlElement& element : elements) {
    const auto it = element.attributes.find("data-" + name);
    int64_t value = 0;
    if (it != element.attributes.end() && absl::SimpleAtoi(it->second, &value)) {
      values.push_back(value);
    }
  }
  return values;
}

// ResNet-50 with IBM's swaps, made once.
class CliPlotTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir();
    graph_ = dir_->Write("resnet50.pb", ReadTestGraph("resnet50_tf1/graph.pb"));
    swapped_ = *dir_ / "swapped.pb";
    Done({"rewrite", graph_, "-o", swapped_, "--trace", *dir_ / "rewrite.json", "--quiet",
          "--strategy", "scope", "--optimizer-scopes", "gradients,Momentum", "--lb", "3"});
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static TempDir* dir_;
  static std::string graph_, swapped_;
};

TempDir* CliPlotTest::dir_ = nullptr;
std::string CliPlotTest::graph_, CliPlotTest::swapped_;

// The trace of a rewrite is that of its graph; and both agree with the report.
TEST_F(CliPlotTest, TheTraceOfARewriteIsThatOfItsGraph) {
  const std::string file = *dir_ / "simulate.json";
  const json report = Parsed(Done({"simulate", swapped_, "--trace", file, "--json"}).out);
  EXPECT_EQ(ReadFile(file), ReadFile(*dir_ / "rewrite.json"));
  const json trace = Parsed(ReadFile(file));
  std::map<std::string, int64_t> bytes;
  std::set<std::string> brought_back;
  int64_t most = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "C") most = std::max(most, event["args"]["bytes"].get<int64_t>());
    if (event["ph"] != "X" || event["cat"] == "compute") continue;
    const std::string name = event["name"];
    if (event["cat"] == "copy in" && absl::StartsWith(name, "lms/")) brought_back.insert(name);
    bytes[event["cat"]] += event["args"].value("bytes", int64_t{0});
  }
  const json& device = report["forecast"]["devices"][0];
  EXPECT_EQ(bytes["copy out"], Number(device["copy_out_bytes"]));
  EXPECT_EQ(bytes["copy in"], Number(device["copy_in_bytes"]));
  EXPECT_EQ(most, Number(report["memory"][0]["peak_bytes"]));
  EXPECT_EQ(report["simulated"]["execution"], "EXECUTION_LAUNCHED_AHEAD");
  EXPECT_EQ(report["simulated"]["step_time_ns"], report["forecast"]["step_time_ns"]);
  // Counted by another program of ours, which looks at the two graphs alone.
  std::set<std::string> swap_ins;
  const json diff = Parsed(Spillway({"diff", graph_, swapped_, "--json"}).out);
  for (const json& node : diff["added"]) {
    const std::string name = node["name"];
    if (absl::StartsWith(name, "lms/swapin_")) swap_ins.insert(name);
  }
  EXPECT_GT(swap_ins.size(), 300u);
  EXPECT_EQ(brought_back, swap_ins);
  // The other way of running a step has another time.
  const json sync = Parsed(
      Done({"simulate", swapped_, "--trace", file, "--json", "--execution", "synchronous"}).out);
  EXPECT_EQ(sync["simulated"]["step_time_ns"], sync["forecast"]["synchronous_step_time_ns"]);
  EXPECT_EQ(Parsed(ReadFile(file))["otherData"]["steps"][0]["execution"], "synchronous");
}

TEST_F(CliPlotTest, InspectShowsWhatRewriteForetells) {
  const std::string text = Done({"inspect", "--memory", swapped_}).out;
  EXPECT_THAT(text, HasSubstr("launched ahead, as TensorFlow runs it"));
  EXPECT_THAT(Done({"inspect", "--memory", swapped_, "--execution", "synchronous"}).out,
              HasSubstr("synchronous: memory is taken when an op runs"));
}

TEST_F(CliPlotTest, BeforeAndAfterOfARewrittenGraph) {
  const std::string picture = *dir_ / "memory.svg";
  Done({"plot", swapped_, "-o", picture});
  const auto elements = Svg(ReadFile(picture));
  const std::string text = AllText(elements);
  EXPECT_THAT(text,
              AllOf(HasSubstr("swapped.pb: memory of a training step, before and after"),
                    HasSubstr("p100_pcie"), HasSubstr("synchronous"), HasSubstr("before: peak "),
                    HasSubstr("after: peak "), HasSubstr("copy out"),
                    HasSubstr("time in the step (ms)"), HasSubstr("memory in use (GiB)")));
  const auto memory = [](const std::string& graph, const std::string& execution) {
    return Parsed(Done({"inspect", "--memory", "--json", graph, "--execution", execution}).out);
  };
  const json after = memory(swapped_, "synchronous");
  const json before = memory(graph_, "synchronous");
  EXPECT_THAT(DataOf(elements, "peak-bytes"),
              ::testing::ElementsAre(Number(before["memory"][0]["peak_bytes"]),
                                     Number(after["memory"][0]["peak_bytes"])));
  // The unswapped step's memory rises and falls over the step. Launched ahead, it does in the first
  // tenth of it.
  const auto peak_share = [](const json& report) {
    return Number(report["memory"][0]["peak_ns"]) * 1.0 /
           Number(report["simulated"]["step_time_ns"]);
  };
  EXPECT_THAT(DataOf(elements, "peak-ns"), Contains(Number(before["memory"][0]["peak_ns"])));
  EXPECT_GT(peak_share(before), 0.2);
  EXPECT_LT(peak_share(memory(graph_, "launched_ahead")), 0.1);
  EXPECT_THAT(
      AllText(Svg(Done({"plot", swapped_, "-o", "-", "--execution", "launched_ahead"}).out)),
      AllOf(HasSubstr("launched ahead"), Not(HasSubstr("synchronous"))));
  EXPECT_THAT(DataOf(elements, "budget-bytes"),
              ::testing::ElementsAre(Number(after["forecast"]["devices"][0]["budget_bytes"])));
  EXPECT_EQ(DataOf(elements, "out-ns").size(), 12u);  // The largest swaps.
  // Given both, it is the same picture.
  const std::string two = Done({"plot", graph_, swapped_, "-o", "-"}).out;
  EXPECT_EQ(two, ReadFile(picture));
  // So it is of their reports.
  const auto report = [](const std::string& graph) {
    return Done({"simulate", graph, "--json", "--trace", "/dev/null", "--execution", "synchronous"})
        .out;
  };
  const std::string a = dir_->Write("before.json", report(graph_));
  const std::string b = dir_->Write("swapped.pb.json", report(swapped_));
  EXPECT_EQ(Done({"plot", a, b, "-o", "-", "--title",
                  "swapped.pb: memory of a training step, before and after"})
                .out,
            two);
}

TEST_F(CliPlotTest, WarnsOfAMachineThatIsAssumed) {
  const Words plots[] = {{"plot", graph_, "--no-plan", "-o", "-"},
                         {"plot", graph_, swapped_, "-o", "-"}};
  for (const Words& plot : plots) {
    EXPECT_THAT(Done(plot).err,
                HasSubstr("spillway: p100_pcie is assumed: no hardware is named, and nvidia-smi"));
    EXPECT_THAT(Done(plot + Words{"--hardware", "p100_pcie"}).err, Not(HasSubstr("assumed")));
  }
}

TEST_F(CliPlotTest, OneGraphAlone) {
  const std::string text = AllText(Svg(Done({"plot", graph_, "--no-plan", "-o", "-"}).out));
  EXPECT_THAT(text, AllOf(HasSubstr("does not fit"), HasSubstr("unlimited memory"),
                          Not(HasSubstr("before:"))));
  // Without a plan, it gives the reason.
  EXPECT_THAT(AllText(Svg(Done({"plot", graph_, "-o", "-", "--gpu-memory-bytes", "1GiB"}).out)),
              HasSubstr("there is no plan: "));
  EXPECT_THAT(AllText(Svg(Done({"plot", graph_, "-o", "-", "--gpu-memory-bytes", "64GiB"}).out)),
              HasSubstr("nothing is swapped"));
  // The smallest graph.
  const std::string one = dir_->Write("one.pb", GraphBytes("a = NoOp() @/gpu:0"));
  Svg(Done({"plot", one, "-o", "-", "--no-plan"}).out);
  const std::string host = dir_->Write("host.pb", GraphBytes("a = NoOp() @/cpu:0"));
  ExpectError(Spillway({"plot", host, "-o", "-", "--no-plan"}), 2,
              {"no node of this step runs on a GPU"});
}

// The plan that is made here takes nodes to recompute.
TEST_F(CliPlotTest, WhatRunsAgain) {
  const Words command = {"plot", graph_,         "-o",  "-",          "--gpu-memory-bytes",
                         "9GiB", "--batch-size", "100", "--hardware", "a100_40gb_pcie4"};
  EXPECT_THAT(AllText(Svg(Done(command + Words{"--recompute", "all"}).out)),
              HasSubstr("\nrecompute\n"));
  EXPECT_THAT(AllText(Svg(Done(command + Words{"--recompute", "off"}).out)),
              Not(HasSubstr("\nrecompute\n")));
  ExpectError(Spillway(command + Words{"--recompute", "all", "--no-plan"}), 2,
              {"--recompute is for a plan that is made here"});
  ExpectError(Spillway(command + Words{"--recompute", "most"}), 2, {"most"});
  ExpectError(Spillway({"plot", swapped_, "-o", "-", "--recompute", "all"}), 2,
              {"the graph is rewritten already"});
  const std::string report = dir_->Write(
      "recompute.json", Done({"simulate", graph_, "--trace", "/dev/null", "--json"}).out);
  ExpectError(Spillway({"plot", report, "-o", "-", "--recompute", "all"}), 2, {"is a report"});
}

TEST_F(CliPlotTest, PagesAndThemes) {
  const std::string page = *dir_ / "memory.html";
  Done({"plot", swapped_, "-o", page, "--theme", "dark", "--title", "</title><script>x"});
  const std::string html = ReadFile(page);
  EXPECT_THAT(
      html, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("#15181D"), Not(HasSubstr("<script>x")),
                  Not(HasSubstr("prefers-color-scheme")), HasSubstr("default-src 'none'")));
  EXPECT_EQ(Done({"plot", swapped_, "-o", "-", "--as", "html", "--theme", "dark", "--title",
                  "</title><script>x"})
                .out,
            html);
}

TEST_F(CliPlotTest, PngByAnotherProgram) {
  const std::string picture = *dir_ / "memory.png";
  const std::string path = getenv("PATH");
  std::filesystem::create_directory(*dir_ / "bin");
  setenv("PATH", (*dir_ / "bin").c_str(), 1);
  const Words plot = {"plot", swapped_, "-o", picture};
  ExpectError(Spillway(plot), 2, {"rsvg-convert", "librsvg2-bin", "-o FILE.svg"});
  EXPECT_FALSE(std::filesystem::exists(picture));
  // It gets the picture, light, on its standard input, and no shell is there.
  const auto install = [&](const std::string& script) {
    dir_->Write("bin/rsvg-convert", "#!/bin/sh\n" + script);
    std::filesystem::permissions(*dir_ / "bin/rsvg-convert", std::filesystem::perms::owner_all);
  };
  install(absl::StrCat("PATH=", path, "; printf '\\211PNG'; echo \"$@\"; cat\n"));
  Done(plot);
  const std::string made = ReadFile(picture);
  EXPECT_THAT(made, AllOf(StartsWith("\x89PNG--format=png --zoom=2\n<?xml "),
                          ::testing::EndsWith("</svg>\n"), HasSubstr(".paper{fill:#FFFFFF}"),
                          Not(HasSubstr("prefers-color-scheme"))));
  install("exit 3\n");
  ExpectError(Spillway(plot), 7, {"rsvg-convert has made no PNG"});
  install("echo no picture\n");
  ExpectError(Spillway(plot), 7, {"rsvg-convert has made no PNG"});
  EXPECT_EQ(ReadFile(picture), made);  // The old file stays.
  setenv("PATH", path.c_str(), 1);
}

TEST_F(CliPlotTest, ThroughputAgainstBatch) {
  const std::string free = dir_->Write("free.pb", ReadTestGraph("resnet50_free/graph.pb"));
  const Words sizes = {"--sizes", "50,100", "--no-budget"};
  const auto elements = Svg(Done(Words{"plot", free, "--throughput", "-o", "-"} + sizes).out);
  EXPECT_THAT(DataOf(elements, "size"), ::testing::ElementsAre(50, 100));
  EXPECT_THAT(AllText(elements), AllOf(HasSubstr("examples in a batch"), HasSubstr("examples/s"),
                                       HasSubstr("free.pb: throughput against batch")));
  const std::string report =
      dir_->Write("sizes.json", Done(Words{"explore", free, "--json"} + sizes).out);
  EXPECT_EQ(DataOf(Svg(Done({"plot", report, "-o", "-"}).out), "size"), DataOf(elements, "size"));
}

// Several graphs in one file.
TEST_F(CliPlotTest, SavedModels) {
  const std::string graph = ReadTestGraph("cond_v1/graph.pb");
  const std::string meta = RawField(1, RawField(4, "train")) + RawField(2, graph);
  const std::string model =
      dir_->Write("saved_model.pb", RawNumber(1, 1) + RawField(2, meta) + RawField(2, meta));
  const std::string trace = *dir_ / "model.json";
  Done({"simulate", model, "--batch-size", "8", "--trace", trace});
  EXPECT_EQ(Parsed(ReadFile(trace))["otherData"]["steps"].size(), 2u);
  EXPECT_THAT(AllText(Svg(Done({"plot", model, "-o", "-", "--batch-size", "8", "--no-plan"}).out)),
              HasSubstr("has 2 graphs; this is of MetaGraph 0"));
}

}  // namespace
}  // namespace spillway::testing
