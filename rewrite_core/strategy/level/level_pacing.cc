#include "rewrite_core/strategy/level/level_pacing.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/memory/memory.h"
#include "rewrite_core/strategy/order/ordered_step.h"
#include "rewrite_core/strategy/order/pace_gate.h"

namespace spillway::core {
namespace {

// How many slots a gate comes after its trigger, as in the first plans of the strategy budget.
constexpr int32_t kSlotsBehindTrigger = 1;

}  // namespace

absl::StatusOr<std::unique_ptr<LevelPacing>> LevelPacing::Create(
    const StepFacts& facts, const SwapPlan& base, const std::vector<GpuIndex>& gpus,
    Serialization serialization, PlanSimulator* simulator, const StopToken& stop) {
  auto needs = Needs::Find(facts, stop);
  if (!needs.ok()) return needs.status();
  auto pacing = absl::WrapUnique(new LevelPacing(facts, *std::move(needs)));
  StepTerms unlimited;
  unlimited.record_operations = true;
  auto unswapped = simulator->Simulate(base, unlimited, stop);
  if (!unswapped.ok()) return unswapped.status();
  pacing->unswapped_ = *std::move(unswapped);
  OrderedStep ordered{base, pacing->unswapped_, {}};
  if (serialization == Serialization::kOff) {
    auto with_edges = OrderedStep::Create(facts, base, pacing->unswapped_, gpus, {kLargeOutputs},
                                          kUnlimited, simulator, stop);
    if (!with_edges.ok()) return with_edges.status();
    ordered = *std::move(with_edges);
    const auto num_given = static_cast<std::ptrdiff_t>(base.controls.size());
    pacing->order_edges_.assign(ordered.base.controls.begin() + num_given,
                                ordered.base.controls.end());
    pacing->ranks_ = std::move(ordered.ranks);
  }
  for (GpuIndex gpu : gpus) {
    auto order = StepOrder::Create(facts, gpu, ordered.step, stop);
    if (!order.ok()) return order.status();
    pacing->orders_.emplace(gpu, *std::move(order));
  }
  pacing->soundness_ = std::make_unique<Soundness>(facts, pacing->ranks_);
  return pacing;
}

bool LevelPacing::Runs(const PlannedSwapIn& swap_in) const {
  return std::any_of(
      swap_in.consumers.begin(), swap_in.consumers.end(),
      [&](const InputPosition& consumer) { return facts_.active_nodes().flags[consumer.node]; });
}

void LevelPacing::LeaveOutIdle(PlannedSwapIn* swap_in) const {
  if (!Runs(*swap_in)) return;
  auto& triggers = swap_in->triggers;
  triggers.erase(
      std::remove_if(triggers.begin(), triggers.end(),
                     [&](NodeId trigger) { return !facts_.active_nodes().flags[trigger]; }),
      triggers.end());
}

std::vector<NodeId> LevelPacing::Gate(GpuIndex gpu, NodeId producer,
                                      const PlannedSwapIn& swap_in) const {
  const auto order = orders_.find(gpu);
  if (order == orders_.end()) return {};
  if (!Runs(swap_in)) return {};  // Waiting nodes must not make it run.
  Slot last = kNoSlot;
  for (NodeId trigger : swap_in.triggers) last = std::max(last, order->second.slot(trigger));
  if (last == kNoSlot) return {};
  return PaceGate(order->second, needs_, *soundness_)
      .Find(producer, swap_in.triggers, Slot(last + 1 + kSlotsBehindTrigger), swap_in.consumers);
}

}  // namespace spillway::core
