#include "rewrite_core/strategy/budget/budget_strategy.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/strategy/budget/budget_decisions.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/budget/launch_ranks.h"
#include "rewrite_core/strategy/budget/level_plan.h"
#include "rewrite_core/strategy/budget/objective.h"
#include "rewrite_core/strategy/budget/order_edges.h"
#include "rewrite_core/strategy/budget/plan_search.h"
#include "rewrite_core/strategy/budget/step_order.h"
#include "rewrite_core/strategy/counted_simulator.h"
#include "rewrite_core/strategy/device_fit.h"
#include "rewrite_core/strategy/fit_failure.h"
#include "rewrite_core/strategy/gpu_budgets.h"
#include "rewrite_core/strategy/level/level_strategy.h"
#include "rewrite_core/strategy/search_budget.h"
#include "rewrite_core/strategy/wanted_gpus.h"

namespace spillway::core {
namespace {

// Plans simulated for one GPU, by effort (options.proto says so).
constexpr int kLowPlays = 32;
constexpr int kMediumPlays = 128;
constexpr int kHighPlays = 8192;

// Where no plan is found for the whole budget, what fits not being monotonic, plans are looked for
// that do with these parts of it.
constexpr double kPlannedShares[] = {1.0, 0.97, 0.94, 0.9};

// A plan has to fit in so many sizes of memory between the budget and all of the GPU's, that one
// with it.
constexpr int kOtherSizes = 3;

// Outputs smaller than kLeastOrderedPart of the peak are worth an order edge, down to this part, if
// edges for all of them take this much off the peak that is left.
constexpr int64_t kLeastOfMany = 16384;
constexpr double kManyGain = 0.03;

// Where a plan has less than this part of the speed that the bound allows, `level` is tuned, too.
constexpr double kFarFromBound = 0.85;

// What else a step may be like than it is simulated: TensorFlow runs any ready op, and a link has
// not always the speed that its preset says. A plan is tried with all of the GPU's memory, as the
// reserve is for these.
constexpr StepVariation kVariations[] = {
    {ReadyOrder::kLastReady, 0, 100}, {ReadyOrder::kMixed, 1, 100},
    {ReadyOrder::kMixed, 2, 100},     {ReadyOrder::kMixed, 3, 300},
    {ReadyOrder::kFirstReady, 0, 33}, {ReadyOrder::kFirstReady, 0, 300},
};
// Where it does not fit in some of these, plans are looked for that do with these parts of the
// budget, and taken if they fit in more and are not slower by more than a part.
constexpr double kSteadierShares[] = {0.96, 0.92};
constexpr double kSteadierCost = 0.05;

// Of several GPUs, so many plans are made anew because they do not fit all at once.
constexpr size_t kRepairsPerGpu = 2;

// The smallest budget for which there is a plan is told to one part in so many of the peak.
constexpr int64_t kSmallestBudgetParts = 64;

// Where any plan within max_slowdown will do, what is faster than it by one part in so many: no
// less than the part by which SearchPlan takes a plan to be at full speed.
constexpr int64_t kFastEnoughPart = 1000;

int MaxPlays(v1::PlanningEffort effort) {
  switch (effort) {
    case v1::PLANNING_EFFORT_LOW:
      return kLowPlays;
    case v1::PLANNING_EFFORT_HIGH:
      return kHighPlays;
    default:
      return kMediumPlays;
  }
}

v1::PlanningEffort EffortOf(const v1::RewriteOptions& options) {
  const v1::PlanningEffort effort = options.budget().planning_effort();
  return effort == v1::PLANNING_EFFORT_UNSPECIFIED ? v1::PLANNING_EFFORT_MEDIUM : effort;
}

class BudgetRun {
 public:
  explicit BudgetRun(const StrategyInput& input)
      : input_(input),
        facts_(input.facts),
        eligibility_(input.eligibility),
        options_(input.options),
        stop_(input.stop),
        effort_(EffortOf(input.options)),
        objective_(input.options.budget()),
        steps_(input.limits.max_search_steps(), input.stop),
        simulator_(input.simulator, input.facts.graph().num_nodes(), &steps_,
                   "name some of the GPUs with devices, set planning_effort to LOW, or raise the "
                   "limit"),
        report_(*result_.report.mutable_budget()) {}

  absl::StatusOr<StrategyResult> Run() {
    report_.set_planning_effort(effort_);
    report_.set_objective(objective_.kind());
    if (objective_.max_slowdown()) report_.set_max_slowdown(*objective_.max_slowdown());
    base_.cpu_device = result_.plan.cpu_device = options_.cpu_device();
    if (absl::Status s = CheckKnownBatch(facts_, ""); !s.ok()) return s;
    gpus_ = FindWantedGpus(facts_, eligibility_);
    if (gpus_.size() == 1 && gpus_[0].is_many) return TooManyGpusError();
    if (absl::Status s = SimulateUnswapped(); !s.ok()) return s;
    if (!lacking_.empty()) {
      if (absl::Status s = Order(); !s.ok()) return s;
      const absl::Status planned = TakeLevelIfFaster(PlanAll());
      if (MayStay() && (GetErrorReason(planned) == v1::ERROR_REASON_DOES_NOT_FIT ||
                        (planned.ok() && result_.plan.empty()))) {
        StayAsItCame();
      } else if (!planned.ok()) {
        return planned;
      }
    }
    if (options_.decision_detail() != v1::DECISION_DETAIL_NONE) {
      auto decisions = DecideTensors(facts_, eligibility_, result_.plan, has_gap_, idle_, stop_);
      if (!decisions.ok()) return decisions.status();
      result_.decisions = *std::move(decisions);
    }
    for (v1::DeviceFit& fit : fits_) *result_.report.add_fits() = std::move(fit);
    if (result_.plan.empty() && result_.why_nothing.empty()) {
      result_.why_nothing = gpus_.empty() ? "no node runs on a GPU: there is nothing to swap"
                                          : NotNeededText(result_.report.fits(), facts_);
    }
    return std::move(result_);
  }

 private:
  int64_t budget_bytes() const { return facts_.hardware().device_budget_bytes(); }

  // What the step takes as the graph came, and on which GPUs that is too much.
  absl::Status SimulateUnswapped() {
    StepTerms terms;
    terms.record_operations = true;
    auto unswapped = simulator_.Simulate(base_, terms, stop_);
    if (!unswapped.ok()) return unswapped.status();
    unswapped_ = *std::move(unswapped);
    for (size_t i = 0; i < gpus_.size(); ++i) {
      const int32_t gpu = gpus_[i].index;
      fits_.push_back(FitOfUnswapped(unswapped_, gpu, budget_bytes(), facts_));
      unswapped_peak_bytes_ = std::max(unswapped_peak_bytes_, unswapped_.peak_bytes(gpu));
      auto outcome = simulator_.Simulate(base_, StepTerms::OneGpu(gpu, budget_bytes()), stop_);
      if (!outcome.ok()) return outcome.status();
      if (!outcome->fits) {
        lacking_.push_back(i);
        continue;
      }
      const v1::DeviceFit unplanned = fits_[i];
      fits_[i].set_not_needed(true);
      absl::Status s = AddPlanned(base_, *outcome, gpu, facts_, &simulator_, stop_, &fits_[i]);
      if (!s.ok()) return s;
      if (objective_.saves_memory()) {
        as_it_came_.emplace(i, fits_[i]);
        fits_[i] = unplanned;
        lacking_.push_back(i);
        continue;
      }
      for (size_t device = 0; device < gpus_[i].devices.size(); ++device) {
        if (gpus_[i].devices[device]) idle_.insert(static_cast<int32_t>(device));
      }
    }
    return absl::OkStatus();
  }

  // Where less memory is asked for than there is, and the graph fits as it came, it may stay so.
  bool MayStay() const { return !gpus_.empty() && as_it_came_.size() == gpus_.size(); }
  void StayAsItCame() {
    for (const auto& [i, fit] : as_it_came_) fits_[i] = fit;
    result_.plan = SwapPlan();
    result_.plan.cpu_device = base_.cpu_device;
    result_.why_nothing = absl::StrCat(
        "the graph fits as it came, and no plan was found with which a step takes less "
        "memory and at most ",
        objective_.MaxSlowdownText());
  }

  bool IsTooSlow(int64_t step_time_ns) const {
    return step_time_ns > objective_.MaxStepTime(unswapped_.step_time_ns());
  }
  // Fast enough is what comes within this: a search ends there, or hardly above.
  int64_t FastEnough() const {
    const int64_t time = objective_.MaxStepTime(unswapped_.step_time_ns());
    return time - time / kFastEnoughPart;
  }

  // Plans that were made one by one may slow each other down. What the step takes then; 0: it is
  // fast enough.
  absl::StatusOr<int64_t> TooSlowTogether() {
    if (!objective_.max_slowdown() || gpus_.size() < 2) return 0;
    const bool are_all = gpus_.size() == facts_.placement().devices().size();
    auto outcome = simulator_.Simulate(
        result_.plan, are_all ? StepTerms::AllGpus(budget_bytes()) : StepTerms(), stop_);
    if (!outcome.ok()) return outcome.status();
    return IsTooSlow(outcome->step_time_ns()) ? outcome->step_time_ns() : 0;
  }

  // Order edges first: they cost no copy. The step with them is what plans are made for.
  absl::Status Order() {
    ordered_ = unswapped_;
    if (absl::Status s = OrderWith(kLeastOrderedPart, /*gain=*/0); !s.ok()) return s;
    if (absl::Status s = OrderWith(kLeastOfMany, kManyGain); !s.ok()) return s;
    if (!base_.controls.empty()) return absl::OkStatus();
    auto ranks = RankByLaunch(facts_, ordered_, {}, stop_);
    if (!ranks.ok()) return ranks.status();
    ranks_ = *std::move(ranks);
    return absl::OkStatus();
  }

  // With edges for outputs of at least a part of the peak, if they take more than `gain` of what is
  // left of it.
  absl::Status OrderWith(int64_t least_part, double gain) {
    SwapPlan plan;
    plan.cpu_device = base_.cpu_device;
    for (size_t i : lacking_) {
      auto order = StepOrder::Create(facts_, gpus_[i].index, unswapped_, stop_);
      if (!order.ok()) return order.status();
      const int64_t least = unswapped_.peak_bytes(gpus_[i].index) / least_part;
      auto edges = FindOrderEdges(facts_, *order, least, stop_);
      if (!edges.ok()) return edges.status();
      plan.controls.insert(plan.controls.end(), edges->begin(), edges->end());
    }
    if (plan.controls.size() <= base_.controls.size()) return absl::OkStatus();
    StepTerms terms;
    terms.record_operations = true;
    auto ordered = simulator_.Simulate(plan, terms, stop_);
    if (!ordered.ok()) return ordered.status();
    const auto peak = [this](const StepResult& step) {
      double bytes = 0;
      for (size_t i : lacking_) bytes += static_cast<double>(step.peak_bytes(gpus_[i].index));
      return bytes;
    };
    if (peak(*ordered) >= (1 - gain) * peak(ordered_)) return absl::OkStatus();
    if (IsTooSlow(ordered->step_time_ns())) return absl::OkStatus();
    auto ranks = RankByLaunch(facts_, *ordered, plan.controls, stop_);
    if (!ranks.ok()) return ranks.status();
    if (ranks->empty()) return absl::OkStatus();  // Among nodes that lead to a fed one.
    ordered_ = *std::move(ordered);
    base_ = std::move(plan);
    ranks_ = *std::move(ranks);
    return absl::OkStatus();
  }

  // Each GPU as if the others had memory without end, but with the swaps that they have so far. All
  // at once they may hold memory for longer: whichever then runs out is planned again, with what
  // the others have by now, and after some of that all are, for less of the budget.
  absl::Status PlanAll() {
    auto needs = Needs::Find(facts_.graph(), facts_.topology(), stop_);
    if (!needs.ok()) return needs.status();
    unswapped_fits_ = fits_;
    FitFailure failure;
    for (const double share : kBudgetShares) {
      swaps_.assign(lacking_.size(), {});
      report_.clear_devices();
      for (size_t k = 0; k < lacking_.size(); ++k) {
        report_.add_devices();
        if (absl::Status s = PlanGpu(k, share, *needs); !s.ok()) return s;
      }
      for (size_t repair = 0;; ++repair) {
        CollectSwaps();
        const bool may_repair = repair < kRepairsPerGpu * lacking_.size();
        size_t next = repair % lacking_.size();
        if (gpus_.size() > 1 && gpus_.size() == facts_.placement().devices().size()) {
          auto fits = SimulateTogether(result_.plan, facts_, &simulator_, stop_, &failure);
          if (!fits.ok()) return fits.status();
          if (!*fits) {
            const auto failed = std::find_if(lacking_.begin(), lacking_.end(), [&](size_t i) {
              return facts_.placement().devices()[gpus_[i].index] == failure.gpu;
            });
            if (!may_repair || failure.on_host || failed == lacking_.end()) break;
            next = static_cast<size_t>(failed - lacking_.begin());
            if (absl::Status s = PlanGpu(next, share, *needs); !s.ok()) return s;
            continue;
          }
        }
        auto slow_ns = TooSlowTogether();
        if (!slow_ns.ok()) return slow_ns.status();
        if (*slow_ns == 0) return absl::OkStatus();
        if (!may_repair) {
          return TooSlowError(objective_, "", *slow_ns, unswapped_.step_time_ns(),
                              facts_.hardware(), budget_bytes(), /*smallest_budget_bytes=*/0);
        }
        if (absl::Status s = PlanGpu(next, share, *needs); !s.ok()) return s;
      }
    }
    return NotTogetherError(failure, unswapped_peak_bytes_, facts_, &simulator_, stop_);
  }

  void CollectSwaps() {
    result_.plan.swaps.clear();
    for (const auto& swaps : swaps_) {
      result_.plan.swaps.insert(result_.plan.swaps.end(), swaps.begin(), swaps.end());
    }
    SortSwaps(&result_.plan.swaps);
  }

  // What the GPUs but lacking_[k] have so far.
  std::vector<PlannedSwap> OtherSwaps(size_t k) const {
    std::vector<PlannedSwap> others;
    for (size_t i = 0; i < swaps_.size(); ++i) {
      if (i != k) others.insert(others.end(), swaps_[i].begin(), swaps_[i].end());
    }
    return others;
  }

  // Of lacking_[k], within a share of the budget.
  absl::Status PlanGpu(size_t k, double share, const Needs& needs) {
    const size_t i = lacking_[k];
    other_swaps_ = OtherSwaps(k);
    fits_[i] = unswapped_fits_[i];
    const int32_t gpu = gpus_[i].index;
    auto order = StepOrder::Create(facts_, gpu, ordered_, stop_);
    if (!order.ok()) return order.status();
    auto planner = BudgetPlanner::Create(facts_, eligibility_, needs, *order, ranks_, stop_);
    if (!planner.ok()) return planner.status();
    for (const Gap& gap : planner->gaps()) has_gap_.insert(order->buffers()[gap.buffer]);
    v1::BudgetDevice& device = *report_.mutable_devices(static_cast<int>(k));
    device.Clear();
    device.set_device(fits_[i].device());
    device.set_gap_count(static_cast<int64_t>(planner->gaps().size()));
    if (!base_.controls.empty()) device.set_ordered_peak_bytes(ordered_.peak_bytes(gpu));

    const int64_t bound_ns = BoundOf(gpu);
    if (bound_ns > 0) device.set_step_time_bound_ns(bound_ns);

    const int64_t usable = ShareOf(budget_bytes(), share);
    auto found = objective_.saves_memory() ? SearchLeast(gpu, usable, *planner, *order, &device)
                                           : Search(gpu, usable, *planner, *order, &device);
    if (!found.ok()) return found.status();
    SwapPlan plan = base_;
    if (found->best && !objective_.saves_memory()) {
      if (absl::Status s = LookForSteadier(gpu, usable, *planner, *order, &*found, &device);
          !s.ok()) {
        return s;
      }
    }
    if (found->best) plan.swaps = std::move(found->best->swaps);
    if (!found->cut_short && !(found->best && objective_.saves_memory())) {
      if (absl::Status s = TryLevel(i, usable, bound_ns, &*found, &plan, &device); !s.ok()) {
        return s;
      }
    }
    if (!found->best) return DoesNotFit(gpu, found->failure, *planner, *order);
    if (IsTooSlow(found->best->outcome.step_time_ns())) {
      return TooSlow(gpu, found->best->outcome.step_time_ns(), *planner, *order);
    }
    for (int64_t budget : OtherBudgets()) device.add_other_budget_bytes(budget);

    // A search that was cut short has left no steps for the need.
    absl::Status s = AddPlanned(plan, found->best->outcome, gpu, facts_,
                                found->cut_short ? nullptr : &simulator_, stop_, &fits_[i]);
    if (!s.ok()) return s;
    result_.plan.controls = std::move(plan.controls);
    swaps_[k] = std::move(plan.swaps);
    return absl::OkStatus();
  }

  // Of the order with the order edges; 0: no plan fits.
  int64_t BoundOf(int32_t gpu) {
    if (bounds_.empty()) {  // Those of all GPUs, however often one is planned.
      auto bounds = simulator_.LowerBounds(ordered_.launch_ahead.order, stop_);
      if (!bounds.ok()) return 0;
      bounds_ = *std::move(bounds);
    }
    return bounds_[gpu].memory_bytes > budget_bytes() ? 0 : bounds_[gpu].step_time_ns;
  }

  // As TryLevel, of several GPUs: their plans by `level`, all at once. `planned`: what came of our
  // own.
  absl::Status TakeLevelIfFaster(const absl::Status& planned) {
    const bool has_none = GetErrorReason(planned) == v1::ERROR_REASON_DOES_NOT_FIT;
    if (lacking_.size() < 2 || gpus_.size() < facts_.placement().devices().size() ||
        objective_.saves_memory() || !(planned.ok() || has_none)) {
      return planned;
    }
    int64_t own_ns = kUnlimited;
    if (!has_none) {
      auto own = simulator_.Simulate(result_.plan, StepTerms::AllGpus(budget_bytes()), stop_);
      if (!own.ok()) return UnlessTooLong(own.status());
      own_ns = own->step_time_ns();
      int64_t bound_ns = 0;
      for (const v1::BudgetDevice& device : report_.devices()) {
        bound_ns = std::max(bound_ns, device.step_time_bound_ns());
      }
      if (static_cast<double>(bound_ns) >= kFarFromBound * static_cast<double>(own_ns)) {
        return planned;
      }
    }
    v1::RewriteOptions options = options_;
    options.mutable_level()->set_pace(true);
    options.set_decision_detail(v1::DECISION_DETAIL_NONE);
    auto level = PlanLevel({facts_, eligibility_, options, input_.limits, &simulator_, stop_});
    if (GetErrorReason(level.status()) == v1::ERROR_REASON_DOES_NOT_FIT) return planned;
    if (!level.ok()) return has_none ? level.status() : UnlessTooLong(level.status());
    std::vector<int64_t> budgets = OtherBudgets();
    budgets.insert(budgets.begin(), budget_bytes());
    for (const int64_t budget : budgets) {
      auto outcome = simulator_.Simulate(level->plan, StepTerms::AllGpus(budget), stop_);
      if (!outcome.ok()) return has_none ? outcome.status() : UnlessTooLong(outcome.status());
      if (!outcome->fits) return planned;
      if (budget == budgets[0] &&
          (outcome->step_time_ns() >= own_ns || IsTooSlow(outcome->step_time_ns()))) {
        return planned;
      }
    }
    result_.plan = std::move(level->plan);
    fits_.assign(level->report.fits().begin(), level->report.fits().end());
    report_.clear_devices();
    for (v1::LevelDevice& of_level : *level->report.mutable_level()->mutable_devices()) {
      v1::BudgetDevice& device = *report_.add_devices();
      device.set_device(of_level.device());
      for (int64_t budget : OtherBudgets()) device.add_other_budget_bytes(budget);
      *device.mutable_level() = std::move(of_level);
    }
    return absl::OkStatus();
  }

  // That the request's steps are spent is no error where there is a plan.
  static absl::Status UnlessTooLong(absl::Status status) {
    const bool is_too_long = GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG;
    return is_too_long ? absl::OkStatus() : status;
  }

  // The plan with all of the GPU's memory, in other orders and with other times: in how many it
  // does not fit.
  absl::StatusOr<int> CountUnfit(int32_t gpu, const FoundPlan& found) {
    SwapPlan plan = base_;
    plan.swaps = found.swaps;
    plan.swaps.insert(plan.swaps.end(), other_swaps_.begin(), other_swaps_.end());
    return CountUnfit(gpu, plan);
  }
  absl::StatusOr<int> CountUnfit(int32_t gpu, const SwapPlan& plan) {
    StepTerms terms = StepTerms::OneGpu(gpu, facts_.hardware().gpu_memory_bytes);
    terms.placed_alone = true;
    int count = 0;
    for (const StepVariation& variation : kVariations) {
      terms.variation = variation;
      auto outcome = simulator_.Simulate(plan, terms, stop_);
      if (!outcome.ok()) return outcome.status();
      count += !outcome->fits;
    }
    return count;
  }

  // The reserve is for other orders and times; a plan that does not fit in them, with all of the
  // memory, gives way to one that fits in more, if there is one that is hardly slower.
  absl::Status LookForSteadier(int32_t gpu, int64_t usable, const BudgetPlanner& planner,
                               const StepOrder& order, PlanSearchResult* found,
                               v1::BudgetDevice* device) {
    if (facts_.hardware().gpu_memory_bytes <= budget_bytes() || found->cut_short) {
      return absl::OkStatus();
    }
    auto unfit = CountUnfit(gpu, *found->best);
    const int64_t fastest_ns = found->best->outcome.step_time_ns();
    for (const double share : kSteadierShares) {
      if (!unfit.ok() || *unfit == 0) break;
      PlanSearchTerms terms = TermsOf(gpu, ShareOf(usable, share));
      terms.other_budgets.insert(terms.other_budgets.begin(), usable);
      auto steadier = SearchPlan(terms, base_, planner, order, &simulator_, stop_);
      if (!steadier.ok()) {
        unfit = steadier.status();
        break;
      }
      CountPlays(*steadier, device);
      if (!steadier->best) continue;
      const double slower = static_cast<double>(steadier->best->outcome.step_time_ns()) /
                            static_cast<double>(fastest_ns);
      if (slower > 1 + kSteadierCost || IsTooSlow(steadier->best->outcome.step_time_ns())) break;
      auto others = CountUnfit(gpu, *steadier->best);
      if (!others.ok() || *others < *unfit) {
        unfit = others;
        *found = *std::move(steadier);
        device->set_fastest_step_time_ns(fastest_ns);
      }
    }
    if (GetErrorReason(unfit.status()) == v1::ERROR_REASON_SEARCH_TOO_LONG) {
      found->cut_short = true;  // What was found so far stands, untried.
      device->set_cut_short(true);
      device->clear_fastest_step_time_ns();
      return absl::OkStatus();
    }
    if (!unfit.ok()) return unfit.status();
    device->set_variation_count(static_cast<int32_t>(std::size(kVariations)));
    device->set_unfit_variation_count(*unfit);
    return absl::OkStatus();
  }

  // Never behind `level`: its plan is taken if it is faster, and fits in the same sizes.
  absl::Status TryLevel(size_t i, int64_t usable, int64_t bound_ns, PlanSearchResult* found,
                        SwapPlan* plan, v1::BudgetDevice* device) {
    // Its edges, and those of the order that other plans have, may close a cycle.
    if (lacking_.size() > 1) return absl::OkStatus();
    const int64_t own_ns = found->best ? found->best->outcome.step_time_ns() : kUnlimited;
    if (found->best &&
        static_cast<double>(bound_ns) >= kFarFromBound * static_cast<double>(own_ns)) {
      return absl::OkStatus();
    }
    auto tuned = TunePacedLevel(facts_, eligibility_, gpus_[i], usable, base_.cpu_device, &steps_,
                                &simulator_, stop_);
    if (GetErrorReason(tuned.status()) == v1::ERROR_REASON_SEARCH_TOO_LONG && found->best) {
      found->cut_short = true;
      device->set_cut_short(true);
      return absl::OkStatus();
    }
    if (!tuned.ok()) return tuned.status();
    if (!*tuned) return absl::OkStatus();
    SwapPlan& level = (*tuned)->plan;
    std::vector<int64_t> budgets = OtherBudgets();
    budgets.insert(budgets.begin(), usable);
    FoundPlan of_level;
    for (size_t k = 0; k < budgets.size(); ++k) {
      auto outcome =
          simulator_.Simulate(level, StepTerms::OneGpu(gpus_[i].index, budgets[k]), stop_);
      if (!outcome.ok()) return outcome.status();
      if (!outcome->fits) return absl::OkStatus();
      if (k > 0) continue;
      if (outcome->step_time_ns() >= own_ns) return absl::OkStatus();
      of_level.outcome = *std::move(outcome);
    }
    device->clear_fastest_step_time_ns();
    if (facts_.hardware().gpu_memory_bytes > budget_bytes()) {
      auto unfit = CountUnfit(gpus_[i].index, level);
      if (!unfit.ok()) return unfit.status();
      device->set_variation_count(static_cast<int32_t>(std::size(kVariations)));
      device->set_unfit_variation_count(*unfit);
    }
    found->best = std::move(of_level);
    *plan = std::move(level);
    *device->mutable_level() = std::move((*tuned)->report);
    return absl::OkStatus();
  }

  PlanSearchTerms TermsOf(int32_t gpu, int64_t budget) const {
    PlanSearchTerms terms;
    terms.gpu = gpu;
    terms.budget_bytes = budget;
    terms.other_swaps = other_swaps_;
    terms.other_budgets = OtherBudgets();
    terms.full_speed_ns = unswapped_.step_time_ns();
    terms.max_plays = MaxPlays(effort_);
    return terms;
  }

  static void CountPlays(const PlanSearchResult& found, v1::BudgetDevice* device) {
    device->set_plan_count(device->plan_count() + found.num_plays);
    device->set_fitting_plan_count(device->fitting_plan_count() + found.num_fitting);
    device->set_cut_short(found.cut_short);
  }

  static int64_t ShareOf(int64_t bytes, double share) {
    return share < 1 ? static_cast<int64_t>(share * static_cast<double>(bytes)) : bytes;
  }

  // With all of `budget`; where no plan is found, one is looked for that does with less, and fits
  // it.
  absl::StatusOr<PlanSearchResult> Search(int32_t gpu, int64_t budget, const BudgetPlanner& planner,
                                          const StepOrder& order, v1::BudgetDevice* device) {
    PlanSearchResult first;
    for (const double share : kPlannedShares) {
      PlanSearchTerms terms = TermsOf(gpu, ShareOf(budget, share));
      if (share < 1) terms.other_budgets.insert(terms.other_budgets.begin(), budget);
      auto found = SearchPlan(terms, base_, planner, order, &simulator_, stop_);
      if (!found.ok()) return found;
      CountPlays(*found, device);
      if (found->best) return found;
      if (share == 1) first = *std::move(found);
    }
    return first;
  }

  // A plan that is fast enough for the least budget, found with the least effort, and then one for
  // that budget with all effort. It fits `usable` and the other sizes, too. Where there is none,
  // what Search finds.
  absl::StatusOr<PlanSearchResult> SearchLeast(int32_t gpu, int64_t usable,
                                               const BudgetPlanner& planner, const StepOrder& order,
                                               v1::BudgetDevice* device) {
    PlanSearchResult best;
    const auto search = [&](int64_t budget, int max_plays,
                            int64_t enough_ns) -> absl::StatusOr<bool> {
      PlanSearchTerms terms = TermsOf(gpu, budget);
      if (budget < usable) terms.other_budgets.insert(terms.other_budgets.begin(), usable);
      terms.max_plays = max_plays;
      terms.full_speed_ns = enough_ns;
      auto found = SearchPlan(terms, base_, planner, order, &simulator_, stop_);
      if (!found.ok()) return found.status();
      CountPlays(*found, device);
      if (!found->best || IsTooSlow(found->best->outcome.step_time_ns())) return false;
      best = *std::move(found);
      device->set_least_budget_bytes(budget);
      return true;
    };
    const auto suffices = [&](int64_t budget) { return search(budget, kLowPlays, FastEnough()); };
    const int64_t peak = ordered_.peak_bytes(gpu);
    int64_t high = std::min(peak, usable);
    auto does = suffices(high);
    if (does.ok() && !*does && high < usable) does = suffices(high = usable);
    if (does.ok() && !*does) {
      auto found = Search(gpu, usable, planner, order, device);
      if (found.ok() && found->best) device->set_least_budget_bytes(usable);
      return found;
    }
    absl::Status status = does.status();
    if (status.ok()) {
      auto least = LeastBudget(ordered_.resident_bytes(gpu), high, peak / kSmallestBudgetParts + 1,
                               suffices);
      if (least.ok()) {
        does = search(*least, MaxPlays(effort_), unswapped_.step_time_ns());
        status = does.status();
      } else {
        status = least.status();
      }
    }
    if (GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG && best.best) {
      best.cut_short = true;  // What was found so far stands.
      device->set_cut_short(true);
      status = absl::OkStatus();
    }
    if (!status.ok()) return status;
    return best;
  }

  std::vector<int64_t> OtherBudgets() const {
    const int64_t budget = budget_bytes();
    const int64_t rest = facts_.hardware().gpu_memory_bytes - budget;
    std::vector<int64_t> budgets;
    for (int i = 1; i <= kOtherSizes && rest >= kOtherSizes; ++i) {
      budgets.push_back(budget + rest / kOtherSizes * i);
    }
    return budgets;
  }

  // The smallest budget known to do, by searches with the least effort; 0: none is known.
  absl::StatusOr<int64_t> SmallestBudget(int32_t gpu, const BudgetPlanner& planner,
                                         const StepOrder& order) {
    const int64_t peak = ordered_.peak_bytes(gpu);
    auto need = FindNeed(&simulator_, base_, StepTerms::OneGpu(gpu, 0), peak, stop_);
    if (!need.ok()) return need.status();
    const auto suffices = [&](int64_t budget) -> absl::StatusOr<bool> {
      PlanSearchTerms terms;
      terms.gpu = gpu;
      terms.budget_bytes = budget;
      terms.full_speed_ns = FastEnough();  // The first plan that fits, and is, will do.
      terms.max_plays = kLowPlays;
      auto found = SearchPlan(terms, base_, planner, order, &simulator_, stop_);
      if (!found.ok()) return found.status();
      return found->best && !IsTooSlow(found->best->outcome.step_time_ns());
    };
    return LeastBudget(budget_bytes(), *need, peak / kSmallestBudgetParts + 1, suffices);
  }

  absl::Status DoesNotFit(int32_t gpu, const StepResult& failure, const BudgetPlanner& planner,
                          const StepOrder& order) {
    auto smallest = SmallestBudget(gpu, planner, order);
    if (!smallest.ok()) return smallest.status();
    const std::string effect =
        objective_.max_slowdown()
            ? absl::StrCat("there is one that takes at most ", objective_.MaxSlowdownText())
            : "there is one";
    const std::string& name = facts_.placement().devices()[gpu];
    const std::string claim = absl::StrCat(
        "no plan was found that fits the ", BudgetText(facts_.hardware(), budget_bytes()),
        " of GPU ", name.empty() ? "(no name)" : Quoted(name), HostText(gpu));
    return DoesNotFitError(claim, FailureOf(failure, gpu, facts_), facts_.hardware(),
                           budget_bytes(), {*smallest, effect});
  }

  // The host's memory, where it cannot hold what the GPU lacks.
  std::string HostText(int32_t gpu) const {
    const int64_t lacking = ordered_.peak_bytes(gpu) - budget_bytes();
    const int64_t host = facts_.hardware().host_memory_bytes;
    const auto gpus = std::max<int64_t>(1, facts_.placement().devices().size());
    if (lacking <= host / gpus) return "";
    return absl::StrCat(" with ", BytesText(host), " of the host's (host_memory_bytes",
                        gpus > 1 ? ", of all GPUs" : "", "), where swaps would have to hold about ",
                        BytesText(lacking));
  }

  absl::Status TooSlow(int32_t gpu, int64_t step_time_ns, const BudgetPlanner& planner,
                       const StepOrder& order) {
    auto smallest = SmallestBudget(gpu, planner, order);
    if (!smallest.ok()) return smallest.status();
    return TooSlowError(objective_, facts_.placement().devices()[gpu], step_time_ns,
                        unswapped_.step_time_ns(), facts_.hardware(), budget_bytes(), *smallest);
  }

  const StrategyInput& input_;
  const StepFacts& facts_;
  const Eligibility& eligibility_;
  const v1::RewriteOptions& options_;
  const StopToken& stop_;
  const v1::PlanningEffort effort_;
  const Objective objective_;
  SearchBudget steps_;  // Of all GPUs.
  CountedSimulator simulator_;
  SwapPlan base_;                     // The order edges.
  StepResult unswapped_, ordered_;    // With memory without end: as the graph came; with base_.
  std::vector<int32_t> ranks_;        // Of all nodes, with base_.
  std::vector<DeviceBounds> bounds_;  // By GPU, of ordered_; empty: not known yet.
  std::vector<WantedGpu> gpus_;
  std::vector<v1::DeviceFit> fits_;              // By GPU.
  std::vector<size_t> lacking_;                  // Into both: those that need a plan.
  int64_t unswapped_peak_bytes_ = 0;             // Of the GPU that takes most as the graph came.
  std::map<size_t, v1::DeviceFit> as_it_came_;   // Of those that are planned though they fit.
  std::vector<v1::DeviceFit> unswapped_fits_;    // As fits_ were before any plan.
  std::vector<std::vector<PlannedSwap>> swaps_;  // By GPU of lacking_: so far.
  std::vector<PlannedSwap> other_swaps_;         // Of all but the one that is planned.
  std::set<int32_t> idle_;                       // Device ids of the others.
  std::set<int32_t> has_gap_;                    // Buffers that could be away for some time.
  StrategyResult result_;
  v1::BudgetReport& report_;  // Of result_.
};

}  // namespace

absl::Status CheckBudgetStrategy(const v1::RewriteOptions& options, const StopToken&) {
  const v1::PlanningEffort effort = options.budget().planning_effort();
  if (v1::PlanningEffort_IsValid(effort)) return CheckObjective(options.budget());
  return InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("planning_effort is ", static_cast<int>(effort), "; it is LOW, MEDIUM or HIGH"),
      {{"option", "planning_effort"}, {"value", absl::StrCat(static_cast<int>(effort))}});
}

absl::StatusOr<StrategyResult> PlanBudget(const StrategyInput& input) {
  return BudgetRun(input).Run();
}

}  // namespace spillway::core
