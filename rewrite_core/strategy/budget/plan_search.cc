#include "rewrite_core/strategy/budget/plan_search.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/strategy/budget/memory_rehearsal.h"
#include "rewrite_core/strategy/budget/room_window.h"

namespace spillway::core {
namespace {

// Parameters of construction, most promising first (found on networks of several kinds; the best
// differs from graph to graph).
struct Construction {
  double slack;
  int32_t gate_slots;
  double least_part;
};
constexpr Construction kConstructions[] = {
    {1.0, 0, 1.0 / 8},  {1.15, 1, 1.0 / 8},   {1.0, 1, 1.0 / 32}, {1.0, 1, 1.0 / 2},
    {1.15, 4, 1.0 / 8}, {1.15, 0, 1.0 / 128}, {1.0, 4, 1.0 / 8},
};

// Targets of rehearsed plans, as shares of the budget: memory fragments, and copies hold it for
// longer than a plan without a clock can predict. The share of a target that may be in use when
// buffers come back. Rehearsals for each allowed simulation.
constexpr double kRehearsedTargets[] = {1.0, 0.98, 0.96, 0.94, 0.92, 0.9, 0.87, 0.84, 0.8, 0.75};
constexpr double kReturnParts[] = {1.0, 0.85, 0.7};
constexpr int kRehearsalsPerSimulation = 2;
// This many of these plans are always simulated, then those that are slower than the best in
// rehearsals by less than this factor.
constexpr size_t kSimulatedAnyway = 5;
constexpr double kMaybeFaster = 1.002;

// Targets of plans without rehearsals, for each of the first kPlainConstructions: once a plan fits,
// only the first kPlainTargetsBeside of them.
constexpr double kPlainTargets[] = {1.0, 0.96, 0.9, 0.82, 0.72, 0.6, 0.45, 0.3, 0.2};
constexpr size_t kPlainTargetsBeside = 3;
constexpr size_t kPlainConstructions = 2;
// While there is no plan, then for this one, without gates.
constexpr Construction kUngated = {1.0, -1, 1.0 / 8};
// If no plan fits in rehearsals, room is made up to this many times at such a plan's failure.
constexpr int kMaxPlainRooms = 4;

// Targets are raised in a run of 1/kShortestRun to 1/kLongestRun of the step's slots, by
// 1/kMinRaise of the budget to about 1/kMaxRaise. If a plan then fails in a simulation, room is
// made up to kMaxRaiseRooms times.
constexpr int kShortestRun = 64;
constexpr int kLongestRun = 2;
constexpr int64_t kMinRaise = 256;
constexpr int64_t kMaxRaise = 16;
constexpr int kMaxRaiseRooms = 4;

// A gap that is added is called back this many slots before it ends, with this gate.
constexpr int32_t kUseAhead = 30;
constexpr int32_t kAddedGate = 1;
// A replacement has at least 1/kMinPart of the size of the buffer that it replaces.
constexpr int64_t kMinPart = 4;
constexpr int kMaxGateSlots = 9;
// If no plan fits in rehearsals, the best one is crude: 1 to 2^(kMaxKept - 1) of its gaps are kept.
constexpr int kMaxKept = 5;
constexpr int kMaxStride = 7;  // Of a trigger, in powers of two.

using Verdict = PlanTrials::Verdict;

class PlanSearch {
 public:
  PlanSearch(const PlanSearchTerms& terms, const SwapPlan& base, const BudgetPlanner& planner,
             const StepOrder& order, PlanSimulator* simulator, const StopToken& stop)
      : terms_(terms),
        planner_(planner),
        order_(order),
        stop_(stop),
        trials_(terms, base, planner, order, simulator, stop),
        rehearsed_(order, planner, terms.budget_bytes,
                   kRehearsalsPerSimulation * terms.max_simulations, stop) {}

  absl::StatusOr<PlanSearchResult> Run() {
    const absl::Status status = PlayMoves();
    const bool is_cut = GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG;
    if (!status.ok() && !(is_cut && trials_.has_best())) return status;
    PlanSearchResult result = std::move(trials_).TakeResult();
    result.cut_short = is_cut;
    return result;
  }

 private:
  struct Move {
    absl::string_view name;
    double until;  // The share of the simulations at which it ends.
    // Makes a plan and tries it. False: no plan is left to try.
    absl::StatusOr<bool> (PlanSearch::*play)();
  };
  static const Move kMoves[];

  absl::Status PlayMoves();
  absl::StatusOr<bool> RehearseTargets();
  absl::StatusOr<bool> LowerTargets();
  absl::StatusOr<bool> RaiseTargets();
  absl::StatusOr<bool> KeepGaps();
  absl::StatusOr<bool> ChangeGaps();

  // Knuth's linear congruential generator (MMIX), its upper bits: 0 to `count` - 1.
  int Random(int count) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((random_ >> 33) % static_cast<uint64_t>(count));
  }

  BudgetSetting Setting(double target, const Construction& construction) const {
    BudgetSetting setting;
    setting.targets.assign(order_.num_slots(),
                           static_cast<int64_t>(target * static_cast<double>(terms_.budget_bytes)));
    Apply(construction, &setting);
    return setting;
  }
  static void Apply(const Construction& construction, BudgetSetting* setting) {
    setting->slack = construction.slack;
    setting->gate_slots = construction.gate_slots;
    setting->least_part = construction.least_part;
  }

  // Records how the best plan so far was made.
  void Take(const BudgetSetting& setting, int64_t rehearsed_ns) {
    best_setting_ = setting;
    rehearsed_ns_ = rehearsed_ns;
  }
  void Rehearse(double target, double return_part, const Construction& construction);
  void SortCandidates();
  int64_t RehearsalCutoff() const;
  bool MakeRoom(std::vector<Eviction>* evictions) const;
  void Raise(std::vector<int64_t>* targets);
  void Change(std::vector<Eviction>* evictions);
  void SetLever(Lever lever, GapId gap, std::vector<Eviction>* evictions) const;
  GapId AnotherFor(GapId gap, const std::vector<Eviction>& evictions);

  const PlanSearchTerms& terms_;
  const BudgetPlanner& planner_;
  const StepOrder& order_;
  const StopToken& stop_;
  PlanTrials trials_;
  RehearsedPlanner rehearsed_;
  uint64_t random_ = 1;

  // Of RehearseTargets: plans that fit in rehearsals, the fastest first.
  struct Candidate {
    BudgetSetting setting;
    RehearsedPlan plan;
  };
  std::vector<Candidate> candidates_;
  size_t next_candidate_ = 0;
  bool has_candidates_ = false;
  // Of LowerTargets: the next plan's target and construction.
  size_t next_plain_ = 0, plain_construction_ = 0;
  // Of KeepGaps: the next run, among the best plan's gaps by the time of their copies. 0: the
  // first.
  size_t kept_begin_ = 0, kept_length_ = 0;

  // Of the best plan: its time in its rehearsal, 0 if it had none; and its setting, if any.
  int64_t rehearsed_ns_ = 0;
  BudgetSetting best_setting_;
};

// The shares were found with the moves before them, each changed alone
// (tests/benchmarks/README.md).
const PlanSearch::Move PlanSearch::kMoves[] = {
    {"rehearse targets", 0.3, &PlanSearch::RehearseTargets},
    {"lower targets", 0.75, &PlanSearch::LowerTargets},
    {"raise targets", 0.75, &PlanSearch::RaiseTargets},
    {"keep gaps", 1, &PlanSearch::KeepGaps},
    {"change gaps", 1, &PlanSearch::ChangeGaps},
};

absl::Status PlanSearch::PlayMoves() {
  for (const Move& move : kMoves) {
    while (trials_.MaySimulate(move.until)) {
      auto goes_on = (this->*move.play)();
      if (!goes_on.ok()) return goes_on.status();
      if (!*goes_on) break;
    }
  }
  return absl::OkStatus();
}

// Rehearses plans for all targets with the first construction, and for the fastest's target with
// all constructions; then tries those that fit there, in order of their times.
absl::StatusOr<bool> PlanSearch::RehearseTargets() {
  if (!has_candidates_) {
    has_candidates_ = true;
    for (const double target : kRehearsedTargets) {
      for (const double part : kReturnParts) Rehearse(target, part, kConstructions[0]);
    }
    if (candidates_.empty()) return false;
    SortCandidates();
    const BudgetSetting best = candidates_[0].setting;
    for (const Construction& construction : kConstructions) {
      if (!rehearsed_.MayRehearse()) break;
      BudgetSetting setting = best;
      Apply(construction, &setting);
      candidates_.push_back({setting, rehearsed_.Make(setting)});
      if (!candidates_.back().plan.fits) candidates_.pop_back();
    }
    SortCandidates();
  }
  if (next_candidate_ == candidates_.size()) return false;
  Candidate& candidate = candidates_[next_candidate_];
  if (next_candidate_++ >= kSimulatedAnyway && candidate.plan.step_time_ns > RehearsalCutoff())
    return false;
  auto verdict = trials_.Try(candidate.plan.evictions, PlanTrials::Want::kVerdict);
  if (!verdict.ok()) return verdict.status();
  if (*verdict == Verdict::kBetter) Take(candidate.setting, candidate.plan.step_time_ns);
  return true;
}

void PlanSearch::Rehearse(double target, double return_part, const Construction& construction) {
  if (!rehearsed_.MayRehearse()) return;
  BudgetSetting setting = Setting(target, construction);
  setting.return_part = return_part;
  RehearsedPlan plan = rehearsed_.Make(setting);
  if (plan.fits) candidates_.push_back({std::move(setting), std::move(plan)});
}

void PlanSearch::SortCandidates() {
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.plan.step_time_ns < b.plan.step_time_ns;
                   });
}

// Returns the time in a rehearsal above which a plan is not faster than the best so far.
int64_t PlanSearch::RehearsalCutoff() const {
  if (!trials_.has_best() || rehearsed_ns_ == 0) return kUnlimited;
  return static_cast<int64_t>(kMaybeFaster * static_cast<double>(rehearsed_ns_));
}

// Rehearsals may be wrong for this step, or too few for all targets of a long one.
absl::StatusOr<bool> PlanSearch::LowerTargets() {
  if (next_plain_ >= (trials_.has_best() ? kPlainTargetsBeside : std::size(kPlainTargets))) {
    ++plain_construction_;
    next_plain_ = 0;
  }
  if (plain_construction_ >= kPlainConstructions + !trials_.has_best()) return false;
  const Construction& construction =
      plain_construction_ < kPlainConstructions ? kConstructions[plain_construction_] : kUngated;
  const BudgetSetting setting = Setting(kPlainTargets[next_plain_++], construction);
  std::vector<Eviction> evictions = planner_.Schedule(planner_.Cover(setting), setting);
  for (int room = candidates_.empty() ? 0 : kMaxPlainRooms; trials_.MaySimulate(); ++room) {
    auto verdict = trials_.Try(evictions, PlanTrials::Want::kPieces);
    if (!verdict.ok()) return verdict.status();
    if (*verdict == Verdict::kBetter) Take(setting, /*rehearsed_ns=*/0);
    if (*verdict != Verdict::kDoesNotFit) {
      next_plain_ = std::size(kPlainTargets);  // Lower ones are slower.
      break;
    }
    if (room >= kMaxPlainRooms || !MakeRoom(&evictions)) break;
  }
  return true;
}

// If the plan for the raised targets fits in its rehearsal, and not in a simulation, makes room at
// the failure.
absl::StatusOr<bool> PlanSearch::RaiseTargets() {
  if (best_setting_.targets.empty() || planner_.gaps().empty() || !rehearsed_.MayRehearse()) {
    return false;
  }
  trials_.CountTry();
  BudgetSetting setting = best_setting_;
  Raise(&setting.targets);
  if (Random(4) == 0) Apply(kConstructions[Random(std::size(kConstructions))], &setting);
  setting.return_part = kReturnParts[Random(std::size(kReturnParts))];
  RehearsedPlan plan = rehearsed_.Make(setting);
  for (int room = 0; room < kMaxRaiseRooms && trials_.MaySimulate(); ++room) {
    if (!plan.fits || plan.step_time_ns > RehearsalCutoff()) return true;
    auto verdict = trials_.Try(plan.evictions, PlanTrials::Want::kPieces);
    if (!verdict.ok()) return verdict.status();
    if (*verdict == Verdict::kBetter) Take(setting, plan.step_time_ns);
    if (*verdict != Verdict::kDoesNotFit || !MakeRoom(&plan.evictions)) return true;
    plan = rehearsed_.Mend(std::move(plan.evictions), setting.gate_slots);
  }
  return true;
}

// Raises the targets in some run of slots, to at most the budget.
void PlanSearch::Raise(std::vector<int64_t>* targets) {
  const auto slots = static_cast<int32_t>(targets->size());
  const int32_t shortest = std::max(1, slots / kShortestRun);
  const int32_t run = shortest + Random(std::max(1, slots / kLongestRun - shortest));
  const int32_t first = Random(slots) - run / 2;
  const double range = static_cast<double>(terms_.budget_bytes / kMaxRaise);
  const int64_t by = terms_.budget_bytes / kMinRaise + 1 +
                     static_cast<int64_t>(range * Random(1 << 10) / (1 << 10));
  for (int32_t slot = std::max(0, first); slot < std::min(slots, first + run); ++slot) {
    (*targets)[slot] = std::min((*targets)[slot] + by, terms_.budget_bytes);
  }
}

// Keeps half of the best plan's gaps on the GPU, those with the longest copies first, then ever
// shorter runs of the rest, as delta debugging does (Zeller, Hildebrandt: Simplifying and Isolating
// Failure-Inducing Input, 2002): one gap may make room in several places, so that others are no
// longer needed.
absl::StatusOr<bool> PlanSearch::KeepGaps() {
  std::vector<Eviction> swapped = trials_.best();
  if (swapped.empty()) return false;
  const auto longer = [this](const Eviction& a, const Eviction& b) {
    return planner_.gaps()[a.gap].in_ns > planner_.gaps()[b.gap].in_ns;
  };
  StopPoller poll(stop_);
  PolledSort(swapped.begin(), swapped.end(), longer, &poll);  // If it was stopped, Try ends.
  if (kept_length_ == 0) kept_length_ = (swapped.size() + 1) / 2;
  if (kept_begin_ >= swapped.size()) {
    kept_begin_ = 0;
    kept_length_ /= 2;
    if (kept_length_ == 0) return false;
  }
  const size_t end = std::min(swapped.size(), kept_begin_ + kept_length_);
  swapped.erase(swapped.begin() + kept_begin_, swapped.begin() + end);
  auto verdict = trials_.Try(swapped, PlanTrials::Want::kVerdict);
  if (!verdict.ok()) return verdict.status();
  if (*verdict != Verdict::kBetter) kept_begin_ = end;
  return true;
}

// Keeps a change that makes the plan faster; while there is no plan, one that gets as far.
absl::StatusOr<bool> PlanSearch::ChangeGaps() {
  std::vector<Eviction> next = trials_.has_best() ? trials_.best() : trials_.furthest();
  if (next.empty() || planner_.gaps().empty()) return false;
  Change(&next);
  auto verdict = trials_.Try(next, PlanTrials::Want::kVerdict);
  if (!verdict.ok()) return verdict.status();
  return true;
}

// Changes the trigger, the gate or the action of one gap, or exchanges two gaps' actions. REQUIRES:
// a gap is in use.
void PlanSearch::Change(std::vector<Eviction>* evictions) {
  Eviction& eviction = (*evictions)[Random(static_cast<int>(evictions->size()))];
  const Gap& gap = planner_.gaps()[eviction.gap];
  switch (Random(6)) {
    case 0:
    case 1: {
      const int32_t stride = 1 << Random(kMaxStride);
      const Slot moved(eviction.trigger + (Random(2) == 0 ? stride : -stride));
      eviction.trigger = std::max(gap.first_trigger(), std::min(gap.last_trigger(), moved));
      return;
    }
    case 2:
      eviction.gate = Random(kMaxGateSlots);
      return;
    case 3:
      SetLever(Lever::kKeep, eviction.gap, evictions);
      if (!candidates_.empty()) return;
      for (int more = (1 << Random(kMaxKept)) - 1; more > 0 && !evictions->empty(); --more) {
        const int next = Random(static_cast<int>(evictions->size()));
        SetLever(Lever::kKeep, (*evictions)[next].gap, evictions);
      }
      return;
    case 4: {
      const GapId kept = eviction.gap, other = AnotherFor(kept, *evictions);
      if (other == kNoGap) return;
      SetLever(Lever::kKeep, kept, evictions);
      return SetLever(Lever::kSwap, other, evictions);
    }
    case 5:
      if (const GapId other = AnotherFor(eviction.gap, *evictions); other != kNoGap) {
        SetLever(Lever::kSwap, other, evictions);
      }
      return;
  }
}

// A kept gap that becomes swapped is called back shortly before it ends. REQUIRES: the gap had
// another action.
void PlanSearch::SetLever(Lever lever, GapId id, std::vector<Eviction>* evictions) const {
  const Gap& gap = planner_.gaps()[id];
  if (lever == Lever::kSwap) {
    evictions->push_back(
        {id, std::max(gap.first_trigger(), Slot(gap.before - kUseAhead)), kAddedGate});
    return;
  }
  evictions->erase(std::find_if(evictions->begin(), evictions->end(),
                                [id](const Eviction& eviction) { return eviction.gap == id; }));
}

// Returns a random gap that is kept, of a buffer not much smaller; kNoGap if the draw fails.
GapId PlanSearch::AnotherFor(GapId gap, const std::vector<Eviction>& evictions) {
  const GapId other(Random(planner_.num_gaps()));
  if (planner_.gaps()[other].bytes < planner_.gaps()[gap].bytes / kMinPart ||
      std::any_of(evictions.begin(), evictions.end(),
                  [other](const Eviction& eviction) { return eviction.gap == other; })) {
    return kNoGap;
  }
  return other;
}

// Makes room where the last plan ran out of memory by fragmentation: adjacent buffers are swapped,
// or come back later. Returns false if that cannot help.
bool PlanSearch::MakeRoom(std::vector<Eviction>* evictions) const {
  const RoomWindow window = FindRoomWindow(trials_.pieces(), trials_.piece_bytes(),
                                           trials_.last().at, *evictions, planner_);
  const absl::flat_hash_set<GapId> early(window.early.begin(), window.early.end());
  for (Eviction& eviction : *evictions) {
    if (!early.contains(eviction.gap)) continue;
    eviction.trigger =
        std::min(planner_.gaps()[eviction.gap].last_trigger(), Slot(trials_.last().at + 1));
  }
  for (GapId gap : window.added) SetLever(Lever::kSwap, gap, evictions);
  return !window.empty();
}

}  // namespace

absl::StatusOr<PlanSearchResult> SearchPlan(const PlanSearchTerms& terms, const SwapPlan& base,
                                            const BudgetPlanner& planner, const StepOrder& order,
                                            PlanSimulator* simulator, const StopToken& stop) {
  return PlanSearch(terms, base, planner, order, simulator, stop).Run();
}

}  // namespace spillway::core
