#include "rewrite_core/strategy/budget/joint_search.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/clone_rules.h"
#include "rewrite_core/simulate/step_subject.h"
#include "rewrite_core/strategy/recompute/clone_grid.h"

namespace spillway::core {
namespace {

// Plans of clones alone are tried until one fits: kMaxUsual of the usual grid, then also of a finer
// one, and at most kMaxAlone. (Each is a graph with its own facts, and costs two to four floors. On
// networks of several kinds, in half of the memory the first to the tenth fits. In a quarter, the
// finer grid is worth up to 0.03 of full speed; in half it is worth nothing.)
constexpr size_t kMaxUsual = 6;
constexpr size_t kMaxAlone = 48;
// If one fits, but not in all variations, kMaxFragile are tried for one that does. (Each then costs
// twenty more simulations.)
constexpr size_t kMaxFragile = 16;
// Swaps are searched for beside the first kMaxNearMisses of those that do not fit. (Worth 0.34 of
// full speed on a 3-D U-Net in a quarter of the memory on PCIe 4, 0.1 on ResNet-50 on two GPUs.)
constexpr size_t kMaxNearMisses = 4;
// This ends if the best plan takes kGiveUpRatio times as long as the clones alone promise.
constexpr int64_t kGiveUpRatio = 2;
// For clones beside swaps: the part of the way from the budget to the peak that is left to swaps;
// and how many of these are searched for each class, the most promising first. (For the class ALL,
// they promise more, and do not always keep it.)
constexpr double kSwappedParts[] = {0.05, 0.1, 0.2, 0.35, 0.5, 0.75};
constexpr size_t kMaxBesideSwaps = 4;
// To save memory: the shares of the peak that clones are made for; and how many of these are
// searched, the smallest that are fast enough. (If clones take all of the time that a step may
// lose, none is left for swaps. Four gave no lower peak than two, on two networks.)
constexpr double kSmallerShares[] = {0.3, 0.35, 0.4, 0.45, 0.5,  0.55,
                                     0.6, 0.7,  0.8, 0.9,  0.95, 0.97};
constexpr size_t kMaxSmaller = 2;
// With a reserve, the first plan is made to fit in variations at once. Those after it are drafts
// first, which need not, and the fastest kMaxRefined of them are made to fit, which takes four to
// ten times as long. (44 plans of ten networks on two machines, default reserve, with this and with
// less effort for less than the budget: 0.57 of the CPU time; three are slower, by 0.003 to 0.02 of
// full speed.)
constexpr size_t kMaxRefined = 2;
// A class is recommended if a step takes at most 1/kClearlyFaster of the time with it (as the proto
// says); its first kMaxHinted plans are tried, since a hint may cost only a part of a search, and
// then, with the least effort, kMaxHintedBesideSwaps beside swaps.
constexpr double kClearlyFaster = 1.05;
constexpr size_t kMaxHinted = 12;
constexpr size_t kMaxHintedBesideSwaps = 2;
// A search is worth its time if it may save more than 1/kWorthPart of the step, with a plan that is
// up to kMaxBoundGain times nearer to its bound than the nearest so far. (In fragmented memory,
// plans take two to ten times their bound. Saves two thirds of the time for Inception on four GPUs
// in a quarter of the memory, and loses no plan.)
constexpr int64_t kWorthPart = 100;
constexpr double kMaxBoundGain = 2;

// A class of nodes to clone, and the option that allows it. Classes before it are tried, too.
struct RecomputeClass {
  v1::Recompute option;
  RunAgain least;
};
constexpr RecomputeClass kClasses[] = {{v1::RECOMPUTE_CHEAP, RunAgain::kSameBits},
                                       {v1::RECOMPUTE_ALL, RunAgain::kSameValue}};

// The graph with clones, and a run on it.
struct Cloned {
  Cloned(ClonePlan plan, size_t terms_of_sweeps, std::unique_ptr<StepSubject> of,
         Eligibility may_swap, const StrategyInput& from, StepSimulator* simulator,
         SearchBudget* steps)
      : clones(std::move(plan)),
        terms(terms_of_sweeps),
        subject(std::move(of)),
        eligibility(std::move(may_swap)),
        input{subject->facts(), eligibility, from.options, from.limits, simulator, from.stop},
        run(input, steps) {}

  ClonePlan clones;
  const size_t terms;  // Of the sweeps: an index in the grid's.
  const std::unique_ptr<StepSubject> subject;
  const Eligibility eligibility;
  const StrategyInput input;
  BudgetRun run;
};

class JointSearch {
  static constexpr int kNotAtAll = std::numeric_limits<int>::max();

 public:
  // Searches the classes after `beyond` up to `up_to`.
  JointSearch(const StrategyInput& input, v1::Recompute beyond, v1::Recompute up_to,
              SearchBudget* steps, BudgetRun* run)
      : input_(input),
        steps_(steps),
        run_(*run),
        ordered_(run->plans().ordered()),
        may_swap_(input.facts.hardware().host_memory_bytes > 0),
        saves_memory_(run->request().objective.saves_memory()) {
    for (const RecomputeClass& each : kClasses) {
      if (each.option > beyond && each.option <= up_to) classes_.push_back(each);
    }
    tried_beside_swaps_.assign(classes_.size(), 0);
  }

  absl::Status Run() {
    const absl::Status status = saves_memory_ ? SearchSmaller() : Search();
    TakeFragile();
    const bool is_cut = GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG;
    if (!status.ok() && !(is_cut && has_best())) return status;
    if (!has_best()) return swaps_status_;
    if (best_ != nullptr) run_.TakeCloned(std::move(best_->clones), &best_->run);
    if (is_cut) run_.ReportCutShort();
    return absl::OkStatus();
  }

  // The class of the first plan that takes less than `most_ns`, and its time; not set if none of
  // the first kMaxHinted of clones alone does, and none of the first kMaxHintedBesideSwaps beside
  // swaps.
  absl::StatusOr<v1::MoreRecompute> FindFaster(int64_t most_ns) {
    most_ns_ = most_ns;
    v1::MoreRecompute found;
    auto grid = MakeGrid();
    if (!grid.ok()) return grid.status();
    if (absl::Status s = grid->AddWithin(CloneGrid::Fineness::kUsual, &alone_); !s.ok()) return s;
    std::stable_sort(alone_.begin(), alone_.end(), TakesLess);
    // As in Search: if swaps fit, fewer plans above their bound are tried; and a robust plan of
    // swaps comes before one of clones that is not.
    const bool is_any_wanted = most_ns == kUnlimited;
    const int64_t bound_ns = is_any_wanted ? kUnlimited : std::min(most_ns, run_.BoundNs());
    if (absl::Status s = TryAlone(*grid, bound_ns, kMaxHinted); !s.ok()) return s;
    if (!has_best()) {
      if (absl::Status s = TryAlone(*grid, most_ns, kMaxUsual); !s.ok()) return s;
    }
    if (is_any_wanted) TakeFragile();
    if (best_cost_ >= most_ns && may_swap_) {
      auto both = PointsBesideSwaps(*grid);
      if (!both.ok()) return both.status();
      for (size_t i = 0; i < std::min(both->size(), kMaxHintedBesideSwaps); ++i) {
        if ((*both)[i].estimate_ns >= most_ns) break;
        if (absl::Status s = TryBesideSwaps(*grid, (*both)[i].sweeps); !s.ok()) return s;
      }
      if (absl::Status s = Refine(*grid); !s.ok()) return s;
    }
    if (best_cost_ >= most_ns) return found;
    found.set_recompute(classes_[best_->terms].option);
    found.set_step_time_ns(best_cost_);
    return found;
  }

 private:
  bool has_best() const { return best_cost_ < kUnlimited; }
  // The least step time so far, drafts included. REQUIRES: !saves_memory_.
  int64_t LeastNs() const {
    int64_t least_ns = best_cost_;
    for (const Draft& draft : drafts_) least_ns = std::min(least_ns, draft.step_time_ns);
    return least_ns;
  }
  // Whether a plan with this lower bound may be clearly faster than the best one.
  bool IsWorth(int64_t bound_ns) const {
    if (saves_memory_ || !has_best()) return true;
    const int64_t least_ns = LeastNs();
    return bound_ns < least_ns - least_ns / kWorthPart;
  }
  // Likewise for a search of swaps beside clones.
  bool IsWorthSearching(int64_t bound_ns) const {
    const double least_ns = static_cast<double>(bound_ns) * least_times_bound_ / kMaxBoundGain;
    return IsWorth(bound_ns) && (saves_memory_ || least_ns < static_cast<double>(LeastNs()));
  }
  // The least step time of a plan that will not be taken.
  int64_t WorthNs() const { return saves_memory_ ? kUnlimited : std::min(most_ns_, best_cost_); }
  int64_t CostOf(const BudgetRun& run) const {
    return saves_memory_ ? run.PeakBytes() : run.StepTimeNs();
  }

  absl::StatusOr<CloneGrid> MakeGrid() const {
    std::vector<CloneGrid::Gpu> gpus;
    for (size_t i : run_.lacking()) {
      const GpuIndex gpu = run_.gpus()[i].index;
      const int64_t budget = run_.request().budget_bytes(gpu);
      gpus.push_back(
          {gpu, saves_memory_ ? std::min(budget, ordered_.step.peak_bytes(gpu)) : budget});
    }
    std::vector<RecomputeTerms> terms;
    for (const RecomputeClass& each : classes_) {
      terms.push_back({each.least, input_.options.min_tensor_bytes(),
                       &run_.request().filters->outputs, &input_.eligibility});
    }
    return CloneGrid::Create(input_.facts, ordered_, run_.plans().needs(), gpus, terms,
                             input_.stop);
  }

  absl::Status Search() {
    auto grid = MakeGrid();
    if (!grid.ok()) return grid.status();
    if (absl::Status s = grid->AddWithin(CloneGrid::Fineness::kUsual, &alone_); !s.ok()) return s;
    std::stable_sort(alone_.begin(), alone_.end(), TakesLess);
    auto both = PointsBesideSwaps(*grid);
    if (!both.ok()) return both.status();
    // By lower bound, then by estimate.
    if (absl::Status s = SearchAlone(*grid, run_.BoundNs()); !s.ok()) return s;
    if (absl::Status s = TryNearMisses(*grid); !s.ok()) return s;
    if (!may_swap_) both->clear();
    size_t next = 0;
    for (; next < both->size(); ++next) {
      const Point& point = (*both)[next];
      if (run_.BoundNs() <= point.estimate_ns || !IsWorth(point.estimate_ns)) break;
      if (absl::Status s = TryPoint(*grid, point.sweeps); !s.ok()) return s;
    }
    if (absl::Status s = TrySwaps(); !s.ok()) return s;
    if (absl::Status s = Refine(*grid); !s.ok() || best_ != nullptr) return s;
    // Swaps do not fit, or may take longer than clones: the first faster clones are taken.
    if (absl::Status s = SearchAlone(*grid, kUnlimited); !s.ok() || best_ != nullptr) return s;
    if (absl::Status s = TryNearMisses(*grid); !s.ok()) return s;
    if (absl::Status s = Refine(*grid); !s.ok()) return s;
    for (; next < both->size() && best_ == nullptr; ++next) {
      const Point& point = (*both)[next];
      if (!IsWorth(point.estimate_ns)) break;
      if (absl::Status s = TryPoint(*grid, point.sweeps); !s.ok()) return s;
      if (absl::Status s = Refine(*grid); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Swaps alone, and beside clones that save as much memory as the time allows.
  absl::Status SearchSmaller() {
    if (absl::Status s = TrySwaps(); !s.ok()) return s;
    auto grid = MakeGrid();
    if (!grid.ok()) return grid.status();
    size_t tries = 0;
    for (const double share : kSmallerShares) {
      auto points = grid->Of(share);
      if (!points.ok()) return points.status();
      for (const CloneSweeps& sweeps : *points) {
        if (run_.request().IsTooSlow(run_.request().full_speed_ns + sweeps.added_ns)) continue;
        if (tries++ == kMaxSmaller) return absl::OkStatus();
        if (absl::Status s = TryBesideSwaps(*grid, sweeps); !s.ok()) return s;
      }
    }
    return absl::OkStatus();
  }

  absl::Status TrySwaps() {
    if (!IsWorth(run_.BoundNs()) || (!may_swap_ && has_best())) return absl::OkStatus();
    return MakeSwaps(makes_drafts());
  }
  absl::Status MakeSwaps(bool is_draft) {
    swaps_status_ = run_.PlanSwaps(is_draft ? 0 : WorthNs());
    if (GetErrorReason(swaps_status_) == v1::ERROR_REASON_DOES_NOT_FIT) return absl::OkStatus();
    if (!swaps_status_.ok()) return swaps_status_;
    if (is_draft) {
      drafts_.push_back({run_.StepTimeNs(), std::nullopt});
    } else if (CostOf(run_) < best_cost_) {
      best_cost_ = CostOf(run_);
      best_ = nullptr;
    }
    return absl::OkStatus();
  }

  // A plan that need not fit in variations. So the first plan is none: a search that is cut short
  // has it.
  struct Draft {
    int64_t step_time_ns;
    std::optional<CloneSweeps> clones;  // Beside swaps; none: swaps alone.
  };
  bool makes_drafts() const { return run_.request().has_reserve() && !saves_memory_ && has_best(); }

  // Makes the fastest drafts fit in variations, and drops the rest.
  absl::Status Refine(const CloneGrid& grid) {
    std::vector<Draft> drafts = std::exchange(drafts_, {});
    std::stable_sort(drafts.begin(), drafts.end(), [](const Draft& a, const Draft& b) {
      return a.step_time_ns < b.step_time_ns;
    });
    for (size_t i = 0; i < std::min(drafts.size(), kMaxRefined); ++i) {
      if (drafts[i].step_time_ns >= WorthNs()) break;
      const absl::Status status = drafts[i].clones
                                      ? MakeBesideSwaps(grid, *drafts[i].clones, /*is_draft=*/false)
                                      : MakeSwaps(/*is_draft=*/false);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Swaps beside clones for the budget that do not fit: perhaps only because of a few buffers.
  absl::Status TryNearMisses(const CloneGrid& grid) {
    if (!may_swap_) return absl::OkStatus();
    std::stable_sort(alone_.begin() + static_cast<int64_t>(tried_near_misses_),
                     alone_.begin() + static_cast<int64_t>(tried_alone_), TakesLess);
    while (tried_near_misses_ < std::min(tried_alone_, kMaxNearMisses)) {
      const CloneSweeps& point = alone_[tried_near_misses_];
      const int64_t promised_ns = run_.request().full_speed_ns + point.added_ns;
      if (!IsWorth(promised_ns)) break;
      ++tried_near_misses_;
      if (absl::Status s = TryBesideSwaps(grid, point); !s.ok()) return s;
      if (best_ != nullptr && LeastNs() / kGiveUpRatio > promised_ns) break;
    }
    return absl::OkStatus();
  }

  // Clones alone that take less than `most_ns` with unlimited memory.
  absl::Status SearchAlone(const CloneGrid& grid, int64_t most_ns) {
    if (absl::Status s = TryAlone(grid, most_ns, kMaxUsual); !s.ok()) return s;
    // Not if the rest take too long.
    const bool is_hard = !has_best() && fragile_ == nullptr && !alone_.empty() &&
                         tried_alone_ == std::min(alone_.size(), kMaxUsual);
    if (is_hard && !std::exchange(is_fine_, true)) {
      absl::Status s = grid.AddWithin(CloneGrid::Fineness::kFine, &alone_);
      if (!s.ok()) return s;
      std::stable_sort(alone_.begin() + static_cast<int64_t>(tried_alone_), alone_.end(),
                       TakesLess);
    }
    if (!has_best()) {
      if (absl::Status s = TryAlone(grid, most_ns, kMaxAlone); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Takes the first plan of alone_ that fits, of the first `max_tries` that take less than
  // `most_ns` with unlimited memory; one that does not fit in all variations is kept in fragile_.
  absl::Status TryAlone(const CloneGrid& grid, int64_t most_ns, size_t max_tries) {
    while (tried_alone_ <
           std::min({alone_.size(), max_tries, fragile_ ? kMaxFragile : max_tries})) {
      const CloneSweeps& point = alone_[tried_alone_];
      const int64_t promised_ns = run_.request().full_speed_ns + point.added_ns;
      if (promised_ns >= most_ns || !IsWorth(promised_ns)) break;
      ++tried_alone_;
      auto cloned = Simulate(grid, point);
      if (!cloned.ok()) return cloned.status();
      if (*cloned == nullptr) continue;
      auto unfit = UnfitOf(&(*cloned)->run);
      if (!unfit.ok()) return unfit.status();
      if (*unfit == 0) {
        if (Take(*std::move(cloned))) return absl::OkStatus();
      } else if (*unfit < least_unfit_) {
        least_unfit_ = *unfit;
        fragile_ = *std::move(cloned);
      }
    }
    return absl::OkStatus();
  }

  // In how many variations a step does not fit; kNotAtAll if it exceeds a memory size.
  static absl::StatusOr<int> UnfitOf(BudgetRun* run) {
    if (!run->fits_unplanned()) return kNotAtAll;
    if (absl::Status s = run->KeepOrder(); !s.ok()) return s;
    auto fits = run->FitsElsewhere();
    if (!fits.ok()) return fits.status();
    return *fits ? run->unfit_variations() : kNotAtAll;
  }

  // If no plan fits in all variations, takes the one that fits in most, unless too few.
  void TakeFragile() {
    if (has_best() || fragile_ == nullptr) return;
    least_unfit_ = kNotAtAll;
    std::unique_ptr<Cloned> cloned = std::move(fragile_);
    if (!cloned->run.fits_most_variations()) return;
    cloned->run.AcceptUnplanned();
    Take(std::move(cloned));
  }

  // Clones for targets beyond the budget.
  struct Point {
    CloneSweeps sweeps;
    int64_t estimate_ns;
  };

  // The most promising first. The least time that swaps alone add is taken to be proportional to
  // the square of the part that is left to them, as if the memory in use over time were a hill
  // (bounds of 80 steps with clones: 0.7 to 1.5 times that, for parts from 0.2). So an estimate
  // needs no graph.
  absl::StatusOr<std::vector<Point>> PointsBesideSwaps(const CloneGrid& grid) {
    std::vector<Point> found;
    const int64_t full_ns = run_.request().full_speed_ns;
    const int64_t swaps_ns = run_.BoundNs() == kUnlimited ? 0 : run_.BoundNs() - full_ns;
    for (const double part : kSwappedParts) {
      auto points = grid.Beyond(part);
      if (!points.ok()) return points.status();
      for (CloneSweeps& sweeps : *points) {
        const auto swapped_ns = static_cast<int64_t>(part * part * static_cast<double>(swaps_ns));
        found.push_back({std::move(sweeps), full_ns + std::max(sweeps.added_ns, swapped_ns)});
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Point& a, const Point& b) { return a.estimate_ns < b.estimate_ns; });
    return found;
  }

  // One of PointsBesideSwaps, unless enough of its class were tried.
  absl::Status TryPoint(const CloneGrid& grid, const CloneSweeps& sweeps) {
    return tried_beside_swaps_[sweeps.terms]++ < kMaxBesideSwaps ? TryBesideSwaps(grid, sweeps)
                                                                 : absl::OkStatus();
  }

  absl::Status TryBesideSwaps(const CloneGrid& grid, const CloneSweeps& sweeps) {
    return MakeBesideSwaps(grid, sweeps, makes_drafts());
  }

  absl::Status MakeBesideSwaps(const CloneGrid& grid, const CloneSweeps& sweeps, bool is_draft) {
    auto cloned = Simulate(grid, sweeps);
    if (!cloned.ok()) return cloned.status();
    if (*cloned == nullptr || !(*cloned)->run.needs_plan()) return absl::OkStatus();
    BudgetRun& run = (*cloned)->run;
    if (absl::Status s = run.Order(); !s.ok()) return s;
    if (!IsWorthSearching(run.BoundNs())) return absl::OkStatus();
    const absl::Status status = run.PlanSwaps(is_draft ? 0 : WorthNs());
    fed_inputs_ = run.request().fed_inputs;
    if (GetErrorReason(status) == v1::ERROR_REASON_DOES_NOT_FIT) return absl::OkStatus();
    if (!status.ok()) return status;
    const auto bound_ns = static_cast<double>(std::max<int64_t>(run.BoundNs(), 1));
    const double times_bound = static_cast<double>(run.StepTimeNs()) / bound_ns;
    least_times_bound_ =
        least_times_bound_ > 0 ? std::min(least_times_bound_, times_bound) : times_bound;
    if (!is_draft) {
      Take(*std::move(cloned));
    } else if (!run.request().IsTooSlow(run.StepTimeNs())) {
      drafts_.push_back({run.StepTimeNs(), sweeps});
    }
    return absl::OkStatus();
  }

  // The step with the clones of these sweeps; null if they give no plan, or it is too large.
  absl::StatusOr<std::unique_ptr<Cloned>> Simulate(const CloneGrid& grid,
                                                   const CloneSweeps& sweeps) {
    auto found = grid.PlanOf(sweeps);
    if (!found.ok()) return found.status();
    if (!found->has_value()) return nullptr;
    CloneGrid::Plan& plan = **found;
    auto subject = StepSubject::WithClones(input_.facts.graph(), plan.clones, input_.facts.step(),
                                           input_.limits, input_.stop);
    if (!subject.ok()) {
      const v1::ErrorReason reason = GetErrorReason(subject.status());
      const bool is_large =
          reason == v1::ERROR_REASON_LIMIT_EXCEEDED || reason == v1::ERROR_REASON_RESULT_TOO_LARGE;
      if (is_large) return nullptr;
      return subject.status();
    }
    auto simulator = (*subject)->Simulator(input_.stop);
    if (!simulator.ok()) return simulator.status();
    auto eligibility = Eligibility::Create((*subject)->facts(), input_.options, input_.stop);
    if (!eligibility.ok()) return eligibility.status();
    auto cloned =
        std::make_unique<Cloned>(std::move(plan.clones), sweeps.terms, *std::move(subject),
                                 *std::move(eligibility), input_, *simulator, steps_);
    SwapPlan base = ordered_.base;
    base.controls = std::move(plan.controls);
    cloned->run.StartFrom(base, run_.request().full_speed_ns, fed_inputs_);
    if (absl::Status s = cloned->run.Simulate(); !s.ok()) return s;
    return cloned;
  }

  // Takes a plan that fits, if it is fast enough, and the best so far: one that does not fit in all
  // variations is no better than one that does. Returns whether it was taken.
  bool Take(std::unique_ptr<Cloned> cloned) {
    const int64_t cost = CostOf(cloned->run);
    if (run_.request().IsTooSlow(cloned->run.StepTimeNs()) || cost >= best_cost_) return false;
    const BudgetRun& best = best_ != nullptr ? best_->run : run_;
    if (has_best() && cloned->run.may_run_out() && !best.may_run_out()) return false;
    best_cost_ = cost;
    best_ = std::move(cloned);
    return true;
  }

  const StrategyInput& input_;
  std::vector<RecomputeClass> classes_;
  SearchBudget* const steps_;
  BudgetRun& run_;
  const OrderedStep& ordered_;
  const bool may_swap_;
  const bool saves_memory_;
  absl::Status swaps_status_;
  std::vector<Draft> drafts_;
  FedInputs fed_inputs_ = FedInputs::kStay;  // Of the last run beside clones.
  std::vector<CloneSweeps> alone_;  // Clones alone: first those that were tried, then by time.
  size_t tried_alone_ = 0;          // How many of them were.
  bool is_fine_ = false;            // The finer grid is among them.
  size_t tried_near_misses_ = 0;    // With how many of them swaps were tried.
  std::vector<size_t> tried_beside_swaps_;  // By class: points of PointsBesideSwaps.
  // Clones alone that fit, but not in all variations: those that fit in most.
  std::unique_ptr<Cloned> fragile_;
  int least_unfit_ = kNotAtAll;
  // The best plan so far, if any, and its time, or its peak if memory is to be saved. Null: the one
  // in run_, or none (has_best()).
  std::unique_ptr<Cloned> best_;
  int64_t best_cost_ = kUnlimited;
  int64_t most_ns_ = kUnlimited;  // Of FindFaster.
  // The least step time of clones beside swaps, as a multiple of its bound. 0: none yet.
  double least_times_bound_ = 0;
};

}  // namespace

v1::Recompute RecomputeOf(const v1::RewriteOptions& options) {
  const v1::Recompute recompute = options.budget().recompute();
  return recompute == v1::RECOMPUTE_UNSPECIFIED ? v1::RECOMPUTE_CHEAP : recompute;
}

absl::StatusOr<int64_t> FindBoundNs(const StepFacts& facts, const v1::RewriteOptions& options,
                                    const std::vector<NodeId>& order, PlanSimulator* simulator,
                                    const StopToken& stop) {
  std::vector<bool> may_run_again;  // Empty: none.
  if (RecomputeOf(options) != v1::RECOMPUTE_OFF) {
    if (absl::Status s = facts.Compute({Fact::kControlFlow, Fact::kBackwardPart}, stop); !s.ok())
      return s;
    auto rules = CloneRules::Find(facts, stop);
    if (!rules.ok()) return rules.status();
    RunAgain least = RunAgain::kSameBits;
    for (const RecomputeClass& each : kClasses) {
      if (each.option == RecomputeOf(options)) least = each.least;
    }
    StopPoller poll(stop);
    for (NodeId id(0); id < facts.graph().num_nodes(); ++id) {
      if (poll.Tick()) return stop.status("strategy");
      may_run_again.push_back(rules->Of(id) >= least);
    }
  }
  auto bounds = simulator->LowerBounds(order, may_run_again, stop);
  if (!bounds.ok()) return bounds.status();
  const std::vector<int64_t> budgets = facts.Budgets();
  int64_t most_ns = 0;
  for (size_t gpu = 0; gpu < budgets.size(); ++gpu) {
    if ((*bounds)[gpu].memory_bytes > budgets[gpu]) return 0;
    most_ns = std::max(most_ns, (*bounds)[gpu].step_time_ns);
  }
  return most_ns;
}

absl::Status PlanJointly(const StrategyInput& input, SearchBudget* steps, BudgetRun* run) {
  const v1::Recompute most = RecomputeOf(input.options);
  absl::Status status = JointSearch(input, v1::RECOMPUTE_OFF, most, steps, run).Run();
  if (!status.ok() || input.only_plan || run->request().objective.saves_memory()) return status;
  auto bound_ns = FindBoundNs(input.facts, input.options, LaunchOrder(run->plans().ordered().step),
                              input.simulator, input.stop);
  if (!bound_ns.ok()) return bound_ns.status();
  run->ReportBound(*bound_ns);
  return status;
}

absl::StatusOr<v1::MoreRecompute> FindMoreRecompute(const StrategyInput& input, int64_t than_ns,
                                                    SearchBudget* steps, BudgetRun* run) {
  const v1::Recompute most = RecomputeOf(input.options);
  const int64_t most_ns = than_ns == kUnlimited
                              ? kUnlimited
                              : static_cast<int64_t>(static_cast<double>(than_ns) / kClearlyFaster);
  if (most == v1::RECOMPUTE_ALL || run->request().objective.saves_memory() ||
      most_ns <= run->request().full_speed_ns) {
    return v1::MoreRecompute();
  }
  v1::RewriteOptions options = input.options;
  options.mutable_budget()->set_planning_effort(v1::PLANNING_EFFORT_LOW);
  const StrategyInput hinted{input.facts,  input.eligibility, options,
                             input.limits, input.simulator,   input.stop};
  auto found = JointSearch(hinted, most, v1::RECOMPUTE_ALL, steps, run).FindFaster(most_ns);
  // A search that was cut short gives no hint.
  const bool is_cut = GetErrorReason(found.status()) == v1::ERROR_REASON_SEARCH_TOO_LONG;
  return is_cut ? v1::MoreRecompute() : found;
}

}  // namespace spillway::core
