// Traces as another library reads them, compared with their report and with the graph itself.
#include "client_lib/plot/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/files.h"

namespace spillway::plot {
namespace {

using core::DefaultLimits;
using core::StopToken;
using nlohmann::json;
using ::testing::Contains;
using ::testing::IsEmpty;

json TraceOf(const v1::SimulateReport& report) {
  ChromeTrace trace;
  trace.Add(report);
  const json parsed = json::parse(trace.Json(), nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(parsed.is_discarded());
  return parsed;
}

std::vector<json> Events(const json& trace, const std::string& phase) {
  std::vector<json> events;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

// Nanoseconds of a time in microseconds.
int64_t Nanoseconds(const json& micros) { return std::llround(micros.get<double>() * 1000); }

v1::SimulateReport Simulated(const std::string& graph, const v1::Step& step) {
  v1::SimulateOptions options;
  *options.mutable_step() = step;
  options.set_memory(true);
  options.set_trace(true);
  auto report = core::SimulateGraph(graph, options, DefaultLimits(), StopToken());
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : v1::SimulateReport();
}

// A real training graph with swaps, of which only the sums of the forecast are taken from the
// simulator's report.
TEST(ChromeTraceTest, EachCopyAndThePeakOfARewrittenGraph) {
  const std::string graph = ::spillway::testing::ReadTestGraph("resnet50_tf1_b4/graph.pb");
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("gradients");
  options.mutable_scope()->add_optimizer_scopes("Momentum");
  options.mutable_scope()->set_lb(3);
  auto rewritten = core::Rewrite(graph, options, DefaultLimits(), StopToken());
  ASSERT_TRUE(rewritten.ok()) << rewritten.status();
  ASSERT_GT(rewritten->report().devices(0).swap_in_count(), 0);
  const v1::SimulateReport report = Simulated(rewritten->graph_def(), options.step());
  const json trace = TraceOf(report);
  std::map<std::string, int64_t> bytes, count;
  std::set<std::string> names;
  int64_t last_end = 0;
  std::map<std::pair<int, int>, int64_t> ends;  // By thread.
  for (const json& event : Events(trace, "X")) {
    const std::string category = event["cat"];
    ++count[category];
    names.insert(event["name"]);
    if (event["args"].contains("bytes")) bytes[category] += event["args"]["bytes"].get<int64_t>();
    const int64_t from = Nanoseconds(event["ts"]), to = from + Nanoseconds(event["dur"]);
    // An engine does one thing at a time.
    int64_t& end = ends[{event["pid"], event["tid"]}];
    EXPECT_GE(from, end);
    end = to;
    last_end = std::max(last_end, to);
  }
  const v1::DeviceForecast& device = report.forecast().devices(0);
  EXPECT_EQ(bytes["copy out"], device.copy_out_bytes());
  EXPECT_EQ(bytes["copy in"], device.copy_in_bytes());
  EXPECT_EQ(last_end, report.forecast().step_time_ns());
  // Each swap-in that the rewrite reports is there, and comes from a copy out.
  std::set<std::string> swap_ins;
  for (const v1::TensorSwap& swap : rewritten->report().swaps()) {
    for (const v1::SwapIn& swap_in : swap.swap_ins()) swap_ins.insert(swap_in.name());
  }
  ASSERT_FALSE(swap_ins.empty());
  for (const std::string& name : swap_ins) EXPECT_THAT(names, Contains(name));
  EXPECT_GE(Events(trace, "s").size(), swap_ins.size());
  EXPECT_EQ(Events(trace, "s").size(), Events(trace, "f").size());
  std::map<int, json> starts;
  for (const json& flow : Events(trace, "s")) starts[flow["id"]] = flow;
  for (const json& flow : Events(trace, "f")) {
    EXPECT_LE(starts.at(flow["id"])["ts"].get<double>(), flow["ts"].get<double>());
  }
  // The counter's highest point is the peak, and so says the instant.
  int64_t most = 0, at = 0;
  for (const json& counter : Events(trace, "C")) {
    const int64_t value = counter["args"]["bytes"];
    if (value <= most) continue;
    most = value;
    at = Nanoseconds(counter["ts"]);
  }
  EXPECT_EQ(most, report.memory(0).peak_bytes());
  EXPECT_GT(most, device.resident_bytes());
  const auto instants = Events(trace, "i");
  ASSERT_EQ(instants.size(), 1u);
  EXPECT_EQ(instants[0]["args"]["bytes"], most);
  EXPECT_EQ(Nanoseconds(instants[0]["ts"]), at);
  EXPECT_EQ(trace["otherData"]["steps"][0]["execution"], "launched ahead");
}

// By hand: times in microseconds with fractions, threads with names.
TEST(ChromeTraceTest, EveryFieldOfASmallStep) {
  v1::SimulateReport report;
  report.mutable_forecast()->add_devices()->set_device("/gpu:\"0\"");
  report.mutable_simulated()->set_execution(v1::EXECUTION_SYNCHRONOUS);
  report.mutable_simulated()->set_unlimited_memory(true);
  v1::DeviceMemory* memory = report.add_memory();
  memory->add_timeline()->set_bytes(256);
  memory->set_peak_bytes(256);
  v1::TraceSpan* span = report.mutable_trace()->add_spans();
  span->set_node("</script>");
  span->set_engine(v1::ENGINE_COPY_IN);
  span->set_device(0);
  span->set_start_ns(1'234'567);
  span->set_duration_ns(89);
  span->set_bytes(512);
  span->set_given_ns(1'000);
  span->set_waited_ns(7);
  for (int i = 0; i < 2; ++i) {  // Two at once on the host.
    v1::TraceSpan* host = report.mutable_trace()->add_spans();
    host->set_engine(v1::ENGINE_HOST);
    host->set_node("read");
    host->set_start_ns(2'000'000);
    host->set_duration_ns(1'000);
  }
  const json trace = TraceOf(report);
  EXPECT_EQ(trace["otherData"]["steps"][0]["execution"], "synchronous");
  EXPECT_EQ(trace["otherData"]["steps"][0]["unlimited_memory"], true);
  const auto events = Events(trace, "X");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0], json::parse(R"({"ph":"X","name":"</script>","cat":"copy in","pid":1,"tid":3,
      "ts":1234.567,"dur":0.089,"args":{"given_ns":1000,"bytes":512,"waited_for_memory_ns":7}})"));
  EXPECT_EQ(events[1]["pid"], 2);
  EXPECT_NE(events[1]["tid"], events[2]["tid"]);
  std::map<std::pair<int, int>, std::string> names;
  for (const json& event : Events(trace, "M")) {
    if (event["name"] == "thread_name") names[{event["pid"], event["tid"]}] = event["args"]["name"];
    if (event["name"] == "process_name") names[{event["pid"], 0}] = event["args"]["name"];
  }
  EXPECT_EQ((names[{1, 0}]), "/gpu:\"0\"");
  EXPECT_EQ((names[{1, 1}]), "compute");
  EXPECT_EQ((names[{1, 2}]), "copy out");
  EXPECT_EQ((names[{1, 3}]), "copy in");
  EXPECT_EQ((names[{2, 0}]), "host");
  EXPECT_EQ((names[{2, 2}]), "operations 2");
}

TEST(ChromeTraceTest, WhatMakesNoSenseIsLeftOut) {
  v1::SimulateReport report;
  report.mutable_forecast()->add_devices();
  for (const int64_t wild : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    for (const int device : {-1, 0, 1, INT32_MAX}) {
      for (int engine = -1; engine < 7; ++engine) {
        v1::TraceSpan* span = report.mutable_trace()->add_spans();
        span->set_node("\xff\x01");
        span->set_engine(static_cast<v1::Engine>(engine));
        span->set_device(device);
        span->set_start_ns(wild);
        span->set_duration_ns(INT64_MAX);
        span->set_copied_out(device);
      }
    }
  }
  v1::DeviceMemory* memory = report.add_memory();
  memory->add_timeline()->set_time_ns(-1);
  memory->set_peak_ns(-1);
  const json trace = TraceOf(report);
  EXPECT_THAT(Events(trace, "X"), IsEmpty());
  EXPECT_THAT(Events(trace, "C"), IsEmpty());
  EXPECT_THAT(Events(trace, "i"), IsEmpty());
  EXPECT_THAT(Events(TraceOf(v1::SimulateReport()), "X"), IsEmpty());
}

// Several steps in one file have processes of their own.
TEST(ChromeTraceTest, SeveralSteps) {
  v1::SimulateReport report;
  report.mutable_forecast()->add_devices();
  report.mutable_forecast()->add_devices()->set_device("/gpu:1");
  ChromeTrace trace;
  trace.Add(report, "MetaGraph 0");
  trace.Add(report, "MetaGraph 1");
  const json parsed = json::parse(trace.Json());
  std::set<int> processes;
  std::vector<std::string> names;
  for (const json& event : Events(parsed, "M")) {
    if (event["name"] != "process_name") continue;
    EXPECT_TRUE(processes.insert(event["pid"].get<int>()).second);
    names.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("MetaGraph 0: GPU", "MetaGraph 0: /gpu:1",
                                            "MetaGraph 1: GPU", "MetaGraph 1: /gpu:1"));
}

// A traced step has a process for each device, after the simulated ones.
TEST(ChromeTraceTest, AMeasuredStep) {
  v1::SimulateReport report;
  report.mutable_forecast()->add_devices();
  text::CheckTrace measured;
  measured.spans = {{"/gpu:0", "b", 5'005'000, 5'020'000},
                    {"/gpu:0", "a", 5'000'000, 5'010'000},
                    {"/gpu:0", "c", 5'010'000, 5'012'000},
                    {"/cpu:0", "\xff", 5'020'500, 5'022'000}};
  measured.records["/gpu:0"] = {{5'002, 500}, {5'015, -500}};
  ChromeTrace trace;
  trace.Add(report, "simulated");
  trace.AddMeasured(measured);
  const json parsed = json::parse(trace.Json());
  std::map<std::string, int> processes;
  for (const json& event : Events(parsed, "M")) {
    if (event["name"] == "process_name") processes[event["args"]["name"]] = event["pid"];
  }
  EXPECT_EQ(processes.size(), 3u);
  EXPECT_EQ(processes.count("simulated: GPU"), 1u);
  std::map<std::string, json> spans;
  for (const json& event : Events(parsed, "X")) spans[event["name"]] = event;
  EXPECT_EQ(spans["a"], (json{{"ph", "X"},
                              {"name", "a"},
                              {"cat", "measured"},
                              {"pid", processes["measured: /gpu:0"]},
                              {"tid", 1},
                              {"ts", 0},
                              {"dur", 10}}));
  // Simultaneous operations are not in one row.
  EXPECT_EQ(spans["b"]["tid"], 2);
  EXPECT_EQ(spans["c"]["tid"], 1);
  EXPECT_EQ(spans["?"]["pid"], processes["measured: /cpu:0"]);
  EXPECT_EQ(spans["?"]["ts"], 20.5);
  std::vector<std::pair<double, int>> held;
  for (const json& event : Events(parsed, "C")) {
    held.emplace_back(event["ts"].get<double>(), event["args"]["bytes"].get<int>());
  }
  EXPECT_THAT(held, ::testing::ElementsAre(std::pair(2.0, 500), std::pair(15.0, 0)));
}

}  // namespace
}  // namespace spillway::plot
