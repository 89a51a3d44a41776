// A graph with all that its workload is made from, for tests of simulate/.
#ifndef SPILLWAY_TESTS_TESTING_STEP_H_
#define SPILLWAY_TESTS_TESTING_STEP_H_

#include <string>
#include <utility>

#include "rewrite_core/simulate/workload_builder.h"
#include "tests/testing/core_test_util.h"

namespace spillway::testing {

struct Step {
  explicit Step(TestGraph g, const v1::Step& step = {})
      : graph(std::move(g)),
        topology(ValueOrDie(core::Topology::Build(*graph, {}), "topology")),
        shapes(ValueOrDie(core::Shapes::Infer(*graph, topology, step, {}), "shapes")),
        placement(ValueOrDie(core::Placement::Find(*graph, topology, shapes, {}), "placement")),
        buffers(ValueOrDie(core::Buffers::Find(*graph, topology, shapes, placement, nullptr, {}),
                           "buffers")),
        hardware(ValueOrDie(core::Hardware::FromOptions(step.hardware()), "hardware")),
        costs(ValueOrDie(core::Costs::Estimate(*graph, shapes, placement, buffers, hardware,
                                               step.convolution_workspace_bytes(), nullptr, {}),
                         "costs")),
        active(ValueOrDie(core::FindActiveNodes(*graph, topology, shapes, step, nullptr, {}),
                          "active nodes")) {}
  explicit Step(absl::string_view text, const v1::Step& step = {}) : Step(TestGraph(text), step) {}

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
