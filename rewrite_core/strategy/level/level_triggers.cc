#include "rewrite_core/strategy/level/level_triggers.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/strategy/common/cond_scope.h"

namespace spillway::core {
namespace {

// The number of levels searched.
constexpr int32_t kLevelsSearched = 10;

}  // namespace

LevelTriggers::LevelTriggers(const StepFacts& facts, const LevelFilters& filters,
                             const LevelOrder& levels, SearchBudget* budget,
                             absl::Span<const int32_t> ranks)
    : facts_(facts),
      soundness_(facts, ranks),
      levels_(levels),
      budget_(budget),
      barred_(facts.graph().num_nodes()),
      seen_(facts.graph().num_nodes(), 0) {
  const Graph& graph = facts.graph();
  std::vector<bool> joins_branches;
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    joins_branches.push_back(graph.op_name(op) == "Merge" || graph.op_name(op) == "Switch");
  }
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (budget->Spend()) return;
    barred_[id] =
        filters.is_inactive(id) || filters.IsOnCpu(id) ||
        (!joins_branches[graph.op_id(id)] && absl::StrContains(graph.name(id), kCondScope));
  }
}

bool LevelTriggers::IsSameGpu(DeviceId a, DeviceId b) const {
  if (a == b) return true;
  const auto [it, is_new] = same_gpu_.try_emplace(std::make_pair(a, b));
  if (is_new) {
    const absl::string_view name_a = facts_.graph().device_name(a);
    const absl::string_view name_b = facts_.graph().device_name(b);
    it->second = name_a.empty() || name_b.empty() || NamesDevice(name_a, name_b);
  }
  return it->second;
}

bool LevelTriggers::MayTrigger(NodeId trigger, NodeId consumer) const {
  const Graph& graph = facts_.graph();
  return IsSameGpu(graph.device_id(trigger), graph.device_id(consumer)) &&
         soundness_.MayWait(trigger, consumer);
}

bool LevelTriggers::MayTriggerAll(NodeId trigger, absl::Span<const LateReader> group) const {
  return std::all_of(group.begin(), group.end(), [&](const LateReader& reader) {
    // Spent steps are noticed at the next step of the walk.
    return !budget_->Spend() && MayTrigger(trigger, reader.position.node);
  });
}

template <typename Visit>
void LevelTriggers::Walk(NodeId consumer, int32_t depth, const Visit& visit) {
  const Graph& graph = facts_.graph();
  const int32_t top = levels_.level(consumer);
  if (static_cast<int32_t>(below_.size()) <= depth) below_.resize(depth + 1);
  for (int32_t i = 0; i <= depth; ++i) below_[i].clear();
  below_[0].push_back(consumer);
  ++walk_;
  for (int32_t i = 0; i <= depth; ++i) {
    for (size_t k = 0; k < below_[i].size(); ++k) {
      if (budget_->Spend()) return;
      const NodeId id = below_[i][k];
      if (i > 0 && !barred_[id] && MayTrigger(id, consumer) && !visit(i, id)) return;
      // Ops that lead to a fed op do not run.
      if (facts_.shapes().IsFed(id)) continue;
      for (Tensor input : graph.inputs(id)) {
        if (budget_->Spend()) return;
        const int32_t level = levels_.level(input.node);
        if (input.is_control() || level == kNoLevel || level >= top - i) continue;
        if (top - level > depth || seen_[input.node] == walk_) continue;
        seen_[input.node] = walk_;
        below_[top - level].push_back(input.node);
      }
    }
  }
}

NodeId LevelTriggers::Find(int32_t producer_level, absl::Span<const LateReader> group,
                           int32_t ahead) {
  const NodeId consumer = group.front().position.node;
  const int32_t top = group.front().level;
  // Counted in levels below the consumer.
  const int64_t from = int64_t{ahead} + 1;
  const int64_t to =
      std::min<int64_t>(from + kLevelsSearched - 1, int64_t{top} - producer_level - 1);
  if (from > to) return kNoNode;
  const int32_t depth = static_cast<int32_t>(to);
  std::vector<NodeId>& best = found_[consumer];
  if (static_cast<int32_t>(best.size()) < depth) {
    // Walk deeper than requested, so that growth costs no more than the last walk.
    const int32_t walked = std::min(std::max(depth, 2 * static_cast<int32_t>(best.size())), top);
    best.assign(walked, kNoNode);
    Walk(consumer, walked, [&](int32_t below, NodeId id) {
      NodeId& lowest = best[below - 1];
      if (lowest == kNoNode || id < lowest) lowest = id;
      return true;
    });
  }
  bool refused = false;
  for (int32_t below = static_cast<int32_t>(from); below <= depth && !refused; ++below) {
    if (best[below - 1] == kNoNode) continue;
    if (MayTriggerAll(best[below - 1], group)) return best[below - 1];
    refused = true;
  }
  if (!refused) return kNoNode;
  // The trigger of the first consumer does not suit the whole group: another one may.
  NodeId found = kNoNode;
  int32_t found_below = 0;
  Walk(consumer, depth, [&](int32_t below, NodeId id) {
    if (below < from) return true;
    if (found != kNoNode && below > found_below) return false;
    if ((found == kNoNode || id < found) && MayTriggerAll(id, group)) {
      found = id;
      found_below = below;
    }
    return true;
  });
  return found;
}

}  // namespace spillway::core
