#include "rewrite_core/strategy/recompute/postpone.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "rewrite_core/plan/clone_needs.h"

namespace spillway::core {
namespace {

// Nothing is postponed if clones have more inputs than this, all together, since each is examined.
// (Clones of networks have thousands; a node with very many might be cloned as many times.)
constexpr int64_t kMaxInputs = int64_t{16} << 20;

// Nor is a node whose clone waits for more triggers than this, with those of the clones that it
// reads. (Clones that run one after another mostly have one.)
constexpr size_t kMaxTriggers = 16;

class Postponer {
 public:
  Postponer(const StepFacts& facts, const Needs& needs, absl::Span<const int32_t> ranks,
            ClonePlan* plan, std::vector<ControlEdge>* controls, const StopToken& stop)
      : facts_(facts),
        graph_(facts.graph()),
        needs_(needs),
        ranks_(ranks),
        clones_(plan->clones),
        edges_(*controls),
        poll_(stop) {
    int64_t num_inputs = 0;
    for (const PlannedClone& clone : clones_) {
      num_inputs += static_cast<int64_t>(graph_.inputs(clone.original).size());
    }
    is_small_ = num_inputs <= kMaxInputs;
    if (!is_small_) return;
    for (NodeId target : facts.active_nodes().targets) ++kept_for_[target];
    // An order edge keeps nothing: if only clones read its source, it is removed.
    for (const ControlEdge& edge : edges_) {
      if (edge.kind != v1::EDGE_KIND_ORDER) ++kept_for_[edge.from];
    }
    for (CloneIndex i(0); i < num_clones(); ++i) {
      const PlannedClone& clone = clones_[i];
      ++kept_for_[clone.trigger];
      originals_[clone.original].first = std::min(originals_[clone.original].first, i);
    }
    for (CloneIndex i(0); i < num_clones(); ++i) {
      for (const InputPosition& consumer : clones_[i].consumers) Move(consumer, i);
      CountReads(i, 1);
      FindTriggers(i);
    }
  }

  StopPoller* poll() { return &poll_; }

  // In reverse: a postponed node may be the last that kept the original of a clone that it reads.
  void Run() {
    if (!is_small_) return;
    is_postponed_.assign(num_clones(), false);
    for (CloneIndex i(num_clones() - 1); i >= 0 && !poll_.Tick(); --i) {
      if (MayPostpone(i)) Postpone(i);
    }
    DropSame();
    SortReads();
    // A clone's trigger comes after the nodes its original waited for.
    edges_.erase(std::remove_if(edges_.begin(), edges_.end(),
                                [this](const ControlEdge& edge) {
                                  return edge.kind == v1::EDGE_KIND_ORDER &&
                                         (IsPostponed(edge.to) || IsPostponed(edge.from));
                                }),
                 edges_.end());
    for (CloneIndex i(0); i < num_clones() && !poll_.Tick(); ++i) {
      const PlannedClone& clone = clones_[i];
      // One without a trigger waits for its inputs.
      if (!is_postponed_[i] || clone.trigger == kNoNode) continue;
      edges_.push_back({clone.trigger, clone.original, v1::EDGE_KIND_ORDER});
      for (NodeId update : clone.updates) {
        edges_.push_back({clone.original, update, v1::EDGE_KIND_ORDER});
      }
    }
  }

 private:
  struct Original {
    CloneIndex first = CloneIndex(std::numeric_limits<int32_t>::max());  // Of its clones.
    int64_t moved = 0;         // Inputs of original nodes that read a clone of it.
    int64_t clones_reads = 0;  // Inputs of clones that read itself.
    bool is_postponed = false;
  };

  CloneIndex num_clones() const { return CloneIndex(clones_.size()); }

  // The clones that a clone reads come before it. Each has at most kMaxTriggers + 1 triggers, so
  // that a chain of clones, each with a trigger of its own, takes time linear in its length.
  void FindTriggers(CloneIndex i) {
    std::vector<NodeId>& triggers = triggers_.emplace_back();
    if (clones_[i].trigger != kNoNode) triggers.push_back(clones_[i].trigger);
    for (const PlannedClone::Input& input : clones_[i].inputs) {
      for (NodeId trigger : triggers_[input.from]) {
        if (poll_.Tick() || triggers.size() > kMaxTriggers) return;
        if (std::find(triggers.begin(), triggers.end(), trigger) == triggers.end()) {
          triggers.push_back(trigger);
        }
      }
    }
  }

  // Makes an input read a clone; kNoClone: the original.
  void Move(const InputPosition& input, CloneIndex to) {
    const auto original = originals_.find(graph_.inputs(input.node)[input.index].node);
    if (original == originals_.end()) return;
    CloneIndex& from = read_.try_emplace({input.node, input.index}, kNoClone).first->second;
    original->second.moved += (to != kNoClone ? 1 : 0) - (from != kNoClone ? 1 : 0);
    from = to;
  }

  // Adds `by` for each original that the clone reads.
  void CountReads(CloneIndex i, int64_t by) {
    const absl::Span<const Tensor> inputs = graph_.inputs(clones_[i].original);
    auto moved = clones_[i].inputs.begin();
    for (int32_t k = 0; k < static_cast<int32_t>(inputs.size()) && !inputs[k].is_control(); ++k) {
      if (poll_.Tick()) return;
      if (moved != clones_[i].inputs.end() && moved->index == k) {
        ++moved;
        continue;
      }
      const auto original = originals_.find(inputs[k].node);
      if (original != originals_.end()) original->second.clones_reads += by;
    }
  }

  bool MayPostpone(CloneIndex i) {
    const PlannedClone& clone = clones_[i];
    const Original& original = originals_.at(clone.original);
    if (original.first != i || original.clones_reads > 0 || IsKept(clone.original)) {
      return false;
    }
    // A step that fetches the original waits, too, also for the triggers of clones that it reads.
    if (triggers_[i].size() > kMaxTriggers) return false;
    for (NodeId trigger : triggers_[i]) {
      if (!needs_.MayGradientWait(facts_, clone.original, trigger, &poll_)) return false;
    }
    const Graph::Readers readers = graph_.readers(clone.original);
    if (static_cast<int64_t>(readers.size()) != original.moved) return false;
    return std::all_of(clone.updates.begin(), clone.updates.end(), [&](NodeId update) {
      return !poll_.Tick() && ranks_[clone.original] < ranks_[update];
    });
  }

  // The original takes over the inputs and the readers of the clone.
  void Postpone(CloneIndex i) {
    const NodeId original = clones_[i].original;
    is_postponed_[i] = originals_[original].is_postponed = true;
    CountReads(i, -1);
    ReadOriginal(i);
    const absl::Span<const Tensor> inputs = graph_.inputs(original);
    auto moved = clones_[i].inputs.begin();
    for (int32_t k = 0; k < static_cast<int32_t>(inputs.size()) && !inputs[k].is_control(); ++k) {
      if (poll_.Tick()) return;
      CloneIndex from = kNoClone;
      if (moved != clones_[i].inputs.end() && moved->index == k) from = moved++->from;
      if (from != kNoClone) clones_[from].consumers.push_back({original, k});
      Move({original, k}, from);
    }
  }

  bool IsPostponed(NodeId node) const {
    const auto original = originals_.find(node);
    return original != originals_.end() && original->second.is_postponed;
  }

  bool IsKept(NodeId original) const {
    const auto kept = kept_for_.find(original);
    return kept != kept_for_.end() && kept->second > 0;
  }

  bool IsReadBy(CloneIndex i, const InputPosition& consumer) const {
    const auto read = read_.find({consumer.node, consumer.index});
    return read != read_.end() && read->second == i;
  }

  // A clone that only forwards the output of a postponed original is the same as its own original.
  void DropSame() {
    for (CloneIndex i(0); i < num_clones(); ++i) {
      if (clones_[i].trigger != kNoNode || is_postponed_[i]) continue;
      is_postponed_[i] = std::all_of(
          clones_[i].inputs.begin(), clones_[i].inputs.end(),
          [this](const auto& input) { return !poll_.Tick() && is_postponed_[input.from]; });
      if (is_postponed_[i]) ReadOriginal(i);
    }
  }

  // The clone's readers read the original.
  void ReadOriginal(CloneIndex i) {
    for (const InputPosition& consumer : clones_[i].consumers) {
      if (poll_.Tick()) return;
      if (IsReadBy(i, consumer)) Move(consumer, kNoClone);
    }
  }

  // Leaves each clone its current readers.
  void SortReads() {
    for (CloneIndex i(0); i < num_clones(); ++i) {
      PlannedClone& clone = clones_[i];
      if (poll_.Tick(1 + static_cast<int64_t>(clone.consumers.size() + clone.inputs.size())))
        return;
      std::vector<InputPosition> consumers;
      for (const InputPosition& consumer : clone.consumers) {
        if (!IsReadBy(i, consumer)) continue;
        consumers.push_back(consumer);
        read_.erase({consumer.node, consumer.index});  // It may be listed twice.
      }
      clone.consumers = std::move(consumers);
      auto& inputs = clone.inputs;
      inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                                  [this](const auto& input) { return is_postponed_[input.from]; }),
                   inputs.end());
    }
  }

  const StepFacts& facts_;
  const Graph& graph_;
  const Needs& needs_;
  const absl::Span<const int32_t> ranks_;
  std::vector<PlannedClone>& clones_;
  std::vector<ControlEdge>& edges_;
  StopPoller poll_;
  bool is_small_ = false;
  absl::flat_hash_map<NodeId, int32_t> kept_for_;  // How often it is waited for, or fetched.
  absl::flat_hash_map<NodeId, Original> originals_;
  absl::flat_hash_map<std::pair<NodeId, int32_t>, CloneIndex> read_;  // By input.
  // By clone: the triggers that it waits for, also through clones; at most kMaxTriggers + 1.
  std::vector<std::vector<NodeId>> triggers_;
  std::vector<bool> is_postponed_;  // By clone.
};

}  // namespace

absl::Status PostponeOriginals(const StepFacts& facts, const Needs& needs,
                               absl::Span<const int32_t> ranks, ClonePlan* plan,
                               std::vector<ControlEdge>* controls, const StopToken& stop) {
  Postponer postponer(facts, needs, ranks, plan, controls, stop);
  postponer.Run();
  if (postponer.poll()->stopped()) return stop.status("strategy");
  DropUnread(plan);
  auto needed = FindNeeded(facts, *plan, stop);
  if (!needed.ok()) return needed.status();
  controls->erase(std::remove_if(controls->begin(), controls->end(),
                                 [&](const ControlEdge& edge) {
                                   return (*needed)[edge.to] && !(*needed)[edge.from];
                                 }),
                  controls->end());
  const int32_t num_nodes = facts.graph().num_nodes();
  for (size_t i = 0; i < plan->clones.size(); ++i) {
    if (!(*needed)[num_nodes + i]) plan->clones[i].consumers.clear();
  }
  DropUnread(plan);
  return absl::OkStatus();
}

}  // namespace spillway::core
