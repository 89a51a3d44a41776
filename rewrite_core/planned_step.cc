#include "rewrite_core/planned_step.h"

namespace spillway::core {

int64_t PlannedStep::SpaceUsed() const {
  const SwapPlan& plan = result.plan;
  size_t bytes = sizeof(*this) + result.report.SpaceUsedLong() + forecast.SpaceUsedLong() +
                 result.decisions.capacity() * sizeof(TensorDecision) +
                 plan.swaps.capacity() * sizeof(PlannedSwap) +
                 plan.controls.capacity() * sizeof(ControlEdge) +
                 result.offload.nodes.capacity() * sizeof(NodeId);
  for (const std::vector<StateGroup>* groups : {&result.offload.groups, &result.offload.kept}) {
    for (const StateGroup& group : *groups) {
      bytes += sizeof(StateGroup) +
               (group.variables.capacity() + group.holders.capacity() + group.updates.capacity()) *
                   sizeof(NodeId);
    }
  }
  for (const PlannedClone& clone : result.clones.clones) {
    bytes += sizeof(PlannedClone) + clone.inputs.capacity() * sizeof(PlannedClone::Input) +
             clone.consumers.capacity() * sizeof(InputPosition) +
             clone.updates.capacity() * sizeof(NodeId);
  }
  for (const PlannedSwap& swap : plan.swaps) {
    bytes += swap.swap_ins.capacity() * sizeof(PlannedSwapIn) +
             swap.deadlines.capacity() * sizeof(NodeId);
    for (const PlannedSwapIn& swap_in : swap.swap_ins) {
      bytes += swap_in.consumers.capacity() * sizeof(InputPosition) +
               swap_in.paces.capacity() * sizeof(NodeId);
    }
  }
  for (const v1::Warning& warning : forecast_warnings) bytes += warning.SpaceUsedLong();
  return static_cast<int64_t>(bytes);
}

}  // namespace spillway::core
