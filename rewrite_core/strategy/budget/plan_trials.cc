#include "rewrite_core/strategy/budget/plan_trials.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace spillway::core {
namespace {

// Plans that need not be simulated, because they were before or their copies alone take too long,
// do not count as simulations; at most this many are tried for each simulation.
constexpr int64_t kTriesPerSimulation = 4;

// A plan within 1/kEnoughPart of the step time that is enough is not improved.
constexpr int64_t kEnoughPart = 2000;

// A plan counts as better only if it is faster, or as fast with fewer bytes, by more than
// 1/kWorthwhilePart.
constexpr int64_t kWorthwhilePart = 2000;

// FNV-1a.
uint64_t Fingerprint(const std::vector<Eviction>& evictions) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](int32_t value) {
    hash = (hash ^ static_cast<uint32_t>(value)) * 1099511628211u;
  };
  for (const Eviction& eviction : evictions) {
    add(eviction.gap);
    add(eviction.trigger);
    add(eviction.gate);
  }
  return hash;
}

}  // namespace

SwapPlan WholePlan(const SwapPlan& base, const FoundPlan& found,
                   const std::vector<PlannedSwap>& other_swaps) {
  SwapPlan plan = base;
  plan.controls.insert(plan.controls.end(), found.controls.begin(), found.controls.end());
  plan.swaps = found.swaps;
  plan.swaps.insert(plan.swaps.end(), other_swaps.begin(), other_swaps.end());
  return plan;
}

bool PlanTrials::MaySimulate() const {
  return num_simulations() < terms_.max_simulations &&
         tries_ < kTriesPerSimulation * terms_.max_simulations;
}

bool PlanTrials::IsDone() const {
  return has_best() && best_ns() - terms_.enough_ns <= terms_.enough_ns / kEnoughPart;
}

PlanSearchResult PlanTrials::TakeResult() && { return std::move(result_); }

absl::StatusOr<PlanTrials::Verdict> PlanTrials::Try(const std::vector<Eviction>& evictions,
                                                    Want want) {
  // A rehearsal that was stopped has no status of its own.
  if (absl::Status s = stop_.status("strategy"); !s.ok()) return s;
  ++tries_;
  const uint64_t print = Fingerprint(evictions);
  if (const auto known = tried_.find(print);
      known != tried_.end() &&
      !(want == Want::kPieces && known->second.verdict == Verdict::kDoesNotFit)) {
    pieces_.clear();
    last_ = known->second;
    return last_.verdict;
  }
  last_ = Tried();
  pieces_.clear();
  if (has_best() && CopyTime(evictions) > best_ns()) {
    return Verdict::kNotBetter;  // Whether or not it fits.
  }
  auto verdict = Simulate(evictions);
  if (!verdict.ok()) return verdict;
  last_.verdict = *verdict == Verdict::kBetter ? Verdict::kNotBetter : *verdict;
  tried_[print] = last_;
  return verdict;
}

// Returns the copy time of the busier copy engine.
int64_t PlanTrials::CopyTime(const std::vector<Eviction>& evictions) const {
  int64_t in_ns = 0, out_ns = 0;
  absl::flat_hash_set<OrderBuffer> buffers;
  for (const Eviction& eviction : evictions) {
    if (planner_.Stopped()) break;  // Planning has ended.
    const Gap& gap = planner_.gaps()[eviction.gap];
    in_ns += gap.in_ns;
    if (buffers.insert(gap.buffer).second) out_ns += gap.out_ns;
  }
  return std::max(in_ns, out_ns);
}

absl::StatusOr<PlanTrials::Verdict> PlanTrials::Simulate(const std::vector<Eviction>& evictions) {
  auto swaps = planner_.Plan(evictions);
  if (!swaps.ok()) return swaps.status();
  const std::vector<ControlEdge> guards = planner_.GuardsOf(*swaps);
  plan_.controls.resize(num_base_controls_);
  plan_.controls.insert(plan_.controls.end(), guards.begin(), guards.end());
  plan_.swaps = *swaps;
  plan_.swaps.insert(plan_.swaps.end(), terms_.other_swaps.begin(), terms_.other_swaps.end());
  auto outcome = Simulate(terms_.budget_bytes, has_best() ? best_ns() : kUnlimited,
                          /*placed_alone=*/true);
  if (!outcome.ok()) return outcome.status();
  ended_early_ += outcome->is_partial || !outcome->fits;
  if (outcome->is_partial) return Verdict::kNotBetter;
  if (!outcome->fits) return Fail(*std::move(outcome), evictions);
  int64_t bytes = 0;
  for (const Eviction& eviction : evictions) bytes += planner_.gaps()[eviction.gap].bytes;
  if (has_best() && !IsWorthwhile(outcome->step_time_ns(), bytes)) return Verdict::kNotBetter;
  auto fits_varied = FitsVaried();
  if (!fits_varied.ok()) return fits_varied.status();
  if (!*fits_varied) return Verdict::kDoesNotFit;
  // Also with counted memory, and in the other sizes.
  outcome = Simulate(terms_.budget_bytes, kUnlimited, /*placed_alone=*/false);
  if (!outcome.ok()) return outcome.status();
  if (!outcome->fits) return Fail(*std::move(outcome), evictions);
  for (int64_t budget : terms_.other_budgets) {
    auto other = Simulate(budget, kUnlimited, /*placed_alone=*/true);
    if (!other.ok()) return other.status();
    if (!other->fits) return Fail(*std::move(other), evictions);
  }
  result_.plans.insert(result_.plans.begin(),
                       FoundPlan{*std::move(swaps), guards, *std::move(outcome)});
  if (result_.plans.size() > terms_.num_kept) result_.plans.pop_back();
  best_ = evictions;
  best_bytes_ = bytes;
  return Verdict::kBetter;
}

// Whether it is better than the best by enough to be worth further simulations.
bool PlanTrials::IsWorthwhile(int64_t step_time_ns, int64_t bytes) const {
  return step_time_ns < best_ns() - best_ns() / kWorthwhilePart ||
         (step_time_ns <= best_ns() && bytes < best_bytes_ - best_bytes_ / kWorthwhilePart);
}

absl::StatusOr<bool> PlanTrials::FitsVaried() {
  for (auto it = varied_steps_.begin(); it != varied_steps_.end(); ++it) {
    StepTerms terms = StepTerms::OneGpu(terms_.gpu, it->bytes);
    terms.variation = it->variation;
    terms.placed_alone = true;
    auto outcome = simulator_->Simulate(plan_, terms, stop_);
    if (!outcome.ok()) return outcome.status();
    if (outcome->fits) continue;
    std::rotate(varied_steps_.begin(), it, it + 1);  // The next plan is likely to fail here, too.
    return false;
  }
  return true;
}

absl::StatusOr<StepResult> PlanTrials::Simulate(int64_t budget_bytes, int64_t cutoff_ns,
                                                bool placed_alone) {
  ++simulations_;
  StepTerms terms = StepTerms::OneGpu(terms_.gpu, budget_bytes);
  terms.cutoff_ns = cutoff_ns;
  terms.placed_alone = placed_alone;
  terms.record_pieces = true;
  return simulator_->Simulate(plan_, terms, stop_);
}

PlanTrials::Verdict PlanTrials::Fail(StepResult outcome, const std::vector<Eviction>& evictions) {
  const OutOfMemory* oom = outcome.failure();
  if (oom != nullptr && oom->node != kNoNode && oom->device == terms_.gpu) {
    last_.at = SlotOf(*oom);
    pieces_ = std::move(outcome.pieces);
    piece_bytes_ = outcome.piece_bytes;
  }
  if (last_.at >= furthest_slot_) {
    furthest_slot_ = last_.at;
    furthest_ = evictions;
    result_.failure = std::move(outcome);
  }
  return Verdict::kDoesNotFit;
}

// Returns the slot at which the last plan ran out; for a swap-in, that of its trigger.
Slot PlanTrials::SlotOf(const OutOfMemory& oom) const {
  if (oom.kind == OpKind::kCopyIn) {
    for (const PlannedSwap& swap : plan_.swaps) {
      if (swap.tensor.node == oom.node) return order_.slot(swap.swap_ins[0].triggers[0]);
    }
    return Slot(0);
  }
  return order_.slot(oom.node) == kNoSlot ? Slot(order_.num_slots() / 2) : order_.slot(oom.node);
}

}  // namespace spillway::core
