#include "rewrite_core/strategy/budget/plan_search.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/plan_changes.h"
#include "rewrite_core/strategy/budget/plan_trials.h"
#include "rewrite_core/strategy/budget/rehearsed_planner.h"
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

// Targets of plans, as shares of the budget: memory fragments, and copies hold it for longer than a
// plan without a clock can predict. The largest that fits is bisected, to kTargetStep.
constexpr double kTargets[] = {1.0, 0.96, 0.9, 0.82, 0.72, 0.6, 0.45, 0.3, 0.2};
constexpr double kTargetStep = 1.0 / 100;
constexpr size_t kBisected = 2;
// If plans are found without bisection, this many of these targets are tried.
constexpr size_t kPlainTargets = 5;

// Targets of rehearsed plans, as shares of the budget; the share of a target that may be in use
// when buffers come back; rehearsals for each allowed simulation.
constexpr double kRehearsedTargets[] = {1.0, 0.98, 0.96, 0.94, 0.92, 0.9, 0.87, 0.84, 0.8, 0.75};
constexpr double kReturnParts[] = {1.0, 0.85, 0.7};
constexpr int kRehearsalsPerSimulation = 2;
// This many of these plans are always simulated, then those that are slower than the best in
// rehearsals by less than this factor.
constexpr int kSimulatedAnyway = 5;
constexpr double kMaybeFaster = 1.002;
// Rehearsals are considered right if at least one in kRightOften plans that fit there does fit.
constexpr int kRightOften = 10;

// Targets are raised, by kFirstStep of the budget and then in steps that grow by kStepGrowth, as
// long as evicting adjacent buffers makes room where the plan does not fit, within kRoomSimulations
// simulations; fewer when targets are raised at random.
constexpr double kFirstStep = 0.02;
constexpr double kStepGrowth = 1.5;
constexpr int kRoomSimulations = 8;
constexpr int kRaiseRoomSimulations = 4;

// The start plan gets up to kMaxVaried small changes at a time, and room is made up to
// kMaxStartRooms times where it runs out of memory, within this share of the simulations.
constexpr int kMaxVaried = 4;
constexpr int kMaxStartRooms = 4;
constexpr double kVaryShare = 0.6;

// Instead of lowering the target everywhere, a plan may be repaired where it ran out of memory: the
// target is lowered on either side, within this fraction of the step's slots, at most kMaxMends
// times, by the missing bytes, clamped to between 1/kMinMend and 1/kMaxMend of the budget, and by
// more with each repair.
constexpr double kWidths[] = {0.1, 0.03};
constexpr int kMaxMends = 24;
constexpr int64_t kMinMend = 200;
constexpr int64_t kMaxMend = 50;
constexpr int kMendsToDouble = 10;
constexpr Slot kMinWidth = 3;

// Plans that do not fit after targets are raised at random are repaired at most this many times.
constexpr int kRaiseMends = 3;
// In percent: how often room is made, instead of lowering targets; and how often a buffer that is
// away to make room is left resident.
constexpr int kRoomChance = 50;
constexpr int kStayChance = 10;

// The shares of the simulations after which each phase ends: rehearsed plans; constructions while
// there is a plan, and while there is none; raising targets.
constexpr double kRehearsedShare = 0.3;
constexpr double kConstructionShare = 0.5;
constexpr double kVainShare = 0.75;
constexpr double kRaiseShare = 0.75;

// The gate of gaps that make room for a change.
constexpr int32_t kChangedGate = 1;

using Verdict = PlanTrials::Verdict;

class PlanSearch {
 public:
  PlanSearch(const PlanSearchTerms& terms, const SwapPlan& base, const BudgetPlanner& planner,
             const StepOrder& order, PlanSimulator* simulator, const StopToken& stop)
      : terms_(terms),
        planner_(planner),
        order_(order),
        trials_(terms, base, planner, order, simulator, stop),
        changes_(planner),
        rehearsed_(order, planner, terms.budget_bytes,
                   kRehearsalsPerSimulation * terms.max_simulations, stop) {}

  absl::StatusOr<PlanSearchResult> Run() {
    absl::Status status = VaryStart();
    if (status.ok()) status = PlayRehearsed();
    if (status.ok()) status = are_right_ ? ConstructPlain() : Construct();
    if (status.ok() && !planner_.gaps().empty()) status = RaiseTargets();
    if (status.ok() && !planner_.gaps().empty()) status = ChangeBuffers();
    const bool is_cut = GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG;
    if (!status.ok() && !(is_cut && trials_.has_best())) return status;
    PlanSearchResult result = std::move(trials_).TakeResult();
    result.cut_short = is_cut;
    return result;
  }

 private:
  bool MayConstruct() const {
    return !trials_.IsDone() &&
           trials_.MaySimulate(trials_.has_best() ? kConstructionShare : kVainShare);
  }

  BudgetSetting Setting(double target, const Construction& construction) const {
    BudgetSetting setting;
    setting.targets.assign(order_.num_slots(),
                           static_cast<int64_t>(target * static_cast<double>(terms_.budget_bytes)));
    setting.slack = construction.slack;
    setting.gate_slots = construction.gate_slots;
    setting.least_part = construction.least_part;
    return setting;
  }

  std::vector<Eviction> Evictions(const BudgetSetting& setting) const {
    return planner_.Schedule(planner_.Cover(setting), setting);
  }

  struct Candidate {
    double target, return_part;
    const Construction* construction;
    RehearsedPlan plan;
  };

  BudgetSetting SettingOf(const Candidate& candidate) const {
    BudgetSetting setting = Setting(candidate.target, *candidate.construction);
    setting.return_part = candidate.return_part;
    return setting;
  }

  // Tries the plans that fit in their rehearsals, in order of their times there.
  absl::Status PlayRehearsed() {
    std::vector<Candidate> candidates;
    const auto rehearse = [&](double target, double part, const Construction& construction) {
      Candidate candidate{target, part, &construction, {}};
      if (!rehearsed_.MayRehearse()) return;
      candidate.plan = rehearsed_.Make(SettingOf(candidate));
      if (candidate.plan.fits) candidates.push_back(std::move(candidate));
    };
    const auto faster = [](const Candidate& a, const Candidate& b) {
      return a.plan.step_time_ns < b.plan.step_time_ns;
    };
    for (const double target : kRehearsedTargets) {
      for (const double part : kReturnParts) rehearse(target, part, kConstructions[0]);
    }
    if (candidates.empty()) return absl::OkStatus();
    std::stable_sort(candidates.begin(), candidates.end(), faster);
    const double target = candidates.front().target, part = candidates.front().return_part;
    for (const Construction& construction : kConstructions) rehearse(target, part, construction);
    std::stable_sort(candidates.begin(), candidates.end(), faster);
    int simulated = 0, fitting = 0;
    for (size_t i = 0; i < candidates.size() && trials_.MaySimulate(kRehearsedShare); ++i) {
      if (i >= kSimulatedAnyway && !MayBeFaster(candidates[i].plan)) break;
      auto verdict = trials_.Try(candidates[i].plan.evictions, PlanTrials::Want::kVerdict);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter) Take(SettingOf(candidates[i]), candidates[i].plan);
      ++simulated;
      fitting += *verdict != Verdict::kDoesNotFit;
    }
    are_right_ = fitting > 0 && kRightOften * fitting >= simulated;
    return absl::OkStatus();
  }

  // Records how the best plan so far was made.
  void Take(BudgetSetting setting, const RehearsedPlan& plan) {
    best_setting_ = std::move(setting);
    rehearsed_ns_ = plan.step_time_ns;
  }

  // Whether the plan may be faster than the best so far, judging by rehearsals.
  bool MayBeFaster(const RehearsedPlan& plan) const {
    return !trials_.has_best() || rehearsed_ns_ == 0 ||
           static_cast<double>(plan.step_time_ns) <
               kMaybeFaster * static_cast<double>(rehearsed_ns_);
  }

  // Tries the setting, if its plan fits in its rehearsal and may be faster there.
  absl::Status PlayIfRehearsed(BudgetSetting setting) {
    RehearsedPlan plan = rehearsed_.Make(setting);
    for (int i = 0; i < kRaiseRoomSimulations && trials_.MaySimulate(); ++i) {
      if (!plan.fits || !MayBeFaster(plan)) return absl::OkStatus();
      auto verdict = trials_.Try(plan.evictions, PlanTrials::Want::kPieces);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter) Take(std::move(setting), plan);
      if (*verdict != Verdict::kDoesNotFit) return absl::OkStatus();
      if (!MakeRoom(setting.gate_slots, &plan.evictions)) return absl::OkStatus();
      plan = rehearsed_.Mend(std::move(plan.evictions), setting.gate_slots);
    }
    return absl::OkStatus();
  }

  // Makes room where the last plan ran out of memory by fragmentation; returns false if nothing
  // can.
  bool MakeRoom(int32_t gate_slots, std::vector<Eviction>* evictions) const {
    const RoomWindow window = FindRoomWindow(trials_.pieces(), trials_.piece_bytes(),
                                             trials_.last().at, *evictions, planner_);
    Postpone(window.early, evictions);
    for (int32_t index : window.added) {
      const Gap& gap = planner_.gaps()[index];
      const Slot in_time = order_.last_ended_by(order_.begin_ns(gap.before) - gap.in_ns);
      evictions->push_back(
          {index, std::min(gap.before - 1, std::max(trials_.last().at, in_time)), gate_slots});
    }
    return !window.empty();
  }

  absl::StatusOr<Verdict> JudgeTarget(double target, const Construction& construction) {
    BudgetSetting setting = Setting(target, construction);
    auto verdict = trials_.Try(Evictions(setting), PlanTrials::Want::kVerdict);
    if (verdict.ok() && *verdict == Verdict::kBetter) best_setting_ = std::move(setting);
    return verdict;
  }

  // A plan that fits except in some of the varied steps fails there by chance: which chunks are
  // free depends on every detail. So the buffers in the way are swapped, too, and plans that differ
  // a little are likely to run out elsewhere, or nowhere.
  absl::Status VaryStart() {
    std::vector<Eviction> next = terms_.start;
    for (int room = 0; !next.empty() && !trials_.has_best() && trials_.MaySimulate(kVaryShare);
         ++room) {
      auto verdict = trials_.Try(next, PlanTrials::Want::kPieces);
      if (!verdict.ok()) return verdict.status();
      if (room < kMaxStartRooms && *verdict == Verdict::kDoesNotFit && MakeRoomIn(&next)) continue;
      room = -1;
      next = terms_.start;
      for (int i = changes_.Random(kMaxVaried); i >= 0 && !next.empty(); --i)
        changes_.Change(&next);
    }
    return absl::OkStatus();
  }

  // Makes room in `evictions` where the last plan ran out, by swapping adjacent buffers; returns
  // false if that cannot help.
  bool MakeRoomIn(std::vector<Eviction>* evictions) const {
    const RoomWindow window = FindRoomWindow(trials_.pieces(), trials_.piece_bytes(),
                                             trials_.last().at, *evictions, planner_);
    Postpone(window.early, evictions);
    for (int32_t gap : window.added) evictions->push_back(changes_.Use(gap, 1));
    return !window.empty();
  }

  // Makes these buffers come back only after the slot where the last plan ran out.
  void Postpone(const std::vector<int32_t>& gaps, std::vector<Eviction>* evictions) const {
    for (Eviction& eviction : *evictions) {
      if (std::count(gaps.begin(), gaps.end(), eviction.gap) == 0) continue;
      eviction.trigger = std::min(planner_.gaps()[eviction.gap].before - 1, trials_.last().at + 1);
    }
  }

  // Tries plans without rehearsals, which may be wrong for this step: the first ones that fit.
  absl::Status ConstructPlain() {
    for (size_t i = 0; i < kBisected; ++i) {
      for (size_t t = 0; t < kPlainTargets && MayConstruct(); ++t) {
        auto verdict = JudgeTarget(kTargets[t], kConstructions[i]);
        if (!verdict.ok()) return verdict.status();
        if (*verdict != Verdict::kDoesNotFit) break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Construct() {
    double best_target = 1;
    for (size_t i = 0; i < std::size(kConstructions) && MayConstruct(); ++i) {
      if (i >= kBisected && trials_.has_best()) {
        auto verdict = JudgeTarget(best_target, kConstructions[i]);
        if (!verdict.ok()) return verdict.status();
        continue;
      }
      auto target = LargestTarget(kConstructions[i]);
      if (!target.ok()) return target.status();
      if (*target > 0) best_target = *target;
      if (i >= kBisected) continue;
      double step = kFirstStep;
      for (double aim = best_target + step; aim <= 1 && MayConstruct(); aim += step) {
        auto verdict = MakeRoomFor(Setting(aim, kConstructions[i]), kRoomSimulations);
        if (!verdict.ok()) return verdict.status();
        if (*verdict == Verdict::kDoesNotFit) break;
        step *= kStepGrowth;
      }
    }
    for (const double width : kWidths) {
      for (size_t i = 0; i < kBisected && !trials_.has_best() && MayConstruct(); ++i) {
        absl::Status s = MendFrom(Setting(1, kConstructions[i]), width, kMaxMends);
        if (!s.ok()) return s;
      }
    }
    return absl::OkStatus();
  }

  // Returns approximately the largest target, as a share of the budget, with which a plan fits; 0
  // if none is found.
  absl::StatusOr<double> LargestTarget(const Construction& construction) {
    double fits = 0, does_not_fit = 0;
    for (const double target : kTargets) {
      if (!trials_.MaySimulate()) return 0.0;
      auto verdict = JudgeTarget(target, construction);
      if (!verdict.ok()) return verdict.status();
      if (*verdict != Verdict::kDoesNotFit) {
        fits = target;
        break;
      }
      does_not_fit = target;
    }
    while (fits > 0 && does_not_fit - fits > kTargetStep && trials_.MaySimulate()) {
      const double target = (fits + does_not_fit) / 2;
      auto verdict = JudgeTarget(target, construction);
      if (!verdict.ok()) return verdict.status();
      (*verdict == Verdict::kDoesNotFit ? does_not_fit : fits) = target;
    }
    return fits;
  }

  // Plans with the setting; if the plan does not fit, lowers targets where it ran out, repeatedly.
  absl::Status MendFrom(BudgetSetting setting, double width, int max_mends) {
    std::vector<Eviction> evictions = Evictions(setting);
    for (int mend = 0;; ++mend) {
      auto verdict = trials_.Try(evictions, PlanTrials::Want::kVerdict);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter) best_setting_ = std::move(setting);
      if (*verdict != Verdict::kDoesNotFit || mend == max_mends || !trials_.MaySimulate() ||
          !Mend(width, mend, &evictions, &setting)) {
        return absl::OkStatus();
      }
    }
  }

  // Plans with the setting; if the plan does not fit, makes room with adjacent buffers, repeatedly.
  absl::StatusOr<Verdict> MakeRoomFor(BudgetSetting setting, int max_simulations) {
    const int64_t end = trials_.num_simulations() + max_simulations;
    while (true) {
      const std::vector<Eviction> evictions = Evictions(setting);
      auto verdict = trials_.Try(evictions, PlanTrials::Want::kPieces);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter) best_setting_ = std::move(setting);
      if (*verdict != Verdict::kDoesNotFit || !trials_.MaySimulate() ||
          trials_.num_simulations() >= end) {
        return verdict;
      }
      const RoomWindow window = FindRoomWindow(trials_.pieces(), trials_.piece_bytes(),
                                               trials_.last().at, evictions, planner_);
      if (window.empty()) return verdict;
      setting.forced.insert(window.added.begin(), window.added.end());
      for (int32_t gap : window.early) setting.not_before[gap] = trials_.last().at + 1;
    }
  }

  // Lowers the targets where the last plan ran out, until other gaps are chosen, or buffers come
  // back later; returns false if that cannot help.
  bool Mend(double width, int mend, std::vector<Eviction>* evictions,
            BudgetSetting* setting) const {
    if (trials_.last().at == kNoSlot) return false;
    const Slot slots = order_.num_slots();
    const Slot reach = std::max(kMinWidth, static_cast<Slot>(width * slots));
    const Slot end = std::min(slots, trials_.last().at + reach + 1);
    const int64_t least = terms_.budget_bytes / kMinMend + 1;
    const int64_t most = terms_.budget_bytes / kMaxMend;
    int64_t by = std::max(least, std::min(trials_.last().missing_bytes, most));
    by += by * mend / kMendsToDouble;
    for (int64_t lowered = 0; lowered < terms_.budget_bytes; lowered += by, by *= 2) {
      for (Slot slot = std::max(0, trials_.last().at - reach); slot < end; ++slot) {
        setting->targets[slot] -= by;
      }
      std::vector<Eviction> others = Evictions(*setting);
      if (others == *evictions) continue;
      *evictions = std::move(others);
      return true;
    }
    return false;
  }

  // Starting from the best plan's setting, raises the targets in a random run of slots; if the plan
  // then does not fit, makes room or lowers targets.
  absl::Status RaiseTargets() {
    while (!best_setting_.targets.empty() && trials_.MaySimulate(kRaiseShare)) {
      trials_.CountTry();
      BudgetSetting setting = best_setting_;
      changes_.Raise(terms_.budget_bytes, &setting.targets);
      if (changes_.Random(4) == 0) {
        const Construction& other = kConstructions[changes_.Random(std::size(kConstructions))];
        setting.slack = other.slack;
        setting.gate_slots = other.gate_slots;
        setting.least_part = other.least_part;
      }
      for (auto gap = setting.forced.begin(); gap != setting.forced.end();) {
        gap = changes_.Random(100) < kStayChance ? setting.forced.erase(gap) : std::next(gap);
      }
      absl::Status status;
      if (rehearsed_.MayRehearse() && changes_.Random(2) == 0) {
        setting.return_part = kReturnParts[changes_.Random(std::size(kReturnParts))];
        status = PlayIfRehearsed(std::move(setting));
      } else if (changes_.Random(100) < kRoomChance) {
        status = MakeRoomFor(std::move(setting), kRaiseRoomSimulations).status();
      } else {
        status =
            MendFrom(std::move(setting), kWidths[changes_.Random(std::size(kWidths))], kRaiseMends);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Makes small random changes, and keeps those that do not make the plan slower; while there is no
  // plan, those that get as far.
  absl::Status ChangeBuffers() {
    while (trials_.MaySimulate() && !trials_.IsDone()) {
      trials_.CountTry();
      std::vector<Eviction> next = trials_.has_best() ? trials_.best() : trials_.furthest();
      if (next.empty()) return absl::OkStatus();
      const int changes = 1 + changes_.Random(2);
      for (int i = 0; i < changes && !next.empty(); ++i) changes_.Change(&next);
      RehearsedPlan plan;
      if (rehearsed_.MayRehearse()) {
        plan = rehearsed_.Mend(std::move(next), kChangedGate);
        if (!plan.fits || !MayBeFaster(plan)) continue;
        next = plan.evictions;
      }
      auto verdict = trials_.Try(next, PlanTrials::Want::kVerdict);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter && plan.fits) rehearsed_ns_ = plan.step_time_ns;
    }
    return absl::OkStatus();
  }

  const PlanSearchTerms& terms_;
  const BudgetPlanner& planner_;
  const StepOrder& order_;
  PlanTrials trials_;
  PlanChanges changes_;
  RehearsedPlanner rehearsed_;
  bool are_right_ = false;      // Whether rehearsals of this step usually are.
  int64_t rehearsed_ns_ = 0;    // The best plan's time in its rehearsal; 0: it had none.
  BudgetSetting best_setting_;  // Of the best plan that was constructed, if any.
};

}  // namespace

absl::StatusOr<PlanSearchResult> SearchPlan(const PlanSearchTerms& terms, const SwapPlan& base,
                                            const BudgetPlanner& planner, const StepOrder& order,
                                            PlanSimulator* simulator, const StopToken& stop) {
  return PlanSearch(terms, base, planner, order, simulator, stop).Run();
}

}  // namespace spillway::core
