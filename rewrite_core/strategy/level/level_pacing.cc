#include "rewrite_core/strategy/level/level_pacing.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "rewrite_core/strategy/order/launch_ranks.h"
#include "rewrite_core/strategy/order/order_edges.h"
#include "rewrite_core/strategy/order/pace_gate.h"

namespace spillway::core {
namespace {

// How many slots a gate comes after its trigger, as in the first plans of the strategy budget.
constexpr Slot kSlotsBehindTrigger = 1;

absl::StatusOr<StepResult> SimulateFreely(const SwapPlan& plan, PlanSimulator* simulator,
                                          const StopToken& stop) {
  StepTerms terms;
  terms.record_operations = true;
  return simulator->Simulate(plan, terms, stop);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LevelPacing>> LevelPacing::Create(
    const StepFacts& facts, const SwapPlan& base, const std::vector<GpuIndex>& gpus,
    Serialization serialization, PlanSimulator* simulator, const StopToken& stop) {
  auto needs = Needs::Find(facts, stop);
  if (!needs.ok()) return needs.status();
  auto pacing = absl::WrapUnique(new LevelPacing(facts, *std::move(needs)));
  auto unswapped = SimulateFreely(base, simulator, stop);
  if (!unswapped.ok()) return unswapped.status();
  pacing->unswapped_ = *std::move(unswapped);
  SwapPlan ordered = base;
  StepResult step = pacing->unswapped_;
  if (serialization == Serialization::kOff) {
    absl::Status s = pacing->FindOrderEdgesOf(gpus, stop);
    if (!s.ok()) return s;
  }
  if (!pacing->order_edges_.empty()) {
    ordered.controls.insert(ordered.controls.end(), pacing->order_edges_.begin(),
                            pacing->order_edges_.end());
    auto simulated = SimulateFreely(ordered, simulator, stop);
    if (!simulated.ok()) return simulated.status();
    const auto peak = [&gpus](const StepResult& result) {
      int64_t bytes = 0;
      for (GpuIndex gpu : gpus) bytes += result.peak_bytes(gpu);
      return bytes;
    };
    auto ranks = RankByLaunch(facts, *simulated, pacing->order_edges_, stop);
    if (!ranks.ok()) return ranks.status();
    if (!ranks->empty() && peak(*simulated) < peak(pacing->unswapped_)) {
      pacing->ranks_ = *std::move(ranks);
      step = *std::move(simulated);
    } else {
      pacing->order_edges_.clear();
    }
  }
  if (serialization == Serialization::kOff && pacing->order_edges_.empty()) {
    auto ranks = RankByLaunch(facts, step, {}, stop);
    if (!ranks.ok()) return ranks.status();
    pacing->ranks_ = *std::move(ranks);
  }
  for (GpuIndex gpu : gpus) {
    auto order = StepOrder::Create(facts, gpu, step, stop);
    if (!order.ok()) return order.status();
    pacing->orders_.emplace(gpu, *std::move(order));
  }
  pacing->soundness_ = std::make_unique<Soundness>(facts, pacing->ranks_);
  return pacing;
}

absl::Status LevelPacing::FindOrderEdgesOf(const std::vector<GpuIndex>& gpus,
                                           const StopToken& stop) {
  for (GpuIndex gpu : gpus) {
    auto order = StepOrder::Create(facts_, gpu, unswapped_, stop);
    if (!order.ok()) return order.status();
    const int64_t least = unswapped_.peak_bytes(gpu) / kMinOrderedPart;
    auto edges = FindOrderEdges(facts_, *order, least, stop);
    if (!edges.ok()) return edges.status();
    order_edges_.insert(order_edges_.end(), edges->begin(), edges->end());
  }
  return absl::OkStatus();
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
      .Find(producer, swap_in.triggers, last + 1 + kSlotsBehindTrigger, swap_in.consumers);
}

}  // namespace spillway::core
