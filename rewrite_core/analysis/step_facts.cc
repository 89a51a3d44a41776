#include "rewrite_core/analysis/step_facts.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/machine/gpu_memory.h"
#include "rewrite_core/analysis/memory/variable_aliases.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

// Moves a result into the place of its fact.
template <typename T>
absl::Status Keep(absl::StatusOr<T> result, absl::optional<T>* fact) {
  if (!result.ok()) return result.status();
  *fact = *std::move(result);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStep(const v1::Step& step) {
  if (!v1::Grappler_IsValid(step.grappler())) {
    return UnknownValueError("grappler", step.grappler());
  }
  absl::Status status = CheckKernelMemory(step);
  return status.ok() ? Hardware::FromOptions(step.hardware()).status() : status;
}

absl::Status StepFacts::Compute(std::initializer_list<Fact> facts, const StopToken& stop) const {
  for (Fact fact : facts) {
    if (absl::Status s = Compute(fact, stop); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status StepFacts::Compute(Fact fact, const StopToken& stop) const {
  const Graph& graph = *graph_;
  switch (fact) {
    case Fact::kTopology:
      if (topology_) break;
      return Keep(Topology::Build(graph, stop), &topology_);
    case Fact::kShapes:
      if (shapes_) break;
      if (absl::Status s = Compute(Fact::kTopology, stop); !s.ok()) return s;
      return Keep(Shapes::Infer(graph, *topology_, *step_, stop), &shapes_);
    case Fact::kControlFlow:
      if (control_flow_) break;
      if (absl::Status s = Compute(Fact::kTopology, stop); !s.ok()) return s;
      return Keep(ControlFlowAnalysis::Build(graph, *topology_, stop), &control_flow_);
    case Fact::kVariableAliases:
      if (variable_aliases_) break;
      if (absl::Status s = Compute(Fact::kShapes, stop); !s.ok()) return s;
      return Keep(FindVariableAliases(graph, *shapes_, stop), &variable_aliases_);
    case Fact::kPlacement:
      if (placement_) break;
      if (absl::Status s = Compute(Fact::kShapes, stop); !s.ok()) return s;
      return Keep(Placement::Find(graph, *topology_, *shapes_, stop), &placement_);
    case Fact::kLoops: {
      if (loops_) break;
      if (absl::Status s = Compute(Fact::kShapes, stop); !s.ok()) return s;
      if (!graph.has_control_flow() && step_->loop_counts().empty()) {
        loops_.emplace();
        break;
      }
      if (absl::Status s = Compute(Fact::kControlFlow, stop); !s.ok()) return s;
      return Keep(Loops::Find(graph, *topology_, *shapes_, *control_flow_, *step_, stop), &loops_);
    }
    case Fact::kHardware:
      if (hardware_) break;
      return Keep(Hardware::FromOptions(step_->hardware()), &hardware_);
    case Fact::kGpuMemory:
      if (gpu_memories_) break;
      if (absl::Status s = Compute({Fact::kPlacement, Fact::kHardware}, stop); !s.ok()) return s;
      return Keep(FindGpuMemories(placement_->devices(), step_->hardware(), stop), &gpu_memories_);
    case Fact::kProfile:
      if (profile_ || step_->profile().empty()) break;
      return Keep(Profile::Read(step_->profile(), graph, stop), &profile_);
    case Fact::kBuffers:
      if (buffers_) break;
      if (absl::Status s = Compute({Fact::kPlacement, Fact::kProfile, Fact::kLoops}, stop);
          !s.ok()) {
        return s;
      }
      if (graph.has_control_flow()) {
        if (absl::Status s = Compute(Fact::kActiveNodes, stop); !s.ok()) return s;
      }
      return Keep(Buffers::Find(graph, *topology_, *shapes_, *placement_, conditionals_, *loops_,
                                profile(), stop),
                  &buffers_);
    case Fact::kLayout:
      if (layout_) break;
      if (absl::Status s = Compute(Fact::kHardware, stop); !s.ok()) return s;
      if (step_->grappler() == v1::GRAPPLER_AS_IS || !CountsTemporaries(*step_)) {
        layout_.emplace();
        break;
      }
      if (absl::Status s = Compute({Fact::kPlacement, Fact::kActiveNodes}, stop); !s.ok()) return s;
      return Keep(GrapplerLayout::Find(graph, *topology_, *shapes_, *placement_, *hardware_,
                                       *active_nodes_, stop),
                  &layout_);
    case Fact::kCosts:
      if (costs_) break;
      if (absl::Status s = Compute({Fact::kBuffers, Fact::kLayout}, stop); !s.ok()) return s;
      return Keep(Costs::Estimate(graph, *shapes_, *placement_, *buffers_, *hardware_, *layout_,
                                  *step_, profile(), stop),
                  &costs_);
    case Fact::kBackwardPart:
      if (backward_part_) break;
      if (absl::Status s = Compute(Fact::kTopology, stop); !s.ok()) return s;
      return Keep(FindBackwardPart(graph, *topology_, stop), &backward_part_);
    case Fact::kActiveNodes: {
      if (active_nodes_) break;
      if (absl::Status s = Compute(Fact::kShapes, stop); !s.ok()) return s;
      if (step_->targets().empty()) {
        if (absl::Status s = Compute(Fact::kBackwardPart, stop); !s.ok()) return s;
      }
      auto active = FindActiveNodes(graph, *topology_, *shapes_, *step_,
                                    backward_part_ ? &*backward_part_ : nullptr, stop);
      if (!active.ok()) return active.status();
      if (graph.has_control_flow()) {
        if (absl::Status s = Compute(Fact::kPlacement, stop); !s.ok()) return s;
        auto conditionals =
            Conditionals::Find(graph, *topology_, *shapes_, *placement_, active->needed, stop);
        if (!conditionals.ok()) return conditionals.status();
        conditionals_ = *std::move(conditionals);
        for (NodeId id(0); id < graph.num_nodes(); ++id) {
          if (conditionals_.IsDead(id)) active->flags[id] = false;
        }
      }
      active_nodes_ = *std::move(active);
      break;
    }
  }
  return absl::OkStatus();
}

Hardware StepFacts::HardwareOf(GpuIndex gpu) const {
  Hardware hardware = *hardware_;
  // A graph without nodes on a GPU is still simulated with one.
  if (gpu < static_cast<int32_t>(gpu_memories_->size()) && (*gpu_memories_)[gpu] > 0) {
    hardware.gpu_memory_bytes = (*gpu_memories_)[gpu];
    hardware.gpu_memory_source = v1::MEMORY_SOURCE_OPTION;
  }
  return hardware;
}

v1::HardwareReport StepFacts::ReportHardware() const {
  v1::HardwareReport report = hardware_->ToReport();
  *report.mutable_hardware()->mutable_gpu_memories() = step_->hardware().gpu_memories();
  return report;
}

std::vector<int64_t> StepFacts::Budgets() const {
  std::vector<int64_t> budgets;
  for (GpuIndex gpu(0); gpu < static_cast<int32_t>(gpu_memories_->size()); ++gpu) {
    budgets.push_back(BudgetOf(gpu));
  }
  return budgets;
}

}  // namespace spillway::core
