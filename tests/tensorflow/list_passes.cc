// list_passes GRAPH CAPABILITY [TARGET...]: prints what Spillway takes TensorFlow's passes to do on
// a GPU of that compute capability, for dependency_pass.py and layout_pass.py:
//
//   target NAME              a target of the step: those given, or those that Spillway finds
//   constant NAME            a Shape or the like that becomes a constant
//   noop NAME                a node that becomes a NoOp, if nothing becomes a constant
//   transposed NAME:PORT TO  a tensor that is transposed: from the layout of the file (`other`), or
//                            to it (`file`)
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/flow/grappler_noops.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/graph/graph.h"

namespace core = spillway::core;

int main(int argc, char** argv) {
  double capability = 0;
  if (argc < 3 || !absl::SimpleAtod(argv[2], &capability)) {
    std::cerr << "usage: list_passes GRAPH CAPABILITY [TARGET...]\n";
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
  step.set_kernel_memory(spillway::v1::KERNEL_MEMORY_AUTO);
  step.mutable_hardware()->set_compute_capability(capability);
  for (int i = 3; i < argc; ++i) step.add_targets(argv[i]);
  const core::StepFacts facts(*graph, step);
  if (absl::Status s = facts.Compute({core::Fact::kLayout}, stop); !s.ok()) {
    std::cerr << s << "\n";
    return 1;
  }
  const core::ActiveNodes& active = facts.active_nodes();
  for (core::NodeId id : active.targets) std::cout << "target " << graph->name(id) << "\n";
  const auto noops =
      core::FindGrapplerNoOps(*graph, facts.topology(), facts.shapes(), step, active.needed,
                              core::NodeFlags(graph->num_nodes(), false), active.targets, stop);
  if (!noops.ok()) {
    std::cerr << noops.status() << "\n";
    return 1;
  }
  std::set<std::string> transposed;
  for (core::NodeId id(0); id < graph->num_nodes(); ++id) {
    if ((*noops)[id]) std::cout << "noop " << graph->name(id) << "\n";
    if (active.constants[id]) std::cout << "constant " << graph->name(id) << "\n";
    if (!active.needed[id] || active.only_orders[id]) continue;
    const absl::Span<const core::Tensor> inputs = graph->inputs(id);
    for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
      const bool other = facts.layout().ReadsOther(id, static_cast<int32_t>(i));
      if (other == facts.layout().WritesOther(inputs[i])) continue;
      transposed.insert(absl::StrCat(graph->name(inputs[i].node), ":", inputs[i].port,
                                     other ? " other" : " file"));
    }
  }
  for (const std::string& line : transposed) std::cout << "transposed " << line << "\n";
  return 0;
}
