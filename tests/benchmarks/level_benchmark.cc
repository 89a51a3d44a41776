// The strategy `level`: a rewrite with given parameters, and a whole auto-tune, in units of the
// floor (floor.h) measured in the same run; the median of some runs, each from bytes to bytes and
// report. Targets: 2 floors with given parameters; 50 floors for an auto-tune on resnet50_tf1,
// bert_base and 10,000 nodes, with cost per node at 100,000 nodes at most twice that. Then, graph
// by graph, how much longer TFLMS v2 itself took for its edit (recorded on another, busy machine:
// an order of magnitude).
//
//   build/tests/benchmarks/level_benchmark [--quick]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "rewrite_core/rewriter.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/files.h"
#include "tests/testing/recorded_v2.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

// Shares of the unswapped peak that a GPU is given.
constexpr double kBudgets[] = {0.95, 0.8, 0.6};

struct Timed {
  double seconds = 0;
  v1::RewriteResponse response;
  bool ok = false;
};

Timed Run(int runs, const std::string& bytes, const v1::RewriteOptions& options) {
  Timed timed;
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const auto begin = benchmarks::Clock::now();
    auto response = Rewrite(bytes, options, DefaultLimits(), StopToken());
    seconds.push_back(benchmarks::SecondsSince(begin));
    timed.ok = response.ok();
    if (response.ok()) timed.response = *std::move(response);
  }
  timed.seconds = benchmarks::Median(seconds);
  return timed;
}

double Floor(int runs, const std::string& bytes) {
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) seconds.push_back(benchmarks::FloorSeconds(bytes));
  return benchmarks::Median(seconds);
}

void MeasureFloors(int runs, const std::string& name, const std::string& bytes) {
  const double floor = Floor(runs, bytes);
  v1::RewriteOptions options;
  v1::LevelStrategy& level = *options.mutable_level();
  options.mutable_step()->set_batch_size(64);
  level.set_swapout_threshold(1);
  level.set_swapin_ahead(1);
  level.set_swapin_groupby(0);
  const auto print = [&](const char* what, const Timed& timed) {
    const int64_t nodes = timed.response.report().node_count_before();
    std::printf("  %-28s %9.2f ms %7.2f floors %7.3f us per node  %s\n", what, 1e3 * timed.seconds,
                timed.seconds / floor, 1e6 * timed.seconds / std::max<int64_t>(nodes, 1),
                timed.ok ? timed.response.report().summary().c_str() : "does not fit");
  };
  std::printf("%s, floor %.2f ms\n", name.c_str(), 1e3 * floor);
  options.set_simulation(v1::SIMULATION_OFF);
  print("given, without forecast", Run(runs, bytes, options));
  options.set_simulation(v1::SIMULATION_ON);
  const Timed given = Run(runs, bytes, options);
  print("given, with forecast", given);
  const int64_t peak = given.response.report().forecast_before().devices(0).peak_bytes();
  options.mutable_level()->Clear();
  for (double share : kBudgets) {
    options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(
        static_cast<int64_t>(share * peak));
    char what[64];
    std::snprintf(what, sizeof(what), "tuned to %.0f %% of the peak", 100 * share);
    print(what, Run(runs, bytes, options));
  }
}

void CompareWithV2(int runs) {
  std::printf("%-24s %-12s %12s %10s %10s\n", "graph", "parameters", "TFLMS v2 ms", "ours ms",
              "ratio");
  for (const std::string& name : testing::GraphsWithV2Records()) {
    const std::string bytes = testing::ReadTestGraph(name + "/graph.pb");
    double least = 0;
    std::string row;
    for (const testing::RecordedSetV2& set : testing::ReadV2Sets(name)) {
      if (set.edit_ms <= 0) continue;
      v1::RewriteOptions options = set.options;
      options.set_simulation(v1::SIMULATION_OFF);             // TFLMS v2 makes no forecast.
      options.set_decision_detail(v1::DECISION_DETAIL_NONE);  // And explains nothing.
      const Timed timed = Run(runs, bytes, options);
      const double ratio = set.edit_ms / (1e3 * timed.seconds);
      if (least != 0 && ratio >= least) continue;
      least = ratio;
      char text[160];
      std::snprintf(text, sizeof(text), "%-24s %-12s %12.1f %10.2f %10.0f", name.c_str(),
                    set.name.c_str(), set.edit_ms, 1e3 * timed.seconds, ratio);
      row = text;
    }
    if (!row.empty()) std::printf("%s\n", row.c_str());
  }
}

int Main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const int runs = quick ? 1 : 11;
  for (const char* name : {"resnet50_tf1", "bert_base", "wide_chain_10k"}) {
    MeasureFloors(runs, name, testing::ReadTestGraph(std::string(name) + "/graph.pb"));
  }
  for (int64_t nodes : {10'000, 100'000}) {
    if (quick && nodes > 10'000) break;
    testing::TrainingGraphOptions options;
    options.nodes = nodes;
    MeasureFloors(nodes > 10'000 ? 3 : runs, "synthetic, " + std::to_string(nodes) + " nodes",
                  testing::MakeTrainingGraph(options));
  }
  std::printf("\nThe least ratio to TFLMS v2 of any set of parameters, by graph:\n");
  CompareWithV2(quick ? 1 : 3);
  return 0;
}

}  // namespace
}  // namespace spillway::core

int main(int argc, char** argv) { return spillway::core::Main(argc, argv); }
