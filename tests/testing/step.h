// A graph with all that its workload is made from, for tests of simulate/.
#ifndef SPILLWAY_TESTS_TESTING_STEP_H_
#define SPILLWAY_TESTS_TESTING_STEP_H_

#include <string>
#include <utility>
#include <vector>

#include "rewrite_core/simulate/workload_builder.h"
#include "tests/testing/core_test_util.h"

namespace spillway::testing {

struct Step {
  // `options`: feeds, batch_size, targets, hardware, convolution_workspace_bytes and profile count.
  explicit Step(TestGraph g, const v1::RewriteOptions& options = {})
      : graph(std::move(g)),
        topology(ValueOrDie(core::Topology::Build(*graph, {}), "topology")),
        shapes(ValueOrDie(core::Shapes::Infer(*graph, topology, options, {}), "shapes")),
        placement(ValueOrDie(core::Placement::Find(*graph, topology, shapes, {}), "placement")),
        buffers(ValueOrDie(core::Buffers::Find(*graph, topology, shapes, placement, nullptr, {}),
                           "buffers")),
        hardware(ValueOrDie(core::Hardware::FromOptions(options.hardware()), "hardware")),
        costs(ValueOrDie(core::Costs::Estimate(*graph, shapes, placement, buffers, hardware,
                                               options.convolution_workspace_bytes(), nullptr, {}),
                         "costs")),
        active(ValueOrDie(core::FindActiveNodes(*graph, topology, shapes,
                                                std::vector<std::string>(options.targets().begin(),
                                                                         options.targets().end()),
                                                nullptr, {}),
                          "active nodes")) {}
  explicit Step(absl::string_view text, const v1::RewriteOptions& options = {})
      : Step(TestGraph(text), options) {}

  core::StepFacts facts() const {
    return {*graph, topology, shapes, placement, buffers, costs, hardware, active};
  }
  core::Workload Build(const core::SwapPlan* plan = nullptr,
                       core::WorkloadNotes* notes = nullptr) const {
    return ValueOrDie(core::BuildWorkload(facts(), plan, notes, {}), "workload");
  }

  TestGraph graph;
  core::Topology topology;
  core::Shapes shapes;
  core::Placement placement;
  core::Buffers buffers;
  core::Hardware hardware;
  core::Costs costs;
  core::ActiveNodes active;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_STEP_H_
