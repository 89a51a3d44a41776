#include "rewrite_core/plan/clone_plan.h"

#include <utility>

namespace spillway::core {

void DropUnread(ClonePlan* plan) {
  std::vector<PlannedClone>& clones = plan->clones;
  std::vector<bool> is_read(clones.size(), false);
  for (size_t i = clones.size(); i-- > 0;) {
    is_read[i] = is_read[i] || !clones[i].consumers.empty();
    if (!is_read[i]) continue;
    for (const PlannedClone::Input& input : clones[i].inputs) is_read[input.from] = true;
  }
  std::vector<CloneIndex> now(clones.size(), kNoClone);
  CloneIndex kept(0);
  for (size_t i = 0; i < clones.size(); ++i) {
    if (!is_read[i]) continue;
    for (PlannedClone::Input& input : clones[i].inputs) input.from = now[input.from];
    now[i] = kept;
    if (static_cast<size_t>(kept) != i) clones[kept] = std::move(clones[i]);
    ++kept;
  }
  clones.resize(kept);
}

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
