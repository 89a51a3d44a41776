// Shape inference of real graphs, in units of the floor (floor.h).
//
//   build/tests/benchmarks/shapes_benchmark
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "rewrite_core/analysis/shapes/shapes.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"

namespace spillway::core {
namespace {

void BM_Shapes(benchmark::State& state, const std::string& name) {
  const testing::TestGraph graph = testing::TestGraph::FromBytes(testing::ReadTestGraph(name));
  const StopToken stop;
  const auto topology = Topology::Build(*graph, stop);
  if (!topology.ok()) std::abort();
  std::vector<double> ratios;
  double seconds_total = 0;
  for (auto _ : state) {
    const double floor = benchmarks::FloorSeconds(graph.bytes());
    const auto begin = benchmarks::Clock::now();
    auto shapes = Shapes::Infer(*graph, *topology, v1::Step(), stop);
    const double seconds = benchmarks::SecondsSince(begin);
    if (!shapes.ok()) {
      std::cerr << shapes.status() << "\n";
      std::abort();
    }
    state.SetIterationTime(seconds);
    seconds_total += seconds;
    ratios.push_back(seconds / floor);
  }
  // The median: one interruption by the machine must not decide.
  state.counters["floors"] = benchmarks::Median(ratios);
  state.counters["ns_per_node"] = 1e9 * seconds_total / state.iterations() / graph->num_nodes();
}

#define SPILLWAY_BENCHMARK(name, file) \
  BENCHMARK_CAPTURE(BM_Shapes, name, file)->UseManualTime()->Unit(benchmark::kMillisecond)

SPILLWAY_BENCHMARK(resnet50_tf1, "resnet50_tf1/graph.pb");
SPILLWAY_BENCHMARK(resnet50_tf1_stated, "resnet50_tf1/graph_shapes.pb");
SPILLWAY_BENCHMARK(bert_base, "bert_base/graph.pb");
SPILLWAY_BENCHMARK(bert_base_stated, "bert_base/graph_shapes.pb");
SPILLWAY_BENCHMARK(inception3, "tfcnn_inception3_4gpu/graph.pb");
SPILLWAY_BENCHMARK(lstm_while, "lstm_while/graph.pb");
SPILLWAY_BENCHMARK(lstm_while_v2, "lstm_while_v2/graph.pb");

}  // namespace
}  // namespace spillway::core

BENCHMARK_MAIN();
