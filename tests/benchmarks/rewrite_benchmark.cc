// The whole rewrite of real graphs, bytes to bytes, verified, in units of the floor (floor.h). Both
// are timed in turns within one iteration, so that the ratio holds when the machine's speed drifts.
//
//   build/tests/benchmarks/rewrite_benchmark
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "rewrite_core/base/names.h"
#include "rewrite_core/rewriter.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/files.h"

namespace spillway::core {
namespace {

v1::RewriteOptions Options(bool direct_order) {
  v1::RewriteOptions options;
  for (const char* scope : {"gradients", "Momentum", "Adam"}) {
    options.mutable_scope()->add_optimizer_scopes(scope);
  }
  if (direct_order) {
    options.mutable_scope()->set_ctrld_strategy(v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER);
  }
  return options;
}

// Argument: 1 for direct_order, 0 for chain_rule.
void BM_Rewrite(benchmark::State& state, const std::string& graph) {
  const std::string bytes = testing::ReadTestGraph(graph);
  const v1::RewriteOptions options = Options(state.range(0) != 0);
  const v1::Limits limits = DefaultLimits();
  double floor = 0;
  std::vector<double> ratios;
  std::map<std::string, double> stages;
  for (auto _ : state) {
    const double one_floor = benchmarks::FloorSeconds(bytes);
    floor += one_floor;
    const auto begin = benchmarks::Clock::now();
    auto response = Rewrite(bytes, options, limits, StopToken());
    const double seconds = benchmarks::SecondsSince(begin);
    ratios.push_back(seconds / one_floor);
    state.SetIterationTime(seconds);
    if (!response.ok()) {
      std::cerr << response.status() << "\n";
      std::abort();
    }
    if (response->report().outcome() != v1::OUTCOME_REWRITTEN) std::abort();
    for (const auto& stage : response->report().stages()) {
      stages[core::StageName(stage.stage())] += stage.duration_ns() * 1e-9;
    }
  }
  // The median: one interruption by the machine must not decide.
  state.counters["floors"] = benchmarks::Median(ratios);
  state.counters["floor_ms"] = 1e3 * floor / state.iterations();
  for (const auto& [stage, seconds] : stages) state.counters[stage] = seconds / floor;
}

BENCHMARK_CAPTURE(BM_Rewrite, resnet50_tf1, "resnet50_tf1/graph_shapes.pb")
    ->ArgName("direct_order")
    ->Arg(0)
    ->Arg(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Rewrite, bert_base, "bert_base/graph_shapes.pb")
    ->ArgName("direct_order")
    ->Arg(0)
    ->Arg(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spillway::core

BENCHMARK_MAIN();
