// StepModel: one training step of a graph on a machine, ready to be played: every analysis that a
// forecast stands on, computed once. Forecasts of several plans for one graph share it.
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_STEP_MODEL_H_
#define SPILLWAY_REWRITE_CORE_STEP_MODEL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/active_nodes.h"
#include "rewrite_core/analysis/buffers.h"
#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/analysis/hardware.h"
#include "rewrite_core/analysis/placement.h"
#include "rewrite_core/analysis/profile.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/simulate/workload_builder.h"
#include "rewrite_core/strategy/plan_judge.h"
#include "spillway/v1/forecast.pb.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/simulate.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

class StepModel {
 public:
  // Reads targets, hardware, profile and convolution_workspace_bytes of `step`; the shapes have the
  // rest. `graph`, `topology` and `shapes` must outlive the result. Errors: those of the analyses
  // about these fields.
  static absl::StatusOr<std::unique_ptr<const StepModel>> Create(const Graph& graph,
                                                                 const Topology& topology,
                                                                 const Shapes& shapes,
                                                                 const v1::Step& step,
                                                                 const StopToken& stop);

  // The step with that plan (null: as the graph is). `notes` may be null. Errors: those of `stop`.
  absl::StatusOr<Workload> Build(const SwapPlan* plan, WorkloadNotes* notes,
                                 const StopToken& stop) const;

  // What the step `workload`, which Build made, takes. With `no_budget` there is memory without
  // end; otherwise the hardware's budgets hold. `with_bounds` (of a step without a plan): lower
  // bounds at these budgets, too. Errors: those of Simulate.
  absl::StatusOr<v1::Forecast> Forecast(const Workload& workload, bool no_budget, bool with_bounds,
                                        const StopToken& stop) const;

  // Fills in memory and distances of `report`: played synchronously; within the budgets, if
  // `in_budget`, which it must then fit, otherwise with memory without end.
  absl::Status DescribeMemory(const Workload& workload, bool in_budget, const StopToken& stop,
                              v1::SimulateReport* report) const;

  // What the step takes with `plan`, as a search for plans asks. If one GPU has a budget, it has
  // its share of the host's memory. Errors: those of Simulate.
  absl::StatusOr<PlanOutcome> Play(const SwapPlan& plan, const PlayTerms& terms,
                                   const StopToken& stop) const;

  const Hardware& hardware() const { return hardware_; }
  const Placement& placement() const { return *placement_; }
  bool Runs(NodeId id) const { return active_->flags[id]; }
  int64_t num_active_nodes() const;
  // The names of the targets, each at most as long as others are shown.
  std::vector<std::string> TargetNames() const;
  // What its forecasts leave out. `notes` are those of the step without a plan.
  std::vector<v1::Warning> Warnings(const WorkloadNotes& notes) const;

 private:
  StepModel(const Graph& graph, const Topology& topology, const Shapes& shapes)
      : graph_(graph), topology_(topology), shapes_(shapes) {}

  absl::Status Analyse(const v1::Step& step, const StopToken& stop);
  SimulationOptions Unlimited() const;
  SimulationOptions Budgets() const;
  absl::Status AddBounds(const Workload& workload, const std::vector<OpId>& order,
                         const StopToken& stop, v1::Forecast* forecast) const;
  v1::OutOfMemory ToProto(const Workload& workload, const OutOfMemory& oom) const;
  std::string NameOf(const Workload& workload, OpId op) const;
  absl::Status CountDistances(const StopToken& stop, v1::SimulateReport* report) const;

  const Graph& graph_;
  const Topology& topology_;
  const Shapes& shapes_;
  Hardware hardware_;
  absl::optional<Profile> profile_;
  absl::optional<Placement> placement_;
  absl::optional<Buffers> buffers_;
  absl::optional<Costs> costs_;
  absl::optional<ActiveNodes> active_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STEP_MODEL_H_
