#include "rewrite_core/strategy/budget/budget_strategy.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/strategy/budget/budget_decisions.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/budget/order_edges.h"
#include "rewrite_core/strategy/budget/plan_search.h"
#include "rewrite_core/strategy/budget/step_order.h"
#include "rewrite_core/strategy/counted_simulator.h"
#include "rewrite_core/strategy/device_fit.h"
#include "rewrite_core/strategy/fit_failure.h"
#include "rewrite_core/strategy/gpu_budgets.h"
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

// The smallest budget for which there is a plan is told to one part in so many of the peak.
constexpr int64_t kSmallestBudgetParts = 64;

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
      : facts_(input.facts),
        eligibility_(input.eligibility),
        options_(input.options),
        stop_(input.stop),
        effort_(EffortOf(input.options)),
        steps_(input.limits.max_search_steps(), input.stop),
        simulator_(input.simulator, input.facts.graph().num_nodes(), &steps_,
                   "name some of the GPUs with devices, set planning_effort to LOW, or raise the "
                   "limit"),
        report_(*result_.report.mutable_budget()) {}

  absl::StatusOr<StrategyResult> Run() {
    report_.set_planning_effort(effort_);
    base_.cpu_device = result_.plan.cpu_device = options_.cpu_device();
    if (absl::Status s = CheckKnownBatch(facts_, ""); !s.ok()) return s;
    gpus_ = FindWantedGpus(facts_, eligibility_);
    if (gpus_.size() == 1 && gpus_[0].is_many) return TooManyGpusError();
    if (absl::Status s = SimulateUnswapped(); !s.ok()) return s;
    if (!lacking_.empty()) {
      if (absl::Status s = Order(); !s.ok()) return s;
      if (absl::Status s = PlanAll(); !s.ok()) return s;
    }
    if (options_.decision_detail() != v1::DECISION_DETAIL_NONE) {
      auto decisions = DecideTensors(facts_, eligibility_, result_.plan, has_gap_, idle_, stop_);
      if (!decisions.ok()) return decisions.status();
      result_.decisions = *std::move(decisions);
    }
    for (v1::DeviceFit& fit : fits_) *result_.report.add_fits() = std::move(fit);
    if (result_.plan.empty()) {
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
      fits_[i].set_not_needed(true);
      absl::Status s = AddPlanned(base_, *outcome, gpu, facts_, &simulator_, stop_, &fits_[i]);
      if (!s.ok()) return s;
      for (size_t device = 0; device < gpus_[i].devices.size(); ++device) {
        if (gpus_[i].devices[device]) idle_.insert(static_cast<int32_t>(device));
      }
    }
    return absl::OkStatus();
  }

  // Order edges first: they cost no copy. The step with them is what plans are made for.
  absl::Status Order() {
    for (size_t i : lacking_) {
      auto order = StepOrder::Create(facts_, gpus_[i].index, unswapped_, stop_);
      if (!order.ok()) return order.status();
      auto edges = FindOrderEdges(facts_, *order, stop_);
      if (!edges.ok()) return edges.status();
      base_.controls.insert(base_.controls.end(), edges->begin(), edges->end());
    }
    ordered_ = unswapped_;
    if (base_.controls.empty()) return absl::OkStatus();
    StepTerms terms;
    terms.record_operations = true;
    auto ordered = simulator_.Simulate(base_, terms, stop_);
    if (!ordered.ok()) return ordered.status();
    const auto peak = [this](const StepResult& step) {
      int64_t bytes = 0;
      for (size_t i : lacking_) bytes += step.peak_bytes(gpus_[i].index);
      return bytes;
    };
    if (peak(*ordered) < peak(unswapped_)) {
      ordered_ = *std::move(ordered);
    } else {
      base_.controls.clear();
    }
    return absl::OkStatus();
  }

  absl::Status PlanAll() {
    auto needs = Needs::Find(facts_.graph(), facts_.topology(), stop_);
    if (!needs.ok()) return needs.status();
    const std::vector<v1::DeviceFit> unswapped_fits = fits_;
    for (size_t attempt = 0;; ++attempt) {
      result_.plan.swaps.clear();
      result_.plan.controls = base_.controls;
      report_.clear_devices();
      fits_ = unswapped_fits;
      for (size_t i : lacking_) {
        if (absl::Status s = PlanGpu(i, kBudgetShares[attempt], *needs); !s.ok()) return s;
      }
      if (gpus_.size() < 2 || gpus_.size() < facts_.placement().devices().size()) break;
      FitFailure failure;
      auto fits = SimulateTogether(result_.plan, facts_, &simulator_, stop_, &failure);
      if (!fits.ok()) return fits.status();
      if (*fits) break;
      if (attempt + 1 == std::size(kBudgetShares)) {
        return NotTogetherError(failure, unswapped_peak_bytes_, facts_, &simulator_, stop_);
      }
    }
    SortSwaps(&result_.plan.swaps);
    return absl::OkStatus();
  }

  // Of fits_[i], within a share of the budget.
  absl::Status PlanGpu(size_t i, double share, const Needs& needs) {
    const int32_t gpu = gpus_[i].index;
    auto order = StepOrder::Create(facts_, gpu, ordered_, stop_);
    if (!order.ok()) return order.status();
    auto planner = BudgetPlanner::Create(facts_, eligibility_, needs, *order, stop_);
    if (!planner.ok()) return planner.status();
    for (const Gap& gap : planner->gaps()) has_gap_.insert(order->buffers()[gap.buffer]);
    v1::BudgetDevice& device = *report_.add_devices();
    device.set_device(fits_[i].device());
    device.set_gap_count(static_cast<int64_t>(planner->gaps().size()));
    if (!base_.controls.empty()) device.set_ordered_peak_bytes(ordered_.peak_bytes(gpu));

    auto found = Search(gpu, ShareOf(budget_bytes(), share), *planner, *order, &device);
    if (!found.ok()) return found.status();
    if (!found->best) return DoesNotFit(gpu, found->failure, *planner, *order);
    for (int64_t budget : OtherBudgets()) device.add_other_budget_bytes(budget);

    SwapPlan plan = base_;
    plan.swaps = std::move(found->best->swaps);
    // A search that was cut short has left no steps for the need.
    absl::Status s = AddPlanned(plan, found->best->outcome, gpu, facts_,
                                found->cut_short ? nullptr : &simulator_, stop_, &fits_[i]);
    if (!s.ok()) return s;
    std::move(plan.swaps.begin(), plan.swaps.end(), std::back_inserter(result_.plan.swaps));
    return absl::OkStatus();
  }

  static int64_t ShareOf(int64_t bytes, double share) {
    return share < 1 ? static_cast<int64_t>(share * static_cast<double>(bytes)) : bytes;
  }

  // With all of `budget`; where no plan is found, one is looked for that does with less, and fits
  // it.
  absl::StatusOr<PlanSearchResult> Search(int32_t gpu, int64_t budget, const BudgetPlanner& planner,
                                          const StepOrder& order, v1::BudgetDevice* device) {
    PlanSearchTerms terms;
    terms.gpu = gpu;
    terms.full_speed_ns = unswapped_.step_time_ns();
    terms.max_plays = MaxPlays(effort_);
    PlanSearchResult first;
    for (const double share : kPlannedShares) {
      terms.budget_bytes = ShareOf(budget, share);
      terms.other_budgets = OtherBudgets();
      if (share < 1) terms.other_budgets.insert(terms.other_budgets.begin(), budget);
      auto found = SearchPlan(terms, base_, planner, order, &simulator_, stop_);
      if (!found.ok()) return found;
      device->set_plan_count(device->plan_count() + found->num_plays);
      device->set_fitting_plan_count(device->fitting_plan_count() + found->num_fitting);
      device->set_cut_short(found->cut_short);
      if (found->best) return found;
      if (share == 1) first = *std::move(found);
    }
    return first;
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

  // The smallest budget known to do is searched for with the least effort.
  absl::Status DoesNotFit(int32_t gpu, const StepResult& failure, const BudgetPlanner& planner,
                          const StepOrder& order) {
    const int64_t peak = ordered_.peak_bytes(gpu);
    auto need = FindNeed(&simulator_, base_, StepTerms::OneGpu(gpu, 0), peak, stop_);
    if (!need.ok()) return need.status();
    int64_t low = budget_bytes(), high = *need;  // 0: none is known.
    while (high - low > peak / kSmallestBudgetParts + 1) {
      PlanSearchTerms terms;
      terms.gpu = gpu;
      terms.budget_bytes = low + (high - low) / 2;
      terms.full_speed_ns = kUnlimited;  // The first plan that fits will do.
      terms.max_plays = kLowPlays;
      auto found = SearchPlan(terms, base_, planner, order, &simulator_, stop_);
      if (!found.ok()) return found.status();
      (found->best ? high : low) = terms.budget_bytes;
    }
    const std::string& name = facts_.placement().devices()[gpu];
    const std::string claim = absl::StrCat("no plan was found that fits the ",
                                           BudgetText(facts_.hardware(), budget_bytes()),
                                           " of GPU ", name.empty() ? "(no name)" : Quoted(name));
    return DoesNotFitError(claim, FailureOf(failure, gpu, facts_), facts_.hardware(),
                           budget_bytes(), {high, "there is one"});
  }

  const StepFacts& facts_;
  const Eligibility& eligibility_;
  const v1::RewriteOptions& options_;
  const StopToken& stop_;
  const v1::PlanningEffort effort_;
  SearchBudget steps_;  // Of all GPUs.
  CountedSimulator simulator_;
  SwapPlan base_;                   // The order edges.
  StepResult unswapped_, ordered_;  // With memory without end: as the graph came; with base_.
  std::vector<WantedGpu> gpus_;
  std::vector<v1::DeviceFit> fits_;   // By GPU.
  std::vector<size_t> lacking_;       // Into both: those that need a plan.
  int64_t unswapped_peak_bytes_ = 0;  // Of the GPU that takes most as the graph came.
  std::set<int32_t> idle_;            // Device ids of the others.
  std::set<int32_t> has_gap_;         // Buffers that could be away for some time.
  StrategyResult result_;
  v1::BudgetReport& report_;  // Of result_.
};

}  // namespace

absl::Status CheckBudgetStrategy(const v1::RewriteOptions& options, const StopToken&) {
  const v1::PlanningEffort effort = options.budget().planning_effort();
  if (v1::PlanningEffort_IsValid(effort)) return absl::OkStatus();
  return InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("planning_effort is ", static_cast<int>(effort), "; it is LOW, MEDIUM or HIGH"),
      {{"option", "planning_effort"}, {"value", absl::StrCat(static_cast<int>(effort))}});
}

absl::StatusOr<StrategyResult> PlanBudget(const StrategyInput& input) {
  return BudgetRun(input).Run();
}

}  // namespace spillway::core
