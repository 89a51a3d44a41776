// Simulations of plans per second: a plan patched into the workload of the unswapped step
// (StepSimulator, PlanPatch), against the same plan with its workload built from scratch, in one
// run. Each mode by itself, and both as in searches; memory counted, without end, and placed, in
// the smallest budget found with which the plan runs.
//
//   build/tests/benchmarks/plan_benchmark [--quick] [GRAPH ...]     (of tests/graphs)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rewrite_core/simulate/plan_patch.h"
#include "rewrite_core/simulate/simulation_run.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using testing::TestGraph;
using testing::TestStep;
using testing::ValueOrDie;

// Levels from a producer to the first reader of its swap-in; from a trigger to it; and from the
// producer to the node waiting for the swap-out.
constexpr int32_t kFar = 24;
constexpr int32_t kAhead = 8;
constexpr int32_t kDeadline = 12;
// One in so many of the tensors that are read from afar is swapped.
constexpr int kEvery = 3;

constexpr int64_t kBatch = 8;  // Of graphs that leave it open.

v1::Step StepOf() {
  v1::Step step;
  step.set_batch_size(kBatch);
  return step;
}

// Swaps of tensors that wait long, as the strategies choose them.
SwapPlan MakePlan(const TestStep& step) {
  const Graph& graph = *step.graph;
  const Topology& topology = step.facts.topology();
  const auto runs_on_gpu = [&](NodeId id) {
    return step.facts.active_nodes().flags[id] && step.facts.placement().node(id) >= 0;
  };
  std::vector<NodeId> at_level;
  for (NodeId id : topology.order()) {
    if (!runs_on_gpu(id)) continue;
    at_level.resize(std::max<size_t>(at_level.size(), topology.level(id) + 1), kNoNode);
    at_level[topology.level(id)] = id;
  }
  for (size_t i = 1; i < at_level.size(); ++i) {
    if (at_level[i] == kNoNode) at_level[i] = at_level[i - 1];
  }
  SwapPlan plan;
  int far = 0;
  for (NodeId id : topology.order()) {
    if (!runs_on_gpu(id) || step.facts.buffers().num_outputs(id) == 0) continue;
    const Tensor tensor{id, 0};
    if (step.facts.buffers().place(tensor) < 0 || step.facts.buffers().bytes(tensor) < (1 << 16) ||
        step.facts.buffers().storage(tensor) != Storage::kAllocated) {
      continue;
    }
    PlannedSwapIn swap_in;
    int32_t first = 0;
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      const auto [reader, index, port] = readers[i];
      if (port != 0 || !runs_on_gpu(reader)) continue;
      if (topology.level(reader) - topology.level(id) < kFar) continue;
      first = swap_in.consumers.empty() ? topology.level(reader)
                                        : std::min(first, topology.level(reader));
      swap_in.consumers.push_back({reader, index});
    }
    if (swap_in.consumers.empty() || far++ % kEvery != 0) continue;
    swap_in.triggers.push_back(at_level[first - kAhead]);
    PlannedSwap swap;
    swap.tensor = tensor;
    swap.swap_ins.push_back(std::move(swap_in));
    const NodeId waiting = at_level[topology.level(id) + kDeadline];
    if (topology.level(waiting) > topology.level(id)) swap.deadlines.push_back(waiting);
    plan.swaps.push_back(std::move(swap));
  }
  return plan;
}

double LeastSeconds(int runs, const std::function<void()>& run) {
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto begin = benchmarks::Clock::now();
    run();
    least = std::min(least, benchmarks::SecondsSince(begin));
  }
  return least;
}

class Bench {
 public:
  Bench(const std::string& name, const std::string& bytes, int runs)
      : name_(name),
        runs_(runs),
        step_(TestGraph::FromBytes(bytes), StepOf()),
        plan_(MakePlan(step_)) {
    simulator_ = ValueOrDie(StepSimulator::Create(step_.facts, {}), "simulator");
    workload_ = ValueOrDie(BuildTracedWorkload(step_.facts, &notes_, &trace_, {}), "workload");
    options_.launch_ns = ToNanoseconds(step_.facts.hardware().launch_s);
    options_.record_order = false;
    prepared_ = ValueOrDie(PreparedWorkload::Prepare(workload_, options_.launch_ns, {},
                                                     LayoutOf(step_.facts, workload_, trace_)),
                           "prepare");
    patch_ = std::make_unique<PlanPatch>(step_.facts, workload_, trace_, &prepared_);
    const auto free = ValueOrDie(simulator_->Simulate(plan_, StepTerms(), {}), "step");
    const auto need = FindNeed(simulator_.get(), plan_, StepTerms::AllGpus(0),
                               free.peak_bytes(core::GpuIndex(0)), {});
    budget_ = ValueOrDie(need, "need");
    if (budget_ == 0 || !ValueOrDie(patch_->Apply(plan_, {}), "patch")) std::abort();
    patch_->Undo();
  }

  void Run() {
    std::printf("%s: placed in %lld bytes\n", name_.c_str(), static_cast<long long>(budget_));
    Row(/*placed=*/false, "(none)", [&] { MakeAnew(); }, [&] { Patch(); });
    for (const bool placed : {false, true}) {
      Row(
          placed, "ahead", [&] { One(placed, SimulationMode::kLaunchAhead); },
          [&] { OnePatched(placed, SimulationMode::kLaunchAhead); });
      Row(
          placed, "synchronous", [&] { One(placed, SimulationMode::kSynchronous); },
          [&] { OnePatched(placed, SimulationMode::kSynchronous); });
      Row(
          placed, "both", [&] { Both(placed); }, [&] { BothPatched(placed); });
    }
  }

 private:
  void Row(bool placed, const char* mode, const std::function<void()>& anew,
           const std::function<void()>& patched) {
    // In turns, so that the ratio holds when the machine's speed drifts.
    double seconds[2] = {1e9, 1e9};
    for (int i = 0; i < runs_; ++i) {
      seconds[0] = std::min(seconds[0], LeastSeconds(1, anew));
      seconds[1] = std::min(seconds[1], LeastSeconds(1, patched));
    }
    std::printf("%-14s %6d %6zu  %-8s %-12s %9.1f %9.1f %6.2f\n", name_.c_str(),
                step_.graph->num_nodes(), plan_.swaps.size(), placed ? "placed" : "counted", mode,
                1 / seconds[0], 1 / seconds[1], seconds[1] / seconds[0]);
    std::fflush(stdout);
  }
  SimulationOptions Options(bool placed) const {
    SimulationOptions options = options_;
    if (!placed) return options;
    options.placed = true;
    options.device_budget_bytes.assign(workload_.devices.size(), budget_);
    options.host_budget_bytes = step_.facts.hardware().host_memory_bytes;
    return options;
  }
  void One(bool placed, SimulationMode mode) {
    SimulationOptions options = Options(placed);
    options.mode = mode;
    if (!ValueOrDie(Simulate(step_.Build(&plan_), options, {}), "step").fits()) std::abort();
  }
  void OnePatched(bool placed, SimulationMode mode) {
    SimulationOptions options = Options(placed);
    options.mode = mode;
    if (!ValueOrDie(patch_->Apply(plan_, {}), "patch")) std::abort();
    if (!ValueOrDie(simulation_.Run(prepared_, options, {}), "step").fits()) std::abort();
    patch_->Undo();
  }
  // The workloads alone.
  void MakeAnew() {
    const Workload workload = step_.Build(&plan_);
    if (!PreparedWorkload::Prepare(workload, options_.launch_ns, {}).ok()) std::abort();
  }
  void Patch() {
    if (!ValueOrDie(patch_->Apply(plan_, {}), "patch")) std::abort();
    patch_->Undo();
  }
  // Like the former ladder: counted; if it fits, placed.
  void Both(bool placed) {
    const Workload workload = step_.Build(&plan_);
    SimulationOptions options = Options(placed);
    options.placed = false;
    if (!ValueOrDie(SimulateBothModes(workload, options, {}), "step").fits()) std::abort();
    if (!placed) return;
    options.placed = true;
    if (!ValueOrDie(SimulateBothModes(workload, options, {}), "step").fits()) std::abort();
  }
  void BothPatched(bool placed) {
    const StepTerms terms = placed ? StepTerms::AllGpus(budget_) : StepTerms();
    if (!ValueOrDie(simulator_->Simulate(plan_, terms, {}), "step").fits) std::abort();
  }

  const std::string name_;
  const int runs_;
  const TestStep step_;
  const SwapPlan plan_;
  std::unique_ptr<StepSimulator> simulator_;
  WorkloadNotes notes_;
  WorkloadTrace trace_;
  Workload workload_;
  SimulationOptions options_;
  PreparedWorkload prepared_;
  std::unique_ptr<PlanPatch> patch_;
  SimulationRun simulation_;
  int64_t budget_ = 0;
};

int Main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  const auto quick = std::find(names.begin(), names.end(), "--quick");
  const int runs = quick == names.end() ? 25 : 3;
  if (quick != names.end()) names.erase(quick);
  if (names.empty()) names = {"bert_base", "resnet50_tf1", "synthetic"};
  std::printf("graph           nodes  swaps  memory   modes          anew/s patched/s   cost\n");
  for (const std::string& name : names) {
    testing::TrainingGraphOptions options;
    options.nodes = 100'000;
    Bench(name,
          name == "synthetic" ? testing::MakeTrainingGraph(options)
                              : testing::ReadTestGraph(name + "/graph_shapes.pb"),
          runs)
        .Run();
  }
  return 0;
}

}  // namespace
}  // namespace spillway::core

int main(int argc, char** argv) { return spillway::core::Main(argc, argv); }
