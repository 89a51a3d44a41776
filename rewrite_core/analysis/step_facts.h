// The facts of one training step of a graph: every analysis, computed once, on first demand, and
// shared by all readers. This is the only owner: eligibility, strategies, the simulator and reports
// read facts here and keep no analyses of their own.
//
// Readers must request a fact first, with Compute; its dependencies come with it.
//
// Thread safety: one call of Compute at a time, without concurrent readers; otherwise immutable.
// Compute is const as for a cache: its results are determined from the start.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_STEP_FACTS_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_STEP_FACTS_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/analysis/flow/active_nodes.h"
#include "rewrite_core/analysis/flow/backward_part.h"
#include "rewrite_core/analysis/flow/conditionals.h"
#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/analysis/flow/loops.h"
#include "rewrite_core/analysis/grappler_layout.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/analysis/machine/profile.h"
#include "rewrite_core/analysis/memory/buffers.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

enum class Fact {
  kTopology,
  kShapes,           // Reads feeds and batch_size; depends on kTopology.
  kControlFlow,      // Depends on kTopology.
  kVariableAliases,  // Depends on kShapes.
  kPlacement,        // Depends on kShapes.
  kLoops,            // Reads loop_counts; depends on kShapes, and with control flow on
                     // kControlFlow.
  kHardware,         // Reads hardware.
  kGpuMemory,        // Reads hardware; depends on kPlacement and kHardware.
  kProfile,          // Reads profile.
  kBuffers,       // Depends on kPlacement, kProfile and kLoops, with conditionals on kActiveNodes.
  kLayout,        // Reads grappler and kernel_memory; depends on kPlacement, kHardware and
                  // kActiveNodes.
  kCosts,         // Reads convolution_workspace_bytes and kernel_memory; depends on kBuffers and
                  // kLayout.
  kBackwardPart,  // Depends on kTopology.
  kActiveNodes,  // Reads targets and grappler; depends on kShapes, on kBackwardPart if there are no
                 // targets, and with conditionals on kPlacement. Also computes conditionals().
};

// Checks options that need no graph: the machine, the workspace of convolutions, values of enums
// that this build does not know (UNKNOWN_OPTION). Not left to the analyses, as a rewrite may skip
// them.
absl::Status CheckStep(const v1::Step& step);

class StepFacts {
 public:
  // `graph` and `step` must outlive the facts.
  StepFacts(const Graph& graph, const v1::Step& step) : graph_(&graph), step_(&step) {}
  StepFacts(const StepFacts&) = delete;
  StepFacts& operator=(const StepFacts&) = delete;

  // Computes these facts and their dependencies, unless already computed. Errors: those of the
  // analyses (see their headers), each naming its node or option, and those of `stop`. After an
  // error, facts that were computed before remain.
  absl::Status Compute(std::initializer_list<Fact> facts, const StopToken& stop) const;

  // Frees the fact kCosts, to save memory: readers must request it again.
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
  // The order for walking a step: bodies of loops before their successors.
  const std::vector<NodeId>& step_order() const {
    return loops_->order().empty() ? topology_->order() : loops_->order();
  }
  const Hardware& hardware() const { return *hardware_; }
  // The same, with the memory of one GPU (an index into Placement::devices()). REQUIRES:
  // kGpuMemory.
  Hardware HardwareOf(GpuIndex gpu) const;
  int64_t BudgetOf(GpuIndex gpu) const { return HardwareOf(gpu).device_budget_bytes(); }
  std::vector<int64_t> Budgets() const;       // By GPU.
  v1::HardwareReport ReportHardware() const;  // REQUIRES: kHardware.
  // Null if no profile was given.
  const Profile* profile() const { return profile_ ? &*profile_ : nullptr; }
  const Buffers& buffers() const { return *buffers_; }
  const GrapplerLayout& layout() const { return *layout_; }
  const Costs& costs() const { return *costs_; }
  const BackwardPart& backward_part() const { return *backward_part_; }
  const ActiveNodes& active_nodes() const { return *active_nodes_; }
  const Conditionals& conditionals() const { return conditionals_; }

  // Moves out the only fact that the verifier reads, so that the others can be freed.
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
  mutable absl::optional<std::vector<int64_t>> gpu_memories_;  // By GPU; 0: no override.
  mutable absl::optional<Profile> profile_;
  mutable absl::optional<Buffers> buffers_;
  mutable absl::optional<GrapplerLayout> layout_;
  mutable absl::optional<Costs> costs_;
  mutable absl::optional<BackwardPart> backward_part_;
  mutable absl::optional<ActiveNodes> active_nodes_;
  mutable Conditionals conditionals_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_STEP_FACTS_H_
