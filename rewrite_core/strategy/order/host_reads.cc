#include "rewrite_core/strategy/order/host_reads.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/plan/clone_rules.h"
#include "rewrite_core/plan/late_reads.h"
#include "rewrite_core/plan/readers.h"
#include "rewrite_core/plan/soundness.h"

namespace spillway::core {

absl::StatusOr<HostReads> HostReads::Find(const StepFacts& facts, const Eligibility& eligibility,
                                          const Needs& needs, const StepOrder& order,
                                          absl::Span<const int32_t> ranks, FedInputs inputs,
                                          const StopToken& stop) {
  HostReads result;
  const SwapInReaders rules(facts, eligibility);
  absl::optional<CloneRules> variables;
  StopPoller poll(stop);
  std::vector<LateRead> reads;
  for (OrderBuffer i = order.num_buffers(); i < order.num_all(); ++i) {
    const Tensor tensor = order.first_tensor(i);
    if (inputs == FedInputs::kStay && facts.graph().op(tensor.node) == "Placeholder") continue;
    std::vector<NodeId> updates;
    if (facts.variable_aliases()[tensor.node]) {
      if (!variables) {
        auto found = CloneRules::Find(facts, stop);
        if (!found.ok()) return found.status();
        variables.emplace(*std::move(found));
      }
      updates = variables->UpdatesOf(tensor);
      if (updates.size() > CloneRules::kMaxUpdates) continue;
    }
    for (const StepOrder::Use& use : order.uses(i)) {
      if (poll.Tick(1 + static_cast<int64_t>(updates.size()))) return stop.status("strategy");
      const NodeId reader = use.position.node;
      if (!rules.Runs(reader) || !rules.MayServeFromHost(tensor, reader)) continue;
      result.guarded_[{tensor.node, tensor.port, reader}] = updates;
      for (NodeId update : updates) reads.push_back({update, reader});
    }
  }
  if (reads.empty()) return result;
  auto unguarded = FindUnguarded(facts, std::move(reads), stop);
  if (!unguarded.ok()) return unguarded.status();
  const Soundness soundness(facts, ranks);
  for (auto read = result.guarded_.begin(); read != result.guarded_.end();) {
    const NodeId reader = std::get<2>(read->first);
    std::vector<NodeId>& updates = read->second;
    if (poll.Tick(1 + static_cast<int64_t>(updates.size()))) return stop.status("strategy");
    const auto leads = [&](NodeId update) {
      return !std::binary_search(unguarded->begin(), unguarded->end(), LateRead{update, reader});
    };
    updates.erase(std::remove_if(updates.begin(), updates.end(), leads), updates.end());
    const bool may_guard = std::all_of(updates.begin(), updates.end(), [&](NodeId update) {
      return soundness.MayWait(reader, update) && needs.MayWait(update, reader);
    });
    may_guard ? static_cast<void>(++read) : result.guarded_.erase(read++);
  }
  return result;
}

std::vector<ControlEdge> HostReads::GuardsOf(const std::vector<PlannedSwap>& swaps,
                                             const StopToken& stop) const {
  StopPoller poll(stop);
  std::vector<ControlEdge> guards;
  if (guarded_.empty()) return guards;
  for (const PlannedSwap& swap : swaps) {
    for (const PlannedSwapIn& swap_in : swap.swap_ins) {
      for (const InputPosition& consumer : swap_in.consumers) {
        if (poll.Tick()) return {};
        const auto read = guarded_.find({swap.tensor.node, swap.tensor.port, consumer.node});
        if (read == guarded_.end()) continue;
        for (NodeId update : read->second) {
          guards.push_back({consumer.node, update, v1::EDGE_KIND_ORDER});
        }
      }
    }
  }
  const auto key = [](const ControlEdge& edge) { return std::make_pair(edge.to, edge.from); };
  const auto less = [&](const ControlEdge& a, const ControlEdge& b) { return key(a) < key(b); };
  if (!PolledSort(guards.begin(), guards.end(), less, &poll)) return {};
  guards.erase(
      std::unique(guards.begin(), guards.end(),
                  [&](const ControlEdge& a, const ControlEdge& b) { return key(a) == key(b); }),
      guards.end());
  return guards;
}

}  // namespace spillway::core
