// What it takes to get from a graph and its shapes to the workload of a step: where things lie,
// what shares memory, what nodes cost, what runs. In units of the floor (floor.h), in microseconds
// per node, stage by stage; the median of some runs.
//
//   build/tests/benchmarks/step_benchmark [GRAPH ...]     (of tests/graphs, e.g. bert_base)
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/benchmarks/floor.h"
#include "tests/testing/files.h"
#include "tests/testing/step.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using testing::Step;
using testing::TestGraph;

double MedianSeconds(const std::function<void()>& run) {
  std::vector<double> seconds;
  for (int i = 0; i < 9; ++i) {
    const auto begin = benchmarks::Clock::now();
    run();
    seconds.push_back(benchmarks::SecondsSince(begin));
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

void Measure(const std::string& name, const std::string& bytes) {
  const Step step(TestGraph::FromBytes(bytes));
  const Graph& graph = *step.graph;
  const double floor = MedianSeconds([&] { benchmarks::FloorSeconds(bytes); });
  double all = 0;
  std::printf("%s, %d nodes, floor %.2f ms\n", name.c_str(), graph.num_nodes(), 1e3 * floor);
  const auto stage = [&](const char* what, const std::function<bool()>& run) {
    const double seconds = MedianSeconds([&] {
      if (!run()) std::abort();
    });
    all += seconds;
    std::printf("  %-12s %8.3f ms  %6.3f us per node\n", what, 1e3 * seconds,
                1e6 * seconds / graph.num_nodes());
  };
  stage("placement", [&] { return Placement::Find(graph, step.topology, step.shapes, {}).ok(); });
  stage("buffers", [&] {
    return Buffers::Find(graph, step.topology, step.shapes, step.placement, nullptr, {}).ok();
  });
  stage("costs", [&] {
    return Costs::Estimate(graph, step.shapes, step.placement, step.buffers, step.hardware, 0,
                           nullptr, {})
        .ok();
  });
  stage("active nodes",
        [&] { return FindActiveNodes(graph, step.topology, step.shapes, {}, nullptr, {}).ok(); });
  stage("workload", [&] { return BuildWorkload(step.facts(), nullptr, nullptr, {}).ok(); });
  std::printf("  %-12s %8.3f ms  %6.3f us per node, %.2f floors\n", "all", 1e3 * all,
              1e6 * all / graph.num_nodes(), all / floor);
}

int Main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) names = {"resnet50_tf1", "bert_base"};
  for (const std::string& name : names) Measure(name, testing::ReadTestGraph(name + "/graph.pb"));
  if (argc == 1) {
    testing::TrainingGraphOptions options;
    options.nodes = 100000;
    Measure("synthetic", testing::MakeTrainingGraph(options));
  }
  return 0;
}

}  // namespace
}  // namespace spillway::core

int main(int argc, char** argv) { return spillway::core::Main(argc, argv); }
