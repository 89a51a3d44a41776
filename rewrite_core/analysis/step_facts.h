// The facts of one training step of a graph: every analysis, computed on first demand, once, and
// shared by all who read it. The one owner: eligibility, strategies, the simulator and reports read
// facts here and keep no analysis of their own.
//
// Who reads a fact asks for it first, with Compute; what a fact stands on comes with it.
//
// Thread safety: one call of Compute at a time, and no reader beside it; otherwise immutable.
// Compute is const as a cache is: what it adds was determined from the start.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_STEP_FACTS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_STEP_FACTS_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/active_nodes.h"
#include "rewrite_core/analysis/backward_part.h"
#include "rewrite_core/analysis/buffers.h"
#include "rewrite_core/analysis/conditionals.h"
#include "rewrite_core/analysis/control_flow.h"
#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/analysis/hardware.h"
#include "rewrite_core/analysis/loops.h"
#include "rewrite_core/analysis/placement.h"
#include "rewrite_core/analysis/profile.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

enum class Fact {
  kTopology,
  kShapes,           // Of feeds and batch_size; stands on kTopology.
  kControlFlow,      // Stands on kTopology.
  kVariableAliases,  // Stands on kShapes.
  kPlacement,        // Stands on kShapes.
  kLoops,            // Of loop_counts; stands on kShapes, and with control flow on kControlFlow.
  kHardware,         // Of hardware.
  kGpuMemory,        // Of hardware; stands on kPlacement and kHardware.
  kProfile,          // Of profile.
  kBuffers,       // Stands on kPlacement, kProfile and kLoops, with conditionals on kActiveNodes.
  kCosts,         // Of convolution_workspace_bytes; stands on kBuffers and kHardware.
  kBackwardPart,  // Stands on kTopology.
  kActiveNodes,   // Of targets; stands on kShapes, on kBackwardPart where there are none, and
                  // with conditionals on kPlacement. Brings conditionals().
};

class StepFacts {
 public:
  // `graph` and `step` must outlive the facts.
  StepFacts(const Graph& graph, const v1::Step& step) : graph_(&graph), step_(&step) {}
  StepFacts(const StepFacts&) = delete;
  StepFacts& operator=(const StepFacts&) = delete;

  // Computes these facts and what they stand on, unless they are there. Errors: those of the
  // analyses (their headers say which), each naming its node or option, and those of `stop`. After
  // an error the facts that were there before are still there.
  absl::Status Compute(std::initializer_list<Fact> facts, const StopToken& stop) const;

  // Frees the fact kCosts, for when memory is short: who wants it again asks for it again.
  void ForgetCosts() const { costs_.reset(); }

  const Graph& graph() const { return *graph_; }
  const v1::Step& step() const { return *step_; }

  // REQUIRES for each: it was computed.
  const Topology& topology() const { return *topology_; }
  const Shapes& shapes() const { return *shapes_; }
  const ControlFlowAnalysis& control_flow() const { return *control_flow_; }
  // Per node: whether its outputs may share a variable's buffer (variable_aliases.h).
  const std::vector<bool>& variable_aliases() const { return *variable_aliases_; }
  const Placement& placement() const { return *placement_; }
  const Loops& loops() const { return *loops_; }
  // The order in which a step is looked at, bodies of loops before what follows them.
  const std::vector<NodeId>& step_order() const {
    return loops_->order().empty() ? topology_->order() : loops_->order();
  }
  const Hardware& hardware() const { return *hardware_; }
  // The same, with the memory of one GPU (an index into Placement::devices()). REQUIRES:
  // kGpuMemory.
  Hardware HardwareOf(int32_t gpu) const;
  int64_t BudgetOf(int32_t gpu) const { return HardwareOf(gpu).device_budget_bytes(); }
  std::vector<int64_t> Budgets() const;       // By GPU.
  v1::HardwareReport ReportHardware() const;  // REQUIRES: kHardware.
  // Null where no profile was given.
  const Profile* profile() const { return profile_ ? &*profile_ : nullptr; }
  const Buffers& buffers() const { return *buffers_; }
  const Costs& costs() const { return *costs_; }
  const BackwardPart& backward_part() const { return *backward_part_; }
  const ActiveNodes& active_nodes() const { return *active_nodes_; }
  const Conditionals& conditionals() const { return conditionals_; }

  // The one fact that the verifier reads, for when memory is short: all others go with the rest.
  ControlFlowAnalysis TakeControlFlow() && { return *std::move(control_flow_); }

 private:
  absl::Status Compute(Fact fact, const StopToken& stop) const;

  const Graph* graph_;
  const v1::Step* step_;
  mutable absl::optional<Topology> topology_;
  mutable absl::optional<Shapes> shapes_;
  mutable absl::optional<ControlFlowAnalysis> control_flow_;
  mutable absl::optional<std::vector<bool>> variable_aliases_;
  mutable absl::optional<Placement> placement_;
  mutable absl::optional<Loops> loops_;
  mutable absl::optional<Hardware> hardware_;
  mutable absl::optional<std::vector<int64_t>> gpu_memories_;  // By GPU; 0: as the others.
  mutable absl::optional<Profile> profile_;
  mutable absl::optional<Buffers> buffers_;
  mutable absl::optional<Costs> costs_;
  mutable absl::optional<BackwardPart> backward_part_;
  mutable absl::optional<ActiveNodes> active_nodes_;
  mutable Conditionals conditionals_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_STEP_FACTS_H_
