#include "rewrite_core/strategy/recompute/clone_planner.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/plan/clone_needs.h"
#include "rewrite_core/plan/soundness.h"

namespace spillway::core {
namespace {

// A trigger is searched for in this many slots before the clone. (Usually the one before it
// suffices.)
constexpr int32_t kTriggerReach = 200;
// There is no plan if more nodes than this wait for one clone, directly or through others; and for
// all clones together.
constexpr size_t kMaxWaiting = 4096;
constexpr size_t kMaxWaitingInAll = size_t{16} << 20;

class ClonePlanner {
 public:
  ClonePlanner(const RecomputeStep& step, const Sweep& sweep, const Needs& needs,
               absl::Span<const int32_t> ranks, const StopToken& stop)
      : facts_(step.facts()),
        order_(step.order()),
        rules_(step.rules()),
        sweep_(sweep),
        needs_(needs),
        ranks_(ranks),
        soundness_(step.facts()),
        stop_(stop),
        poll_(stop) {}

  absl::StatusOr<ClonePlan> Run() {
    size_t next_read = 0;
    for (size_t i = 0; i < sweep_.clones.size(); ++i) {
      // The reads before it ran.
      for (; next_read < sweep_.reads.size() && sweep_.reads[next_read].clone < 0 &&
             sweep_.reads[next_read].from < static_cast<int32_t>(i);
           ++next_read) {
        MoveConsumers(sweep_.reads[next_read]);
      }
      std::vector<Sweep::Read> reads;
      for (; next_read < sweep_.reads.size() &&
             sweep_.reads[next_read].clone == static_cast<int32_t>(i);
           ++next_read) {
        reads.push_back(sweep_.reads[next_read]);
      }
      AddClone(sweep_.clones[i], reads);
      if (poll_.stopped()) return stop_.status("strategy");
    }
    for (; next_read < sweep_.reads.size(); ++next_read) MoveConsumers(sweep_.reads[next_read]);
    if (!FindTriggers()) plan_.clones.clear();
    if (poll_.stopped()) return stop_.status("strategy");
    return std::move(plan_);
  }

 private:
  void AddClone(const Sweep::Clone& clone, const std::vector<Sweep::Read>& reads) {
    const NodeId node = order_.node(clone.original);
    PlannedClone planned;
    planned.original = node;
    planned.inputs = InputsOf(node, reads);
    planned.updates = rules_.UpdatesOf(node);
    clones_.push_back(Add(std::move(planned), clone.at, /*forwards=*/false));
  }

  CloneIndex Add(PlannedClone clone, Slot at, bool forwards) {
    plan_.clones.push_back(std::move(clone));
    at_.push_back(at);
    forwards_.push_back(forwards);
    return CloneIndex(plan_.clones.size() - 1);
  }

  std::vector<PlannedClone::Input> InputsOf(NodeId node, const std::vector<Sweep::Read>& reads) {
    std::vector<PlannedClone::Input> inputs;
    if (reads.empty()) return inputs;
    absl::flat_hash_map<BufferIndex, const Sweep::Read*> from;
    for (const Sweep::Read& read : reads) from[order_.buffers()[read.buffer]] = &read;
    const absl::Span<const Tensor> all = facts_.graph().inputs(node);
    for (size_t k = 0; k < all.size() && !all[k].is_control() && !poll_.Tick(); ++k) {
      const auto read = from.find(facts_.buffers().buffer_of(all[k]));
      if (read == from.end()) continue;
      inputs.push_back({static_cast<int32_t>(k), CloneOf(all[k], *read->second)});
    }
    return inputs;
  }

  // Makes the inputs of the node of a slot read a clone.
  void MoveConsumers(const Sweep::Read& read) {
    const absl::Span<const StepOrder::Use> uses = order_.uses(read.buffer);
    auto use = std::lower_bound(uses.begin(), uses.end(), read.slot,
                                [](const StepOrder::Use& u, Slot slot) { return u.slot < slot; });
    for (; use != uses.end() && use->slot == read.slot && !poll_.Tick(); ++use) {
      plan_.clones[CloneOf(use->tensor, read)].consumers.push_back(use->position);
    }
  }

  // The clone of the tensor's producer, which is the buffer's maker, or forwards it: such nodes are
  // cloned on first demand.
  CloneIndex CloneOf(Tensor tensor, const Sweep::Read& read) {
    const CloneIndex maker = clones_[read.from];
    std::vector<InputPosition> path;
    CloneIndex from = maker;
    while (tensor.node != plan_.clones[maker].original) {
      if (poll_.Tick()) return maker;
      const auto known = handing_on_.find({maker, tensor.node});
      if (known != handing_on_.end()) {
        from = known->second;
        break;
      }
      path.push_back({tensor.node, facts_.buffers().alias_input(tensor)});
      tensor = facts_.graph().inputs(tensor.node)[path.back().index];
    }
    for (; !path.empty(); path.pop_back()) {
      PlannedClone clone;
      clone.original = path.back().node;
      clone.inputs.push_back({path.back().index, from});
      from = Add(std::move(clone), at_[maker], /*forwards=*/true);
      handing_on_[{maker, path.back().node}] = from;
    }
    return from;
  }

  // A clone waits for the node launched before its place, or an earlier one. Returns false if none
  // suits.
  bool FindTriggers() {
    auto needed = FindNeeded(facts_, plan_, stop_);
    if (!needed.ok()) return false;
    needed_ = *std::move(needed);
    // By clone: the originals that wait for it, directly or through clones.
    std::vector<std::vector<NodeId>> waiting(plan_.clones.size());
    size_t total = 0;
    for (CloneIndex i(plan_.clones.size() - 1); i >= 0; --i) {
      PlannedClone& clone = plan_.clones[i];
      std::vector<NodeId>& of = waiting[i];
      for (const InputPosition& consumer : clone.consumers) of.push_back(consumer.node);
      if (of.empty()) continue;  // Its outputs were dropped again before they were read.
      of.insert(of.end(), clone.updates.begin(), clone.updates.end());
      if (!PolledSort(of.begin(), of.end(), std::less<>(), &poll_)) return false;
      of.erase(std::unique(of.begin(), of.end()), of.end());
      total += of.size();
      if (poll_.Tick(1 + static_cast<int64_t>(of.size())) || of.size() > kMaxWaiting ||
          total > kMaxWaitingInAll) {
        return false;
      }
      absl::flat_hash_set<CloneIndex> read;  // A clone may read another very often.
      for (const PlannedClone::Input& input : clone.inputs) {
        if (!read.insert(input.from).second) continue;
        waiting[input.from].insert(waiting[input.from].end(), of.begin(), of.end());
      }
      if (forwards_[i]) continue;
      clone.trigger = TriggerOf(clone, at_[i], of);
      if (clone.trigger == kNoNode) return false;
    }
    DropUnread(&plan_);
    return true;
  }

  NodeId TriggerOf(const PlannedClone& clone, Slot at, const std::vector<NodeId>& waiting) {
    const NodeId first =
        *std::min_element(waiting.begin(), waiting.end(),
                          [this](NodeId a, NodeId b) { return ranks_[a] < ranks_[b]; });
    const Slot own = order_.slot(clone.original);
    for (Slot slot(at - 1); slot > own && slot >= at - kTriggerReach; --slot) {
      const NodeId node = order_.node(slot);
      if (ranks_[node] >= ranks_[first] || !needed_[node] || IsWaitedFor(clone.original, node) ||
          soundness_.WaitInOrder(node, clone.original) != EdgeFault::kNone) {
        continue;
      }
      if (poll_.Tick(1 + static_cast<int64_t>(waiting.size()))) return kNoNode;
      if (std::all_of(waiting.begin(), waiting.end(), [&](NodeId waits) {
            return needs_.MayGradientWait(facts_, waits, node, &poll_);
          })) {
        return node;
      }
    }
    return kNoNode;
  }

  // Whether the node has the other one as a control input.
  bool IsWaitedFor(NodeId node, NodeId other) {
    const absl::Span<const Tensor> inputs = facts_.graph().inputs(node);
    for (size_t i = inputs.size(); i-- > 0 && inputs[i].is_control();) {  // They come last.
      if (inputs[i].node == other || poll_.Tick()) return true;
    }
    return false;
  }

  const StepFacts& facts_;
  const StepOrder& order_;
  const CloneRules& rules_;
  const Sweep& sweep_;
  const Needs& needs_;
  const absl::Span<const int32_t> ranks_;
  const Soundness soundness_;
  const StopToken& stop_;
  StopPoller poll_;
  ClonePlan plan_;
  std::vector<Slot> at_;            // By clone of the plan: the slot before which it runs.
  std::vector<bool> forwards_;      // By clone of the plan: it forwards another one's output.
  std::vector<CloneIndex> clones_;  // By clone of the sweep.
  // The nodes that the step runs even without waiting clones: others, read only by clones'
  // originals, may be postponed (postpone.h), or not run.
  NodeFlags needed_;
  // By clone and node that forwards its output: that node's clone.
  absl::flat_hash_map<std::pair<CloneIndex, NodeId>, CloneIndex> handing_on_;
};

}  // namespace

absl::StatusOr<ClonePlan> PlanClones(const RecomputeStep& step, const Sweep& sweep,
                                     const Needs& needs, absl::Span<const int32_t> ranks,
                                     const StopToken& stop) {
  return ClonePlanner(step, sweep, needs, ranks, stop).Run();
}

}  // namespace spillway::core
