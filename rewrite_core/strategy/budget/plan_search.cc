#include "rewrite_core/strategy/budget/plan_search.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/plan_changes.h"
#include "rewrite_core/strategy/budget/rehearsed_planner.h"
#include "rewrite_core/strategy/budget/room_window.h"

namespace spillway::core {
namespace {

// How plans are constructed, most promising first (found on networks of several kinds; which is
// best differs from graph to graph).
struct Construction {
  double slack;
  int32_t gate_slots;
  double least_part;
};
constexpr Construction kConstructions[] = {
    {1.0, 0, 1.0 / 8},  {1.15, 1, 1.0 / 8},   {1.0, 1, 1.0 / 32}, {1.0, 1, 1.0 / 2},
    {1.15, 4, 1.0 / 8}, {1.15, 0, 1.0 / 128}, {1.0, 4, 1.0 / 8},
};

// What plans aim at, of the budget: memory is in pieces, and copies take it for longer than a plan
// without a clock can say. The largest that fits is bisected, to one part in so many.
constexpr double kTargets[] = {1.0, 0.96, 0.9, 0.82, 0.72, 0.6, 0.45, 0.3, 0.2};
constexpr double kTargetStep = 1.0 / 100;
constexpr size_t kBisected = 2;
// Where plans are found without that, so many of these targets are tried.
constexpr size_t kPlainTargets = 5;

// What plans that are rehearsed aim at, of the budget; and of that, what may be in use when buffers
// come back. Rehearsals for each play that there may be.
constexpr double kRehearsedTargets[] = {1.0, 0.98, 0.96, 0.94, 0.92, 0.9, 0.87, 0.84, 0.8, 0.75};
constexpr double kReturnParts[] = {1.0, 0.85, 0.7};
constexpr int kRehearsalsPerPlay = 2;
// Of these plans so many are played in any case, and then those that may be slower by a part.
constexpr int kPlayedAnyway = 5;
constexpr double kMaybeFaster = 1.002;
// Rehearsals are right where one of so many plans that fit there does.
constexpr int kRightOften = 10;

// More is asked for, by this much of the budget and then in larger steps, as long as buffers that
// lie side by side can make room where the plan does not fit: in at most so many plays. When
// targets are raised by chance, in fewer.
constexpr double kFirstStep = 0.02;
constexpr double kStepGrowth = 1.5;
constexpr int kRoomPlays = 8;
constexpr int kRaiseRoomPlays = 4;

// Of a plan that is nearly as wanted, up to so many small changes at once, and so often room where
// it runs out, in at most this part of the plays.
constexpr int kMostVaried = 4;
constexpr int kMostStartRooms = 4;
constexpr double kVaryShare = 0.6;

// Instead of aiming at less everywhere, a plan may be mended where it ran out of memory: the target
// is lowered in so much of the step to either side. At most so often; by at least a part of the
// budget, and by at most another, each larger the longer it takes.
constexpr double kWidths[] = {0.1, 0.03};
constexpr int kMaxMends = 24;
constexpr int64_t kLeastMend = 200;
constexpr int64_t kMostMend = 50;
constexpr int kMendsToDouble = 10;
constexpr Slot kLeastWidth = 3;

// Where targets are raised by chance, what does not fit then is mended so often.
constexpr int kRaiseMends = 3;
// In per cent: how often room is made, instead of lowering targets; and how often a buffer that is
// away to make room is let stay.
constexpr int kRoomChance = 50;
constexpr int kStayChance = 10;

// At most this part of the plays is for constructions, while there is a plan; and while there is
// none. Then up to that part targets are raised.
constexpr double kRehearsedShare = 0.3;
constexpr double kConstructionShare = 0.5;
constexpr double kVainShare = 0.75;
constexpr double kRaiseShare = 0.75;

// Plans that need not be simulated, because they were or because their copies alone take too long,
// are no plays; of so many for each play it is enough.
constexpr int64_t kTriesPerPlay = 4;

// As fast as with memory without end, but for one part in so many: nothing is left to gain.
constexpr int64_t kFullSpeedPart = 2000;

// Faster, or as fast with fewer bytes, by less than one part in so many is no better.
constexpr int64_t kWorthwhilePart = 2000;

// The gates of what makes room for a change.
constexpr int32_t kChangedGate = 1;

class PlanSearch {
 public:
  PlanSearch(const PlanSearchTerms& terms, const SwapPlan& base, const BudgetPlanner& planner,
             const StepOrder& order, PlanSimulator* simulator, const StopToken& stop)
      : terms_(terms),
        planner_(planner),
        order_(order),
        simulator_(simulator),
        stop_(stop),
        varied_steps_(terms.varied_steps),
        changes_(planner),
        rehearsed_(order, planner, terms.budget_bytes, kRehearsalsPerPlay * terms.max_plays, stop),
        plan_(base) {}

  absl::StatusOr<PlanSearchResult> Run() {
    absl::Status status = VaryStart();
    if (status.ok()) status = PlayRehearsed();
    if (status.ok()) status = are_right_ ? ConstructPlain() : Construct();
    if (status.ok() && !planner_.gaps().empty()) status = RaiseTargets();
    if (status.ok() && !planner_.gaps().empty()) status = ChangeBuffers();
    if (GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG && result_.best) {
      result_.cut_short = true;
      status = absl::OkStatus();
    }
    if (!status.ok()) return status;
    result_.aways = std::move(best_);
    return std::move(result_);
  }

 private:
  enum class Verdict { kBetter, kNotBetter, kDoesNotFit };
  struct Judged {
    Verdict verdict = Verdict::kNotBetter;
    // Where in the order a plan that does not fit ran out, and what was lacking. kNoSlot: not on
    // the GPU, or there is no place for what is resident.
    Slot at = kNoSlot;
    int64_t missing_bytes = 0;
  };

  // Those that count.
  int num_plays() const { return result_.num_plays - num_varied_plays_; }
  bool MayPlay() const {
    return num_plays() < terms_.max_plays && tries_ < kTriesPerPlay * terms_.max_plays;
  }
  bool MayPlay(double share) const {
    return MayPlay() && num_plays() <= share * terms_.max_plays && !IsDone();
  }

  bool IsDone() const {
    if (!result_.best) return false;
    const int64_t time = result_.best->outcome.step_time_ns();
    return time - terms_.full_speed_ns <= terms_.full_speed_ns / kFullSpeedPart;
  }

  bool MayConstruct() const {
    return !IsDone() && MayPlay(result_.best ? kConstructionShare : kVainShare);
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

  std::vector<Away> Aways(const BudgetSetting& setting) const {
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

  // Of plans that fit in their rehearsals, those that took the least time there.
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
    int played = 0, fitting = 0;
    for (size_t i = 0; i < candidates.size() && MayPlay(kRehearsedShare); ++i) {
      if (i >= kPlayedAnyway && !MayBeFaster(candidates[i].plan)) break;
      auto verdict = Judge(candidates[i].plan.aways, /*for_pieces=*/false);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter) Take(SettingOf(candidates[i]), candidates[i].plan);
      ++played;
      fitting += *verdict != Verdict::kDoesNotFit;
    }
    are_right_ = fitting > 0 && kRightOften * fitting >= played;
    return absl::OkStatus();
  }

  // The best so far was made so.
  void Take(BudgetSetting setting, const RehearsedPlan& plan) {
    best_setting_ = std::move(setting);
    rehearsed_ns_ = plan.step_time_ns;
  }

  // Than the best so far, as rehearsals go.
  bool MayBeFaster(const RehearsedPlan& plan) const {
    return !result_.best || rehearsed_ns_ == 0 ||
           static_cast<double>(plan.step_time_ns) <
               kMaybeFaster * static_cast<double>(rehearsed_ns_);
  }

  // Plans with the setting, if it fits in its rehearsal, and may be faster there.
  absl::Status PlayIfRehearsed(BudgetSetting setting) {
    RehearsedPlan plan = rehearsed_.Make(setting);
    for (int play = 0; play < kRaiseRoomPlays && MayPlay(); ++play) {
      if (!plan.fits || !MayBeFaster(plan)) return absl::OkStatus();
      auto verdict = Judge(plan.aways, /*for_pieces=*/true);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter) Take(std::move(setting), plan);
      if (*verdict != Verdict::kDoesNotFit) return absl::OkStatus();
      if (!MakeRoom(setting.gate_slots, &plan.aways)) return absl::OkStatus();
      plan = rehearsed_.Mend(std::move(plan.aways), setting.gate_slots);
    }
    return absl::OkStatus();
  }

  // Where the last plan ran out of memory in pieces; false if nothing can make room there.
  bool MakeRoom(int32_t gate_slots, std::vector<Away>* aways) const {
    const RoomWindow window = FindRoomWindow(pieces_, piece_bytes_, last_.at, *aways, planner_);
    Postpone(window.early, aways);
    for (int32_t index : window.added) {
      const Gap& gap = planner_.gaps()[index];
      const Slot in_time = order_.last_ended_by(order_.begin_ns(gap.before) - gap.in_ns);
      aways->push_back({index, std::min(gap.before - 1, std::max(last_.at, in_time)), gate_slots});
    }
    return !window.empty();
  }

  absl::StatusOr<Verdict> JudgeTarget(double target, const Construction& construction) {
    BudgetSetting setting = Setting(target, construction);
    auto verdict = Judge(Aways(setting), /*for_pieces=*/false);
    if (verdict.ok() && *verdict == Verdict::kBetter) best_setting_ = std::move(setting);
    return verdict;
  }

  // What fits but for some of the varied steps is there for want of luck: which pieces are free in
  // them hangs on every detail. So what lies in the way there is taken out, too, and plans that
  // differ a little are likely to run out elsewhere, or nowhere.
  absl::Status VaryStart() {
    std::vector<Away> next = terms_.start;
    for (int room = 0; !next.empty() && !result_.best && MayPlay(kVaryShare); ++room) {
      auto verdict = Judge(next, /*for_pieces=*/true);
      if (!verdict.ok()) return verdict.status();
      if (room < kMostStartRooms && *verdict == Verdict::kDoesNotFit && MakeRoomIn(&next)) continue;
      room = -1;
      next = terms_.start;
      for (int i = changes_.Random(kMostVaried); i >= 0 && !next.empty(); --i)
        changes_.Change(&next);
    }
    return absl::OkStatus();
  }

  // Takes out of the plan that ran out last what lies side by side; false if that cannot help.
  bool MakeRoomIn(std::vector<Away>* aways) const {
    const RoomWindow window = FindRoomWindow(pieces_, piece_bytes_, last_.at, *aways, planner_);
    Postpone(window.early, aways);
    for (int32_t gap : window.added) aways->push_back(changes_.Use(gap, 1));
    return !window.empty();
  }

  // These come back only behind the slot where the last plan ran out.
  void Postpone(const std::vector<int32_t>& gaps, std::vector<Away>* aways) const {
    for (Away& away : *aways) {
      if (std::count(gaps.begin(), gaps.end(), away.gap) == 0) continue;
      away.trigger = std::min(planner_.gaps()[away.gap].before - 1, last_.at + 1);
    }
  }

  // What rehearsals are wrong about they do not put right: without any, the first plans that fit.
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
      if (i >= kBisected && result_.best) {
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
        auto verdict = MakeRoomFor(Setting(aim, kConstructions[i]), kRoomPlays);
        if (!verdict.ok()) return verdict.status();
        if (*verdict == Verdict::kDoesNotFit) break;
        step *= kStepGrowth;
      }
    }
    for (const double width : kWidths) {
      for (size_t i = 0; i < kBisected && !result_.best && MayConstruct(); ++i) {
        absl::Status s = MendFrom(Setting(1, kConstructions[i]), width, kMaxMends);
        if (!s.ok()) return s;
      }
    }
    return absl::OkStatus();
  }

  // The largest share of the budget that a plan may aim at and fit, about; 0: none was found.
  absl::StatusOr<double> LargestTarget(const Construction& construction) {
    double fits = 0, does_not_fit = 0;
    for (const double target : kTargets) {
      if (!MayPlay()) return 0.0;
      auto verdict = JudgeTarget(target, construction);
      if (!verdict.ok()) return verdict.status();
      if (*verdict != Verdict::kDoesNotFit) {
        fits = target;
        break;
      }
      does_not_fit = target;
    }
    while (fits > 0 && does_not_fit - fits > kTargetStep && MayPlay()) {
      const double target = (fits + does_not_fit) / 2;
      auto verdict = JudgeTarget(target, construction);
      if (!verdict.ok()) return verdict.status();
      (*verdict == Verdict::kDoesNotFit ? does_not_fit : fits) = target;
    }
    return fits;
  }

  // Plans with the setting; where the plan does not fit, targets are lowered there, and again.
  absl::Status MendFrom(BudgetSetting setting, double width, int max_mends) {
    std::vector<Away> aways = Aways(setting);
    for (int mend = 0;; ++mend) {
      auto verdict = Judge(aways, /*for_pieces=*/false);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter) best_setting_ = std::move(setting);
      if (*verdict != Verdict::kDoesNotFit || mend == max_mends || !MayPlay() ||
          !Mend(width, mend, &aways, &setting)) {
        return absl::OkStatus();
      }
    }
  }

  // Plans with the setting; where the plan does not fit, what lies side by side makes room, and
  // again.
  absl::StatusOr<Verdict> MakeRoomFor(BudgetSetting setting, int max_plays) {
    const int64_t end = num_plays() + max_plays;
    while (true) {
      const std::vector<Away> aways = Aways(setting);
      auto verdict = Judge(aways, /*for_pieces=*/true);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter) best_setting_ = std::move(setting);
      if (*verdict != Verdict::kDoesNotFit || !MayPlay() || num_plays() >= end) {
        return verdict;
      }
      const RoomWindow window = FindRoomWindow(pieces_, piece_bytes_, last_.at, aways, planner_);
      if (window.empty()) return verdict;
      setting.forced.insert(window.added.begin(), window.added.end());
      for (int32_t gap : window.early) setting.not_before[gap] = last_.at + 1;
    }
  }

  // Lowers the targets where the last plan ran out, until others are chosen, or come back later;
  // false if that cannot help.
  bool Mend(double width, int mend, std::vector<Away>* aways, BudgetSetting* setting) const {
    if (last_.at == kNoSlot) return false;
    const Slot slots = order_.num_slots();
    const Slot reach = std::max(kLeastWidth, static_cast<Slot>(width * slots));
    const Slot end = std::min(slots, last_.at + reach + 1);
    const int64_t least = terms_.budget_bytes / kLeastMend + 1;
    const int64_t most = terms_.budget_bytes / kMostMend;
    int64_t by = std::max(least, std::min(last_.missing_bytes, most));
    by += by * mend / kMendsToDouble;
    for (int64_t lowered = 0; lowered < terms_.budget_bytes; lowered += by, by *= 2) {
      for (Slot slot = std::max(0, last_.at - reach); slot < end; ++slot) {
        setting->targets[slot] -= by;
      }
      std::vector<Away> others = Aways(*setting);
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

  // From the best plan's setting on: more may be in use in some run of slots, chosen by chance, and
  // where the plan does not fit then, room is made or targets are lowered.
  absl::Status RaiseTargets() {
    while (!best_setting_.targets.empty() && MayPlay(kRaiseShare)) {
      ++tries_;
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
        status = MakeRoomFor(std::move(setting), kRaiseRoomPlays).status();
      } else {
        status =
            MendFrom(std::move(setting), kWidths[changes_.Random(std::size(kWidths))], kRaiseMends);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Simulates the plan, and keeps it if it is better than the best. What was simulated before is
  // not again, unless it is asked what lies where when it runs out.
  absl::StatusOr<Verdict> Judge(const std::vector<Away>& aways, bool for_pieces) {
    ++tries_;
    const uint64_t print = Fingerprint(aways);
    if (const auto known = judged_.find(print);
        known != judged_.end() && !(for_pieces && known->second.verdict == Verdict::kDoesNotFit)) {
      pieces_.clear();
      last_ = known->second;
      return last_.verdict;
    }
    last_ = Judged();
    pieces_.clear();
    if (result_.best && CopyTime(aways) > result_.best->outcome.step_time_ns()) {
      return Verdict::kNotBetter;  // Whether it fits or not.
    }
    auto verdict = Simulate(aways);
    if (!verdict.ok()) return verdict;
    last_.verdict = *verdict == Verdict::kBetter ? Verdict::kNotBetter : *verdict;
    judged_[print] = last_;
    return verdict;
  }

  // What the busier of the copy engines has to do.
  int64_t CopyTime(const std::vector<Away>& aways) const {
    int64_t in_ns = 0, out_ns = 0;
    absl::flat_hash_set<int32_t> buffers;
    for (const Away& away : aways) {
      const Gap& gap = planner_.gaps()[away.gap];
      in_ns += gap.in_ns;
      if (buffers.insert(gap.buffer).second) out_ns += gap.out_ns;
    }
    return std::max(in_ns, out_ns);
  }

  absl::StatusOr<Verdict> Simulate(const std::vector<Away>& aways) {
    auto swaps = planner_.Plan(aways);
    if (!swaps.ok()) return swaps.status();
    plan_.swaps = *swaps;
    plan_.swaps.insert(plan_.swaps.end(), terms_.other_swaps.begin(), terms_.other_swaps.end());
    const int64_t best_ns = result_.best ? result_.best->outcome.step_time_ns() : kUnlimited;
    auto outcome = Play(terms_.budget_bytes, best_ns, /*placed_alone=*/true);
    if (!outcome.ok()) return outcome.status();
    if (outcome->is_partial) {
      ++result_.num_fitting;
      return Verdict::kNotBetter;
    }
    if (!outcome->fits) return Fail(*std::move(outcome), aways);
    int64_t bytes = 0;
    for (const Away& away : aways) bytes += planner_.gaps()[away.gap].bytes;
    if (result_.best && !IsWorthwhile(outcome->step_time_ns(), bytes)) {
      ++result_.num_fitting;
      return Verdict::kNotBetter;
    }
    auto variation = FirstUnfit();
    if (!variation.ok()) return variation.status();
    if (*variation) return Fail(**std::move(variation), aways);
    // Counted, too, and in the other sizes.
    outcome = Play(terms_.budget_bytes, kUnlimited, /*placed_alone=*/false);
    if (!outcome.ok()) return outcome.status();
    if (!outcome->fits) return Fail(*std::move(outcome), aways);
    for (int64_t budget : terms_.other_budgets) {
      auto other = Play(budget, kUnlimited, /*placed_alone=*/true);
      if (!other.ok()) return other.status();
      if (!other->fits) return Fail(*std::move(other), aways);
    }
    ++result_.num_fitting;
    result_.best = FoundPlan{*std::move(swaps), {}, *std::move(outcome)};
    best_ = aways;
    best_bytes_ = bytes;
    return Verdict::kBetter;
  }

  // Whether it is that much better than the best that it is worth the plays to try it further.
  bool IsWorthwhile(int64_t step_time_ns, int64_t bytes) const {
    const int64_t best_ns = result_.best->outcome.step_time_ns();
    return step_time_ns < best_ns - best_ns / kWorthwhilePart ||
           (step_time_ns <= best_ns && bytes < best_bytes_ - best_bytes_ / kWorthwhilePart);
  }

  // What comes of the plan in the first of the variations in which it does not fit.
  absl::StatusOr<absl::optional<StepResult>> FirstUnfit() {
    for (auto it = varied_steps_.begin(); it != varied_steps_.end(); ++it) {
      auto varied = Play(it->bytes, kUnlimited, /*placed_alone=*/true, it->variation);
      if (!varied.ok()) return varied.status();
      if (varied->fits) continue;
      std::rotate(varied_steps_.begin(), it, it + 1);  // The next plan is likely to fail here, too.
      return absl::make_optional(*std::move(varied));
    }
    return absl::optional<StepResult>();
  }

  absl::StatusOr<StepResult> Play(int64_t budget_bytes, int64_t cutoff_ns, bool placed_alone,
                                  const StepVariation& variation = StepVariation()) {
    ++result_.num_plays;
    num_varied_plays_ += !variation.is_none();
    StepTerms terms = StepTerms::OneGpu(terms_.gpu, budget_bytes);
    terms.variation = variation;
    terms.cutoff_ns = cutoff_ns;
    terms.placed_alone = placed_alone;
    terms.record_pieces = true;
    return simulator_->Simulate(plan_, terms, stop_);
  }

  Verdict Fail(StepResult outcome, const std::vector<Away>& aways) {
    const OutOfMemory* oom = outcome.failure();
    if (oom != nullptr && oom->node != kNoNode && oom->device == terms_.gpu) {
      last_.at = SlotOf(*oom);
      last_.missing_bytes = oom->missing_bytes;
      pieces_ = std::move(outcome.pieces);
      piece_bytes_ = outcome.piece_bytes;
    }
    if (last_.at >= furthest_slot_) {
      furthest_slot_ = last_.at;
      furthest_ = aways;
      result_.failure = std::move(outcome);
    }
    return Verdict::kDoesNotFit;
  }

  // Small changes by chance: those that do not make it slower are kept; while there is no plan,
  // those that get as far.
  absl::Status ChangeBuffers() {
    while (MayPlay() && !IsDone()) {
      ++tries_;
      std::vector<Away> next = result_.best ? best_ : furthest_;
      if (next.empty()) return absl::OkStatus();
      const int changes = 1 + changes_.Random(2);
      for (int i = 0; i < changes && !next.empty(); ++i) changes_.Change(&next);
      RehearsedPlan plan;
      if (rehearsed_.MayRehearse()) {
        plan = rehearsed_.Mend(std::move(next), kChangedGate);
        if (!plan.fits || !MayBeFaster(plan)) continue;
        next = plan.aways;
      }
      auto verdict = Judge(next, /*for_pieces=*/false);
      if (!verdict.ok()) return verdict.status();
      if (*verdict == Verdict::kBetter && plan.fits) rehearsed_ns_ = plan.step_time_ns;
    }
    return absl::OkStatus();
  }

  // FNV-1a.
  static uint64_t Fingerprint(const std::vector<Away>& aways) {
    uint64_t hash = 14695981039346656037u;
    const auto add = [&hash](int32_t value) {
      hash = (hash ^ static_cast<uint32_t>(value)) * 1099511628211u;
    };
    for (const Away& away : aways) {
      add(away.gap);
      add(away.trigger);
      add(away.gate);
    }
    return hash;
  }

  static constexpr Slot kNoneYet = std::numeric_limits<Slot>::min();

  const PlanSearchTerms& terms_;
  const BudgetPlanner& planner_;
  const StepOrder& order_;
  PlanSimulator* const simulator_;
  const StopToken& stop_;
  std::vector<VariedStep> varied_steps_;  // Those that plans failed in last come first.
  PlanChanges changes_;
  RehearsedPlanner rehearsed_;
  bool are_right_ = false;    // Rehearsals are, as a rule, of this step.
  int64_t rehearsed_ns_ = 0;  // The time that the best plan took in its rehearsal; 0: it had none.
  SwapPlan plan_;             // The base, and the swaps that are judged.
  std::vector<Away> best_;
  BudgetSetting best_setting_;  // Of the best plan that was constructed, if one was.
  int64_t best_bytes_ = 0;      // That travel in it, one way.
  absl::flat_hash_map<uint64_t, Judged> judged_;
  Judged last_;
  // Where the last plan ran out, if that was of memory in pieces.
  std::vector<StepResult::Piece> pieces_;
  int64_t piece_bytes_ = 0;
  std::vector<Away> furthest_;  // Of the plans that do not fit.
  Slot furthest_slot_ = kNoneYet;
  int64_t tries_ = 0;  // Plans that were judged.
  int num_varied_plays_ = 0;
  PlanSearchResult result_;
};

}  // namespace

absl::StatusOr<PlanSearchResult> SearchPlan(const PlanSearchTerms& terms, const SwapPlan& base,
                                            const BudgetPlanner& planner, const StepOrder& order,
                                            PlanSimulator* simulator, const StopToken& stop) {
  return PlanSearch(terms, base, planner, order, simulator, stop).Run();
}

}  // namespace spillway::core
