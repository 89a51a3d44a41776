#include "rewrite_core/strategy/budget/plan_trials.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace spillway::core {
namespace {

// Plans that need not be simulated, because they were before or their copies alone take too long,
// do not count as simulations; at most this many are tried for each simulation.
constexpr int64_t kTriesPerSimulation = 4;

// A plan within 1/kFullSpeedPart of the step time with unlimited memory is not improved.
constexpr int64_t kFullSpeedPart = 2000;

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

bool PlanTrials::MaySimulate() const {
  return num_simulations() < terms_.max_simulations &&
         tries_ < kTriesPerSimulation * terms_.max_simulations;
}

bool PlanTrials::IsDone() const {
  if (!result_.best) return false;
  const int64_t time = result_.best->outcome.step_time_ns();
  return time - terms_.full_speed_ns <= terms_.full_speed_ns / kFullSpeedPart;
}

PlanSearchResult PlanTrials::TakeResult() && {
  result_.evictions = std::move(best_);
  return std::move(result_);
}

absl::StatusOr<PlanTrials::Verdict> PlanTrials::Try(const std::vector<Eviction>& evictions,
                                                    Want want) {
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
  if (result_.best && CopyTime(evictions) > result_.best->outcome.step_time_ns()) {
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
  absl::flat_hash_set<int32_t> buffers;
  for (const Eviction& eviction : evictions) {
    const Gap& gap = planner_.gaps()[eviction.gap];
    in_ns += gap.in_ns;
    if (buffers.insert(gap.buffer).second) out_ns += gap.out_ns;
  }
  return std::max(in_ns, out_ns);
}

absl::StatusOr<PlanTrials::Verdict> PlanTrials::Simulate(const std::vector<Eviction>& evictions) {
  auto swaps = planner_.Plan(evictions);
  if (!swaps.ok()) return swaps.status();
  plan_.swaps = *swaps;
  plan_.swaps.insert(plan_.swaps.end(), terms_.other_swaps.begin(), terms_.other_swaps.end());
  const int64_t best_ns = result_.best ? result_.best->outcome.step_time_ns() : kUnlimited;
  auto outcome = Simulate(terms_.budget_bytes, best_ns, /*placed_alone=*/true);
  if (!outcome.ok()) return outcome.status();
  if (outcome->is_partial) {
    ++result_.num_fitting;
    return Verdict::kNotBetter;
  }
  if (!outcome->fits) return Fail(*std::move(outcome), evictions);
  int64_t bytes = 0;
  for (const Eviction& eviction : evictions) bytes += planner_.gaps()[eviction.gap].bytes;
  if (result_.best && !IsWorthwhile(outcome->step_time_ns(), bytes)) {
    ++result_.num_fitting;
    return Verdict::kNotBetter;
  }
  auto variation = FirstUnfit();
  if (!variation.ok()) return variation.status();
  if (*variation) return Fail(**std::move(variation), evictions);
  // Also with counted memory, and in the other sizes.
  outcome = Simulate(terms_.budget_bytes, kUnlimited, /*placed_alone=*/false);
  if (!outcome.ok()) return outcome.status();
  if (!outcome->fits) return Fail(*std::move(outcome), evictions);
  for (int64_t budget : terms_.other_budgets) {
    auto other = Simulate(budget, kUnlimited, /*placed_alone=*/true);
    if (!other.ok()) return other.status();
    if (!other->fits) return Fail(*std::move(other), evictions);
  }
  ++result_.num_fitting;
  result_.best = FoundPlan{*std::move(swaps), {}, *std::move(outcome)};
  best_ = evictions;
  best_bytes_ = bytes;
  return Verdict::kBetter;
}

// Whether it is better than the best by enough to be worth further simulations.
bool PlanTrials::IsWorthwhile(int64_t step_time_ns, int64_t bytes) const {
  const int64_t best_ns = result_.best->outcome.step_time_ns();
  return step_time_ns < best_ns - best_ns / kWorthwhilePart ||
         (step_time_ns <= best_ns && bytes < best_bytes_ - best_bytes_ / kWorthwhilePart);
}

// Returns the outcome of the plan in the first variation in which it does not fit.
absl::StatusOr<absl::optional<StepResult>> PlanTrials::FirstUnfit() {
  for (auto it = varied_steps_.begin(); it != varied_steps_.end(); ++it) {
    auto varied = Simulate(it->bytes, kUnlimited, /*placed_alone=*/true, it->variation);
    if (!varied.ok()) return varied.status();
    if (varied->fits) continue;
    std::rotate(varied_steps_.begin(), it, it + 1);  // The next plan is likely to fail here, too.
    return absl::make_optional(*std::move(varied));
  }
  return absl::optional<StepResult>();
}

absl::StatusOr<StepResult> PlanTrials::Simulate(int64_t budget_bytes, int64_t cutoff_ns,
                                                bool placed_alone, const StepVariation& variation) {
  ++result_.num_simulations;
  num_varied_simulations_ += !variation.is_none();
  StepTerms terms = StepTerms::OneGpu(terms_.gpu, budget_bytes);
  terms.variation = variation;
  terms.cutoff_ns = cutoff_ns;
  terms.placed_alone = placed_alone;
  terms.record_pieces = true;
  return simulator_->Simulate(plan_, terms, stop_);
}

PlanTrials::Verdict PlanTrials::Fail(StepResult outcome, const std::vector<Eviction>& evictions) {
  const OutOfMemory* oom = outcome.failure();
  if (oom != nullptr && oom->node != kNoNode && oom->device == terms_.gpu) {
    last_.at = SlotOf(*oom);
    last_.missing_bytes = oom->missing_bytes;
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
    return 0;
  }
  return order_.slot(oom.node) == kNoSlot ? order_.num_slots() / 2 : order_.slot(oom.node);
}

}  // namespace spillway::core
