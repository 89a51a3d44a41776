// The time from an indexed graph to a forecast: its order and shapes, the placement, shared memory,
// the nodes' costs, the active nodes, the workload, and the simulation in both ways. In units of
// the floor (floor.h) and in microseconds per node, stage by stage; the median of some runs.
// Target: 3 floors.
//
//   build/tests/benchmarks/step_benchmark [--quick] [GRAPH ...]     (of tests/graphs, e.g.
//   bert_base)
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/analysis/memory/variable_aliases.h"
#include "rewrite_core/simulate/simulator.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using testing::TestGraph;
using testing::TestStep;

double MedianSeconds(int runs, const std::function<void()>& run) {
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const auto begin = benchmarks::Clock::now();
    run();
    seconds.push_back(benchmarks::SecondsSince(begin));
  }
  return benchmarks::Median(seconds);
}

void Measure(int runs, const std::string& name, const std::string& bytes) {
  const TestStep step(TestGraph::FromBytes(bytes));
  const Graph& graph = *step.graph;
  const double floor = MedianSeconds(runs, [&] { benchmarks::FloorSeconds(bytes); });
  double all = 0;
  std::printf("%s, %d nodes, floor %.2f ms\n", name.c_str(), graph.num_nodes(), 1e3 * floor);
  const auto stage = [&](const char* what, const std::function<bool()>& run) {
    const double seconds = MedianSeconds(runs, [&] {
      if (!run()) std::abort();
    });
    all += seconds;
    std::printf("  %-12s %8.3f ms  %6.3f us per node\n", what, 1e3 * seconds,
                1e6 * seconds / graph.num_nodes());
  };
  stage("topology", [&] { return Topology::Build(graph, {}).ok(); });
  stage("control flow",
        [&] { return ControlFlowAnalysis::Build(graph, step.facts.topology(), {}).ok(); });
  stage("shapes", [&] { return Shapes::Infer(graph, step.facts.topology(), v1::Step(), {}).ok(); });
  stage("variables", [&] { return FindVariableAliases(graph, step.facts.shapes(), {}).ok(); });
  stage("placement", [&] {
    return Placement::Find(graph, step.facts.topology(), step.facts.shapes(), {}).ok();
  });
  stage("buffers", [&] {
    return Buffers::Find(graph, step.facts.topology(), step.facts.shapes(), step.facts.placement(),
                         {}, {}, nullptr, {})
        .ok();
  });
  stage("costs", [&] {
    return Costs::Estimate(graph, step.facts.shapes(), step.facts.placement(), step.facts.buffers(),
                           step.facts.hardware(), {}, {}, nullptr, {})
        .ok();
  });
  stage("active nodes", [&] {
    return FindActiveNodes(graph, step.facts.topology(), step.facts.shapes(), {}, nullptr, {}).ok();
  });
  stage("workload", [&] { return BuildWorkload(step.facts, nullptr, nullptr, {}).ok(); });
  const Workload workload = step.Build();
  SimulationOptions options;
  options.launch_ns = ToNanoseconds(step.facts.hardware().launch_s);
  stage("simulation", [&] { return SimulateBothModes(workload, options, {}).ok(); });
  std::printf("  %-12s %8.3f ms  %6.3f us per node, %.2f floors\n", "all", 1e3 * all,
              1e6 * all / graph.num_nodes(), all / floor);
}

int Main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  const auto quick = std::find(names.begin(), names.end(), "--quick");
  const int runs = quick == names.end() ? 21 : 1;
  if (quick != names.end()) names.erase(quick);
  const bool all = names.empty();
  if (all) names = {"resnet50_tf1", "bert_base"};
  for (const std::string& name : names) {
    Measure(runs, name, testing::ReadTestGraph(name + "/graph.pb"));
  }
  if (all) {
    testing::TrainingGraphOptions options;
    options.nodes = 100000;
    Measure(runs, "synthetic", testing::MakeTrainingGraph(options));
  }
  return 0;
}

}  // namespace
}  // namespace spillway::core

int main(int argc, char** argv) { return spillway::core::Main(argc, argv); }
