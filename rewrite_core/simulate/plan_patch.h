// PlanPatch: changes the prepared workload of a step in place to that of the step with a plan, and
// back. Only the touched part is rebuilt: the plan's swap nodes and copies, the nodes whose inputs
// it changes, and nodes that share memory with inputs of these. Lists that change are appended to
// the pools of the prepared workload.
//
// Some plans change more than that: nodes run that did not, a copy loses all its readers, or a
// buffer loses its largest alias. Those are left to BuildWorkload.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_PATCH_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_PATCH_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/workload.h"
#include "rewrite_core/simulate/workload_trace.h"

namespace spillway::core {

class PlanPatch {
 public:
  // `workload` and `trace` are those of BuildTracedWorkload, and `prepared` is prepared from it;
  // all must outlive the patch.
  PlanPatch(const StepFacts& facts, const Workload& workload, const WorkloadTrace& trace,
            PreparedWorkload* prepared);
  ~PlanPatch();

  // Patches `plan` in; returns false if it cannot. Either way, call Undo before the next Apply.
  // Errors: those of PreparedWorkload::Prepare.
  absl::StatusOr<bool> Apply(const SwapPlan& plan, const StopToken& stop);
  void Undo();

  // Operations and buffers added after those of the workload.
  const std::vector<WorkloadOp>& added_ops() const;
  const std::vector<WorkloadBuffer>& added_buffers() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_PATCH_H_
