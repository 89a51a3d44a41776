#include "rewrite_core/plan/clone_plan.h"

namespace spillway::core {

absl::StatusOr<ClonePlan> MoveClones(const ClonePlan& plan, const Graph& from, const Graph& to,
                                     const StopToken& stop) {
  ClonePlan moved;
  moved.clones.reserve(plan.clones.size());
  StopPoller poll(stop);
  bool stopped = false;
  const auto move = [&](NodeId* id) {
    stopped = stopped || poll.Tick();
    if (!stopped && *id != kNoNode) *id = to.Find(from.name(*id));
  };
  for (const PlannedClone& from_clone : plan.clones) {
    PlannedClone& clone = moved.clones.emplace_back(from_clone);
    move(&clone.original);
    move(&clone.trigger);
    for (InputPosition& consumer : clone.consumers) move(&consumer.node);
    for (NodeId& update : clone.updates) move(&update);
    if (stopped) return stop.status("strategy");
  }
  return moved;
}

}  // namespace spillway::core
