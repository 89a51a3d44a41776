#include "rewrite_core/strategy/level/level_tuning.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/strategy/common/device_fit.h"
#include "rewrite_core/strategy/common/fit_failure.h"

namespace spillway::core {
namespace {

// The constants of the search. The loss of plans with smaller values, and the cost in simulations
// of larger ones, were measured: tests/benchmarks/README.md, "Constants of the tuner".

// The values of `ahead` in the coarse grid: powers of two except 2, which found no better plan.
constexpr int32_t kAheadGrid[] = {1, 4, 8, 16, 32, 64, 128, 256, 512};
// The `ahead` of the first threshold search; it is repeated with 1, which takes the least memory.
constexpr int32_t kFirstAhead = 8;
// A search along one line ends after this many settings that are slower than the best, and one over
// several lines after this many lines that did not help.
constexpr int kMaxSlower = 4;
constexpr int kMaxVainLines = 2;
// Descend doubles its steps; the first two may fail, as neighbours often have the same plan.
constexpr int kMaxVainStride = 2;
// Finally, this many larger thresholds are tried, each with two values of `groupby`: the best one
// and that at this fraction of the list.
constexpr int kLargerThresholds = 4;
constexpr double kLargerGroupby = 0.75;

// The smallest sufficient budget is found to within 1/kBudgetParts and kAllocationBytes, by
// bisection, with at most 10 simulations of a plan.
constexpr int64_t kBudgetParts = 1024;

// A fingerprint of swaps: equal for equal swaps.
class Fingerprint {
 public:
  explicit Fingerprint(const std::vector<PlannedSwap>& swaps) {
    for (const PlannedSwap& swap : swaps) {
      Add(swap.tensor.node, swap.tensor.port, -1);
      for (const PlannedSwapIn& swap_in : swap.swap_ins) {
        for (const InputPosition& p : swap_in.consumers) Add(p.node, p.index, -2);
        for (NodeId trigger : swap_in.triggers) Add(trigger, 0, -3);
        for (NodeId node : swap_in.paces) Add(node, 0, -5);
      }
      for (NodeId node : swap.deadlines) Add(node, 0, -4);
    }
  }
  std::pair<uint64_t, uint64_t> value() const { return {a_, b_}; }

 private:
  void Add(int64_t x, int64_t y, int64_t kind) {
    // Two multiplicative hashes with odd constants (Knuth's golden ratio; Steele and Vigna's).
    const uint64_t item = static_cast<uint64_t>(x) * 0x9E3779B97F4A7C15u +
                          static_cast<uint64_t>(y) * 0xD1342543DE82EF95u +
                          static_cast<uint64_t>(kind);
    a_ = (a_ ^ item) * 0xD1342543DE82EF95u;
    a_ ^= a_ >> 29;
    b_ = (b_ + item) * 0x9E3779B97F4A7C15u;
    b_ ^= b_ >> 31;
  }

  uint64_t a_ = 0, b_ = 0;
};

// A setting by the indices of its values in the lists.
struct Point {
  int threshold, ahead, groupby, mode;
  friend bool operator<(const Point& a, const Point& b) {
    return std::tie(a.threshold, a.ahead, a.groupby, a.mode) <
           std::tie(b.threshold, b.ahead, b.groupby, b.mode);
  }
};

class Tuner {
 public:
  Tuner(const LevelSetting& wanted, const SwapPlan& base, GpuIndex gpu, int64_t budget_bytes,
        const StepFacts& facts, TunedPlanner* planner, PlanSimulator* simulator,
        const StopToken& stop)
      : base_(base),
        gpu_(gpu),
        budget_bytes_(budget_bytes),
        facts_(facts),
        planner_(planner),
        simulator_(simulator),
        stop_(stop) {
    thresholds_ =
        wanted.threshold == kAuto ? planner->Thresholds() : std::vector<int32_t>{wanted.threshold};
    aheads_ = wanted.ahead == kAuto ? planner->Aheads() : std::vector<int32_t>{wanted.ahead};
    groupbys_ =
        wanted.groupby == kAuto ? planner->Groupbys() : std::vector<int32_t>{wanted.groupby};
    for (int32_t mode = wanted.sync_mode; mode <= 3; ++mode) modes_.push_back(mode);
  }

  absl::StatusOr<TunedLevel> Run() {
    auto unswapped = Simulate(base_, kUnlimited);
    if (!unswapped.ok()) return unswapped.status();
    tuned_.fit = FitOfUnswapped(*unswapped, gpu_, budget_bytes_, facts_);
    // With a peak above the budget it may still fit, if kernels wait for each other's memory; with
    // one below, fragmentation may keep it from fitting.
    unswapped = Simulate(base_, budget_bytes_);
    if (!unswapped.ok()) return unswapped.status();
    if (absl::Status s = TryInAllMemory(base_, &*unswapped); !s.ok()) return s;
    if (unswapped->fits) {
      tuned_.fit.set_not_needed(true);
      if (absl::Status s = Report(base_, *unswapped); !s.ok()) return s;
      return std::move(tuned_);
    }
    failure_ = *unswapped;
    if (!thresholds_.empty()) {
      absl::Status status = is_small() ? TryAll() : Search();
      if (!status.ok()) return status;
    }
    if (absl::Status s = TakeBestInAllMemory(); !s.ok()) return s;
    if (!has_best_) return DoesNotFit();
    auto swaps = planner_->Plan(Setting(best_));
    if (!swaps.ok()) return swaps.status();
    SwapPlan plan = base_;
    plan.swaps = *std::move(swaps);
    if (absl::Status s = Report(plan, best_outcome_); !s.ok()) return s;
    tuned_.setting = Setting(best_);
    tuned_.swaps = std::move(plan.swaps);
    return std::move(tuned_);
  }

 private:
  LevelSetting Setting(const Point& p) const {
    return {thresholds_[p.threshold], aheads_[p.ahead], groupbys_[p.groupby], modes_[p.mode]};
  }

  absl::Status Report(const SwapPlan& plan, const StepResult& outcome) {
    return AddPlanned(plan, outcome, gpu_, facts_, simulator_, stop_, &tuned_.fit);
  }

  // TensorFlow also uses the reserve, and a plan that fits the budget may not fit in all of the
  // memory: then `outcome` becomes that with all memory.
  absl::Status TryInAllMemory(const SwapPlan& plan, StepResult* outcome) {
    const int64_t memory = facts_.HardwareOf(gpu_).gpu_memory_bytes;
    if (!outcome->fits || memory <= budget_bytes_) return absl::OkStatus();
    auto in_all = Simulate(plan, memory);
    if (in_all.ok() && !in_all->fits) *outcome = *std::move(in_all);
    return in_all.status();
  }

  // Takes the best of the settings that fit in all of the memory, too; usually the best of all.
  absl::Status TakeBestInAllMemory() {
    std::vector<std::pair<decltype(Rank({}, {})), Point>> ranked;
    for (const auto& [p, outcome] : looked_) {
      if (outcome->fits) ranked.emplace_back(Rank(*outcome, p), p);
    }
    std::sort(ranked.begin(), ranked.end());
    has_best_ = false;
    for (size_t i = 0; i < ranked.size() && !has_best_; ++i) {
      best_ = ranked[i].second;
      best_outcome_ = *looked_[best_];
      SwapPlan plan = base_;
      auto swaps = planner_->Plan(Setting(best_));
      if (!swaps.ok()) return swaps.status();
      plan.swaps = *std::move(swaps);
      StepResult outcome = best_outcome_;
      if (absl::Status s = TryInAllMemory(plan, &outcome); !s.ok()) return s;
      has_best_ = outcome.fits;
      if (!has_best_) failure_ = std::move(outcome);
    }
    return absl::OkStatus();
  }

  bool uses_ahead(int mode) const { return modes_[mode] < 2; }

  int64_t num_points() const {
    int64_t count = 0;
    for (size_t mode = 0; mode < modes_.size(); ++mode) {
      count += static_cast<int64_t>(uses_ahead(mode) ? aheads_.size() : 1) * groupbys_.size();
    }
    // No list is longer than the number of levels, so the early return precludes overflow.
    return count > kMaxSimulations ? count : count * static_cast<int64_t>(thresholds_.size());
  }
  bool is_small() const { return num_points() <= kMaxSimulations; }

  // Returns the result for a point, simulating it if necessary; null if no simulations are left.
  absl::StatusOr<const StepResult*> Evaluate(Point p) {
    if (!uses_ahead(p.mode)) p.ahead = 0;
    const auto [it, is_new] = looked_.try_emplace(p, nullptr);
    if (!is_new) return it->second;
    auto swaps = planner_->Plan(Setting(p));
    if (!swaps.ok()) return swaps.status();
    const auto [outcome, is_new_plan] = outcomes_.try_emplace(Fingerprint(*swaps).value());
    it->second = &outcome->second;
    if (!is_new_plan) return it->second;
    if (num_simulations_ >= kMaxSimulations) {
      // Counts as not fitting, and is not cached.
      looked_.erase(it);
      outcomes_.erase(outcome);
      return nullptr;
    }
    ++num_simulations_;
    SwapPlan plan = base_;
    plan.swaps = *std::move(swaps);
    auto simulated =
        Simulate(plan, budget_bytes_, has_best_ ? best_outcome_.step_time_ns() : kUnlimited);
    if (!simulated.ok()) return simulated.status();
    outcome->second = *simulated;
    tuned_.report.set_setting_count(num_simulations_);
    if (!simulated->fits && !simulated->is_partial) {
      // The plan with the highest peak got furthest, so its failure is the most informative.
      if (simulated->peak_bytes(gpu_) > failure_.peak_bytes(gpu_)) failure_ = *simulated;
      return it->second;
    }
    tuned_.report.set_fitting_setting_count(tuned_.report.fitting_setting_count() + 1);
    if (simulated->fits && (!has_best_ || Rank(*simulated, p) < Rank(best_outcome_, best_))) {
      has_best_ = true;
      best_ = p;
      best_outcome_ = *simulated;
    }
    return it->second;
  }

  // Less is better.
  static std::tuple<int64_t, int64_t, int, int, int, int> Rank(const StepResult& outcome,
                                                               const Point& p) {
    return {outcome.step_time_ns(),
            outcome.synchronous_step_time_ns(),
            p.mode,
            -p.threshold,
            p.ahead,
            p.groupby};
  }

  absl::Status TryAll() {
    tuned_.report.set_exhaustive(true);
    for (int mode = 0; mode < static_cast<int>(modes_.size()); ++mode) {
      const int num_aheads = uses_ahead(mode) ? static_cast<int>(aheads_.size()) : 1;
      for (int ahead = 0; ahead < num_aheads; ++ahead) {
        for (int groupby = 0; groupby < static_cast<int>(groupbys_.size()); ++groupby) {
          for (int t = static_cast<int>(thresholds_.size()) - 1; t >= 0; --t) {
            auto outcome = Evaluate({t, ahead, groupby, mode});
            if (!outcome.ok()) return outcome.status();
          }
        }
      }
    }
    return absl::OkStatus();
  }

  // Returns the index of the largest value that is at most `value`.
  static int IndexOf(const std::vector<int32_t>& values, int32_t value) {
    const auto it = std::upper_bound(values.begin(), values.end(), value);
    return std::max(static_cast<int>(it - values.begin()) - 1, 0);
  }

  // Returns the indices that IndexOf finds for the values of `grid`, and the last index; ascending,
  // each once.
  static std::vector<int> GridIndices(const std::vector<int32_t>& values,
                                      absl::Span<const int32_t> grid) {
    std::vector<int> positions;
    const auto add = [&](int position) {
      if (positions.empty() || positions.back() < position) positions.push_back(position);
    };
    for (int32_t value : grid) add(IndexOf(values, value));
    add(static_cast<int>(values.size()) - 1);
    return positions;
  }

  absl::Status Search() {
    const int last_groupby = static_cast<int>(groupbys_.size()) - 1;
    // The modes, fastest first, until one fits.
    for (int mode = 0; mode < static_cast<int>(modes_.size()) && !has_best_; ++mode) {
      for (const auto& [ahead, groupby] :
           {std::make_pair(kFirstAhead, last_groupby), {1, last_groupby}, {1, 0}}) {
        if (absl::Status s = Bisect({0, IndexOf(aheads_, ahead), groupby, mode}); !s.ok()) return s;
      }
    }
    if (!has_best_) return absl::OkStatus();
    for (bool improved = true; improved;) {
      if (absl::Status s = Sweep(); !s.ok()) return s;
      const Point from = best_;
      if (absl::Status s = Scan(); !s.ok()) return s;
      for (int mode = 0; mode < static_cast<int>(modes_.size()); ++mode) {
        if (mode == best_.mode) continue;
        if (absl::Status s = Bisect({0, best_.ahead, best_.groupby, mode}); !s.ok()) return s;
      }
      improved = !IsBest(from);
    }
    if (absl::Status s = Descend(); !s.ok()) return s;
    return TryLargerThresholds();
  }

  // Spends the remaining simulations on larger thresholds, which are faster if they fit, with the
  // coarse grid of the other parameters.
  absl::Status TryLargerThresholds() {
    const int larger_groupby =
        static_cast<int>(kLargerGroupby * static_cast<double>(groupbys_.size()));
    for (;;) {
      const Point from = best_;
      for (int by = 1; by <= kLargerThresholds; ++by) {
        const int threshold = from.threshold + by;
        if (threshold >= static_cast<int>(thresholds_.size())) break;
        for (int groupby : {from.groupby, larger_groupby}) {
          for (int ahead : GridIndices(aheads_, kAheadGrid)) {
            auto outcome = Evaluate({threshold, ahead, groupby, from.mode});
            if (!outcome.ok()) return outcome.status();
            if (*outcome == nullptr) return absl::OkStatus();
          }
        }
      }
      if (IsBest(from)) return absl::OkStatus();
      if (absl::Status s = Descend(); !s.ok()) return s;
    }
  }

  // Searches for the largest threshold that fits, with the other values of `p`: from the best
  // point's on with growing steps, then by bisection.
  absl::Status Bisect(Point p) {
    const int size = static_cast<int>(thresholds_.size());
    int low = -1, high = size;  // The largest that fits, the smallest that does not.
    int next = has_best_ ? best_.threshold : (low + high) / 2;
    int slow = 0;
    for (int stride = 1; high - low > 1; stride *= 2) {
      p.threshold = next;
      auto outcome = Evaluate(p);
      if (!outcome.ok()) return outcome.status();
      if (*outcome == nullptr) return absl::OkStatus();
      ((*outcome)->fits || (*outcome)->is_partial ? low : high) = next;
      // Smaller thresholds are even slower, and few larger ones are left.
      if ((*outcome)->is_partial && high < size && ++slow > kMaxSlower) return absl::OkStatus();
      next = (low + high) / 2;
      if (!has_best_) continue;
      if (low < 0) next = std::max(high - stride, 0);
      if (high == size) next = std::min(low + stride, size - 1);
    }
    return absl::OkStatus();
  }

  bool IsBest(const Point& p) const { return !(p < best_) && !(best_ < p); }

  // Tries a coarse grid of the other parameters, with the best threshold of each, in each direction
  // as long as that helps: a swap-in that starts earlier hides its copy but holds memory, so the
  // best threshold moves with it.
  absl::Status Sweep() {
    const std::vector<int> aheads = GridIndices(aheads_, kAheadGrid);
    const int last = static_cast<int>(groupbys_.size()) - 1;
    for (bool improved = true; improved && num_simulations_ < kMaxSimulations;) {
      const Point from = best_;
      const auto up = std::upper_bound(aheads.begin(), aheads.end(), best_.ahead);
      const std::vector<int> larger(up, aheads.end());
      const std::vector<int> smaller(std::make_reverse_iterator(up), aheads.rend());
      for (const std::vector<int>& side : {larger, smaller}) {
        int vain = 0;
        for (int ahead : side) {
          if (!uses_ahead(best_.mode) || vain == kMaxVainLines) break;
          const Point before = best_;
          if (absl::Status s = Bisect({0, ahead, best_.groupby, best_.mode}); !s.ok()) return s;
          vain = IsBest(before) ? vain + 1 : 0;
        }
      }
      for (int groupby : {last, last / 2, 0}) {
        if (groupby == best_.groupby) continue;
        if (absl::Status s = Bisect({0, best_.ahead, groupby, best_.mode}); !s.ok()) return s;
      }
      improved = !IsBest(from);
    }
    return absl::OkStatus();
  }

  // Tries the whole of that grid with the best threshold.
  absl::Status Scan() {
    const Point from = best_;
    const int last = static_cast<int>(groupbys_.size()) - 1;
    for (int mode = 0; mode < static_cast<int>(modes_.size()); ++mode) {
      for (int groupby : {from.groupby, last, last / 2, 0}) {
        if (mode != from.mode && groupby != from.groupby) continue;
        for (int ahead : GridIndices(aheads_, kAheadGrid)) {
          auto outcome = Evaluate({from.threshold, ahead, groupby, mode});
          if (!outcome.ok()) return outcome.status();
          if (*outcome == nullptr) return absl::OkStatus();
        }
      }
    }
    return absl::OkStatus();
  }

  // Steps from the best point, in each direction, as long as one helps.
  absl::Status Descend() {
    for (bool improved = true; improved;) {
      const Point from = best_;
      for (int dimension : {0, 1, 2, 3}) {
        for (int direction : {1, -1}) {
          for (int stride = 1;; stride *= 2) {
            const Point before = best_;
            Point p = best_;
            if (!Step(dimension, direction * stride, &p)) break;
            auto outcome = Evaluate(p);
            if (!outcome.ok()) return outcome.status();
            if (*outcome == nullptr) return absl::OkStatus();
            if (IsBest(before) && stride > kMaxVainStride) break;
          }
        }
      }
      improved = !IsBest(from);
    }
    return absl::OkStatus();
  }

  bool Step(int dimension, int by, Point* p) const {
    const auto move = [by](int* position, size_t size) {
      const int64_t to = int64_t{*position} + by;
      if (to < 0 || to >= static_cast<int64_t>(size)) return false;
      *position = static_cast<int>(to);
      return true;
    };
    switch (dimension) {
      case 0:
        return move(&p->threshold, thresholds_.size());
      case 1:
        return uses_ahead(p->mode) && move(&p->ahead, aheads_.size());
      case 2:
        return move(&p->groupby, groupbys_.size());
      default:
        return move(&p->mode, modes_.size());
    }
  }

  absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, int64_t budget_bytes,
                                      int64_t cutoff_ns = kUnlimited) {
    StepTerms terms = StepTerms::OneGpu(gpu_, budget_bytes);
    terms.cutoff_ns = cutoff_ns;
    return simulator_->Simulate(plan, terms, stop_);
  }

  absl::Status DoesNotFit() {
    auto smallest = SmallestBudget();
    if (!smallest.ok()) return smallest.status();
    const std::string& gpu = facts_.placement().devices()[gpu_];
    const FitFailure failure = FailureOf(failure_, gpu_, facts_);
    const Hardware hardware = facts_.HardwareOf(gpu_);
    const std::string claim =
        absl::StrCat("no setting of the strategy level fits the ",
                     BudgetText(hardware, budget_bytes_), " of ", GpuText(gpu));
    return DoesNotFitError(claim, failure, hardware, budget_bytes_, {*smallest, "would suffice"});
  }

  // Returns the smallest budget known to suffice, up to rounding; 0 if none is known. Considers the
  // settings that every search tries.
  absl::StatusOr<int64_t> SmallestBudget();

  const SwapPlan& base_;
  const GpuIndex gpu_;
  const int64_t budget_bytes_;
  const StepFacts& facts_;
  TunedPlanner* planner_;
  PlanSimulator* simulator_;
  const StopToken& stop_;
  std::vector<int32_t> thresholds_, aheads_, groupbys_, modes_;
  int num_simulations_ = 0;
  std::map<Point, const StepResult*> looked_;
  std::map<std::pair<uint64_t, uint64_t>, StepResult> outcomes_;
  bool has_best_ = false;
  Point best_{};
  StepResult best_outcome_;
  StepResult failure_;  // The most informative failure among plans that do not fit.
  TunedLevel tuned_;
};

absl::StatusOr<int64_t> Tuner::SmallestBudget() {
  std::vector<SwapPlan> plans = {base_};
  for (int mode = 0; mode < static_cast<int>(modes_.size()) && !thresholds_.empty(); ++mode) {
    auto swaps = planner_->Plan(Setting({0, 0, 0, mode}));
    if (!swaps.ok()) return swaps.status();
    plans.push_back(base_);
    plans.back().swaps = *std::move(swaps);
  }
  int64_t smallest = 0;
  for (const SwapPlan& plan : plans) {
    auto free = Simulate(plan, kUnlimited);
    if (!free.ok()) return free.status();
    if (!free->fits) continue;  // The host's memory is too small.
    const int64_t peak = free->peak_bytes(gpu_);
    const int64_t unit = std::max(peak / kBudgetParts, kAllocationBytes);
    if (smallest == 0 || peak < smallest) {
      auto need = FindNeed(simulator_, plan, StepTerms::OneGpu(gpu_, peak), peak, stop_);
      if (!need.ok()) return need.status();
      if (*need > 0 && (smallest == 0 || *need < smallest)) smallest = *need;
    }
    if (smallest == 0) continue;
    int64_t low = budget_bytes_, high = smallest;
    while (high - low > unit) {
      const int64_t middle = low + (high - low) / 2;
      auto simulated = Simulate(plan, middle);
      if (!simulated.ok()) return simulated.status();
      (simulated->fits ? high : low) = middle;
    }
    smallest = high;
  }
  return smallest;
}

}  // namespace

void ReportSetting(const LevelSetting& setting, v1::LevelDevice* device) {
  device->set_swapout_threshold(setting.threshold);
  if (!setting.syncs_swap_ins()) device->set_swapin_ahead(setting.ahead);
  device->set_swapin_groupby(setting.groupby);
  device->set_sync_mode(setting.sync_mode);
}

absl::StatusOr<TunedLevel> TuneLevel(const LevelSetting& wanted, const SwapPlan& base, GpuIndex gpu,
                                     int64_t budget_bytes, const StepFacts& facts,
                                     TunedPlanner* planner, PlanSimulator* simulator,
                                     const StopToken& stop) {
  return Tuner(wanted, base, gpu, budget_bytes, facts, planner, simulator, stop).Run();
}

}  // namespace spillway::core
