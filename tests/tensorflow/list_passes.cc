// list_noops GRAPH [TARGET...]: prints `target NAME` for each target of the step, those given or
// those that Spillway finds, then `noop NAME` for each node that Spillway takes for a NoOp: what
// dependency_pass.py compares with TensorFlow's pass.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/graph/graph.h"

namespace core = spillway::core;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: list_noops GRAPH [TARGET...]\n";
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const core::StopToken stop;
  const auto graph = core::Graph::Parse(bytes, core::DefaultLimits(), stop);
  if (!graph.ok()) {
    std::cerr << graph.status() << "\n";
    return 1;
  }
  spillway::v1::Step step;
  for (int i = 2; i < argc; ++i) step.add_targets(argv[i]);
  const core::StepFacts facts(*graph, step);
  if (absl::Status s = facts.Compute({core::Fact::kActiveNodes}, stop); !s.ok()) {
    std::cerr << s << "\n";
    return 1;
  }
  const core::ActiveNodes& active = facts.active_nodes();
  for (core::NodeId id : active.targets) std::cout << "target " << graph->name(id) << "\n";
  for (core::NodeId id(0); id < graph->num_nodes(); ++id) {
    if (active.only_orders[id]) std::cout << "noop " << graph->name(id) << "\n";
  }
  return 0;
}
