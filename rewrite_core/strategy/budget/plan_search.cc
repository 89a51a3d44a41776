#include "rewrite_core/strategy/budget/plan_search.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

// How plans are constructed, most promising first (found on networks of several kinds; which is
// best differs from graph to graph).
struct Pacing {
  double slack;
  int32_t gate_slots;
};
constexpr Pacing kPacings[] = {{1.0, 0}, {1.15, 1}, {1.0, 1}, {1.15, 4}, {1.0, 4}, {1.15, 0}};

// What plans aim at, of the budget: memory is in pieces, and copies take it for longer than a plan
// without a clock can say. The largest that fits is bisected, to one part in so many.
constexpr double kTargets[] = {1.0, 0.97, 0.93, 0.87, 0.79, 0.68, 0.55, 0.4};
constexpr double kTargetStep = 1.0 / 128;
constexpr size_t kBisectedPacings = 2;

// Instead of aiming at less everywhere, a plan may be mended where it ran out of memory: the target
// is lowered in so much of the step to either side. At most so often; by at least a part of the
// budget, and by at most another, each larger the longer it takes.
constexpr double kWidths[] = {0.1, 0.03};
constexpr int kMaxMends = 24;
constexpr int64_t kLeastMend = 200;
constexpr int64_t kMostMend = 50;
constexpr int kMendsToDouble = 10;
constexpr Slot kLeastWidth = 3;

// At most this part of the plays is for constructions, while there is a plan; and while there is
// none.
constexpr double kConstructionShare = 0.5;
constexpr double kVainShare = 0.75;

// As fast as with memory without end, but for one part in so many: nothing is left to gain.
constexpr int64_t kFullSpeedPart = 2000;

// A buffer that is taken out by chance comes back so many slots before it is used.
constexpr Slot kChanceAhead = 30;
// Of at least this part of the bytes that it stands in for.
constexpr int64_t kChanceLeast = 4;
constexpr int kMaxGateSlots = 9;
constexpr int kMaxStride = 7;  // Powers of two.

class PlanSearch {
 public:
  PlanSearch(const PlanSearchTerms& terms, const SwapPlan& base, const BudgetPlanner& planner,
             const StepOrder& order, PlanSimulator* simulator, const StopToken& stop)
      : terms_(terms),
        planner_(planner),
        order_(order),
        simulator_(simulator),
        stop_(stop),
        plan_(base) {}

  absl::StatusOr<PlanSearchResult> Run() {
    absl::Status status = Construct();
    if (status.ok()) status = Improve();
    if (GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG && result_.best) {
      result_.cut_short = true;
      status = absl::OkStatus();
    }
    if (!status.ok()) return status;
    return std::move(result_);
  }

 private:
  enum class Verdict { kBetter, kNotBetter, kDoesNotFit };

  bool MayPlay() const { return result_.num_plays < terms_.max_plays; }

  bool IsDone() const {
    if (!result_.best) return false;
    const int64_t time = result_.best->outcome.step_time_ns();
    return time - terms_.full_speed_ns <= terms_.full_speed_ns / kFullSpeedPart;
  }

  bool MayConstruct() const {
    return MayPlay() && !IsDone() &&
           result_.num_plays <= (result_.best ? kConstructionShare : kVainShare) * terms_.max_plays;
  }

  BudgetSetting Setting(double target, const Pacing& pacing) const {
    BudgetSetting setting;
    setting.target_bytes = static_cast<int64_t>(target * static_cast<double>(terms_.budget_bytes));
    setting.slack = pacing.slack;
    setting.gate_slots = pacing.gate_slots;
    setting.lowered.assign(order_.num_slots(), 0);
    return setting;
  }

  absl::StatusOr<Verdict> JudgeTarget(double target, const Pacing& pacing) {
    const BudgetSetting setting = Setting(target, pacing);
    return Judge(planner_.Schedule(planner_.Cover(setting), setting));
  }

  absl::Status Construct() {
    if (order_.num_slots() == 0) return absl::OkStatus();
    double best_target = 1;
    for (size_t i = 0; i < std::size(kPacings) && MayConstruct(); ++i) {
      if (i >= kBisectedPacings && result_.best) {
        if (auto verdict = JudgeTarget(best_target, kPacings[i]); !verdict.ok()) {
          return verdict.status();
        }
        continue;
      }
      auto target = LargestTarget(kPacings[i]);
      if (!target.ok()) return target.status();
      if (*target > 0) best_target = *target;
    }
    for (const double width : kWidths) {
      for (size_t i = 0; i < kBisectedPacings && MayConstruct(); ++i) {
        BudgetSetting setting = Setting(1, kPacings[i]);
        std::vector<Away> aways = planner_.Schedule(planner_.Cover(setting), setting);
        for (int mend = 0; mend < kMaxMends && MayConstruct(); ++mend) {
          auto verdict = Judge(aways);
          if (!verdict.ok()) return verdict.status();
          if (*verdict != Verdict::kDoesNotFit) break;
          if (!Mend(width, mend, &aways, &setting)) break;
        }
      }
    }
    return absl::OkStatus();
  }

  // The largest share of the budget that a plan may aim at and fit, about; 0: none was found.
  absl::StatusOr<double> LargestTarget(const Pacing& pacing) {
    double fits = 0, does_not_fit = 0;
    for (const double target : kTargets) {
      if (!MayPlay()) return 0.0;
      auto verdict = JudgeTarget(target, pacing);
      if (!verdict.ok()) return verdict.status();
      if (*verdict != Verdict::kDoesNotFit) {
        fits = target;
        break;
      }
      does_not_fit = target;
    }
    while (fits > 0 && does_not_fit - fits > kTargetStep && MayPlay()) {
      const double target = (fits + does_not_fit) / 2;
      auto verdict = JudgeTarget(target, pacing);
      if (!verdict.ok()) return verdict.status();
      (*verdict == Verdict::kDoesNotFit ? does_not_fit : fits) = target;
    }
    return fits;
  }

  // Lowers the target where the last plan ran out, until others are chosen, or come back later;
  // false if that cannot help.
  bool Mend(double width, int mend, std::vector<Away>* aways, BudgetSetting* setting) const {
    const OutOfMemory* oom = last_failure_.failure();
    if (oom == nullptr || oom->node == kNoNode || oom->device < 0) return false;
    const Slot slots = order_.num_slots();
    const Slot at = SlotOf(*oom);
    const Slot reach = std::max(kLeastWidth, static_cast<Slot>(width * slots));
    const Slot end = std::min(slots, at + reach + 1);
    const int64_t least = terms_.budget_bytes / kLeastMend + 1;
    const int64_t most = terms_.budget_bytes / kMostMend;
    int64_t by = std::max(least, std::min(oom->missing_bytes, most));
    by += by * mend / kMendsToDouble;
    for (int64_t lowered = 0; lowered < terms_.budget_bytes; lowered += by, by *= 2) {
      for (Slot slot = std::max(0, at - reach); slot < end; ++slot) setting->lowered[slot] += by;
      std::vector<Away> others = planner_.Schedule(planner_.Cover(*setting), *setting);
      if (others == *aways) continue;
      *aways = std::move(others);
      return true;
    }
    return false;
  }

  // Where in the order the last plan ran out: a swap-in does behind its trigger.
  Slot SlotOf(const OutOfMemory& oom) const {
    if (oom.kind == OpKind::kCopyIn) {
      for (const PlannedSwap& swap : plan_.swaps) {
        if (swap.tensor.node == oom.node) return order_.slot(swap.swap_ins[0].triggers[0]);
      }
      return 0;
    }
    return order_.slot(oom.node) == kNoSlot ? order_.num_slots() / 2 : order_.slot(oom.node);
  }

  // Simulates the plan, and keeps it if it is better than the best.
  absl::StatusOr<Verdict> Judge(const std::vector<Away>& aways) {
    auto swaps = planner_.Plan(aways);
    if (!swaps.ok()) return swaps.status();
    plan_.swaps = *std::move(swaps);
    const int64_t best_ns = result_.best ? result_.best->outcome.step_time_ns() : kUnlimited;
    auto outcome = Play(terms_.budget_bytes, best_ns);
    if (!outcome.ok()) return outcome.status();
    if (outcome->is_partial) {
      ++result_.num_fitting;
      return Verdict::kNotBetter;
    }
    if (!outcome->fits) return Fail(*std::move(outcome), aways);
    ++result_.num_fitting;
    int64_t bytes = 0;
    for (const Away& away : aways) bytes += planner_.gaps()[away.gap].bytes;
    const int64_t time_ns = outcome->step_time_ns();
    if (result_.best && std::make_pair(time_ns, bytes) > std::make_pair(best_ns, best_bytes_)) {
      return Verdict::kNotBetter;
    }
    for (int64_t budget : terms_.other_budgets) {
      auto other = Play(budget, kUnlimited);
      if (!other.ok()) return other.status();
      if (!other->fits) return Fail(*std::move(other), aways);
    }
    result_.best = FoundPlan{plan_.swaps, *std::move(outcome)};
    best_ = aways;
    best_bytes_ = bytes;
    return Verdict::kBetter;
  }

  absl::StatusOr<StepResult> Play(int64_t budget_bytes, int64_t cutoff_ns) {
    ++result_.num_plays;
    StepTerms terms = StepTerms::OneGpu(terms_.gpu, budget_bytes);
    terms.cutoff_ns = cutoff_ns;
    return simulator_->Simulate(plan_, terms, stop_);
  }

  Verdict Fail(StepResult outcome, const std::vector<Away>& aways) {
    last_failure_ = std::move(outcome);
    const OutOfMemory* oom = last_failure_.failure();
    const Slot slot = oom == nullptr || oom->node == kNoNode ? kNoSlot : SlotOf(*oom);
    if (slot >= furthest_slot_) {
      furthest_slot_ = slot;
      furthest_ = aways;
      result_.failure = last_failure_;
    }
    return Verdict::kDoesNotFit;
  }

  // Small changes by chance: those that do not make it slower are kept; while there is no plan,
  // those that get as far.
  absl::Status Improve() {
    if (planner_.gaps().empty()) return absl::OkStatus();
    while (MayPlay() && !IsDone()) {
      std::vector<Away> next = result_.best ? best_ : furthest_;
      if (next.empty()) return absl::OkStatus();
      const int changes = 1 + Random(2);
      for (int i = 0; i < changes && !next.empty(); ++i) Change(&next);
      if (auto verdict = Judge(next); !verdict.ok()) return verdict.status();
    }
    return absl::OkStatus();
  }

  void Change(std::vector<Away>* aways) {
    const int which = Random(static_cast<int>(aways->size()));
    Away& away = (*aways)[which];
    const Gap& gap = planner_.gaps()[away.gap];
    switch (Random(6)) {
      case 0:
      case 1: {
        const Slot stride = 1 << Random(kMaxStride);
        away.trigger += Random(2) == 0 ? stride : -stride;
        away.trigger = std::max(gap.after, std::min(gap.before - 1, away.trigger));
        return;
      }
      case 2:
        away.gate = Random(kMaxGateSlots);
        return;
      case 3:
        aways->erase(aways->begin() + which);
        return;
      case 4:  // Another in its place.
        if (const int other = AnotherFor(gap, *aways); other >= 0) away = Chance(other, away.gate);
        return;
      case 5:  // One more.
        if (const int other = AnotherFor(gap, *aways); other >= 0) {
          aways->push_back(Chance(other, 1));
        }
        return;
    }
  }

  Away Chance(int gap, int32_t gate) const {
    const Gap& taken = planner_.gaps()[gap];
    return {gap, std::max(taken.after, taken.before - kChanceAhead), gate};
  }

  // A gap by chance that is not among them, of a buffer not much smaller; -1.
  int AnotherFor(const Gap& gap, const std::vector<Away>& aways) {
    const int other = Random(static_cast<int>(planner_.gaps().size()));
    if (planner_.gaps()[other].bytes < gap.bytes / kChanceLeast ||
        std::any_of(aways.begin(), aways.end(),
                    [other](const Away& away) { return away.gap == other; })) {
      return -1;
    }
    return other;
  }

  // Knuth's linear congruential generator (MMIX), its upper bits.
  int Random(int count) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((random_ >> 33) % static_cast<uint64_t>(count));
  }

  static constexpr Slot kNoneYet = std::numeric_limits<Slot>::min();

  const PlanSearchTerms& terms_;
  const BudgetPlanner& planner_;
  const StepOrder& order_;
  PlanSimulator* const simulator_;
  const StopToken& stop_;
  SwapPlan plan_;  // The base, and the swaps that are judged.
  std::vector<Away> best_;
  int64_t best_bytes_ = 0;  // That travel in it, one way.
  StepResult last_failure_;
  std::vector<Away> furthest_;  // Of the plans that do not fit.
  Slot furthest_slot_ = kNoneYet;
  uint64_t random_ = 1;
  PlanSearchResult result_;
};

}  // namespace

absl::StatusOr<PlanSearchResult> SearchPlan(const PlanSearchTerms& terms, const SwapPlan& base,
                                            const BudgetPlanner& planner, const StepOrder& order,
                                            PlanSimulator* simulator, const StopToken& stop) {
  return PlanSearch(terms, base, planner, order, simulator, stop).Run();
}

}  // namespace spillway::core
