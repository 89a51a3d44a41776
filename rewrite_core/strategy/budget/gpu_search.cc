#include "rewrite_core/strategy/budget/gpu_search.h"

#include <algorithm>
#include <utility>

#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/variations.h"
#include "rewrite_core/strategy/order/order_chain.h"
#include "rewrite_core/strategy/order/order_edges.h"

namespace spillway::core {
namespace {

// If no plan is found for the whole budget, plans for these shares of it are searched, as fitting
// is not monotonic.
constexpr double kPlannedShares[] = {1.0, 0.97, 0.94, 0.9};

// If a plan does not fit in all variations, plans that do are searched with these shares of the
// budget, until one is within 1/kHardlySlowerPart of the fastest step time, or a smaller share
// gives a slower one. (On networks of several kinds most fit with the whole budget, a third is
// faster with 0.97 or 0.94.)
constexpr double kSteadyShares[] = {1.0, 0.97, 0.94, 0.91, 0.88};
constexpr int64_t kHardlySlowerPart = 20;
// Each of these searches ends once a plan is within 1/kSteadyCostPart of the fastest step time.
constexpr int64_t kSteadyCostPart = 50;

// Each of these searches has 1/kSteadySimulationsPart of the simulations: plans that fit are also
// tried in all variations.
constexpr int kSteadySimulationsPart = 2;

// Reported in place of a count for a plan that does not fit in the other sizes of memory.
constexpr int kDoesNotFitSizes = kNumVariations + 1;

// The smallest budget with a plan is found to within 1/kSmallestBudgetParts of the peak.
constexpr int64_t kSmallestBudgetParts = 64;

}  // namespace

PlanSearchTerms GpuSearch::TermsOf(int64_t budget, int64_t usable, bool in_other_sizes) const {
  PlanSearchTerms terms;
  terms.gpu = gpu_;
  terms.budget_bytes = budget;
  terms.other_swaps = other_swaps_;
  if (in_other_sizes) terms.other_budgets = request_.OtherBudgets(gpu_);
  if (budget < usable) terms.other_budgets.insert(terms.other_budgets.begin(), usable);
  terms.full_speed_ns = request_.unswapped.step_time_ns();
  terms.max_simulations = request_.max_simulations();
  return terms;
}

absl::StatusOr<PlanSearchResult> GpuSearch::Search(const PlanSearchTerms& terms) {
  return SearchPlan(terms, ordered_.base(), planner_, order_, &request_.simulator, request_.stop);
}

void GpuSearch::CountSimulations(const PlanSearchResult& found) {
  device_.set_plan_count(device_.plan_count() + found.num_simulations);
  device_.set_fitting_plan_count(device_.fitting_plan_count() + found.num_fitting);
  device_.set_cut_short(found.cut_short);
}

// With a reserve, the other sizes are left to MakeSteady: fitting in them depends on details as
// small as in variations, so a search does better without them.
absl::StatusOr<PlanSearchResult> GpuSearch::Fastest(int64_t budget) {
  return Fastest(budget, /*in_other_sizes=*/!HasReserve(request_));
}

absl::StatusOr<PlanSearchResult> GpuSearch::Fastest(int64_t budget, bool in_other_sizes) {
  PlanSearchResult first;
  for (const double share : kPlannedShares) {
    auto found = Search(TermsOf(ShareOf(budget, share), budget, in_other_sizes));
    if (!found.ok()) return found;
    CountSimulations(*found);
    if (found->best) return found;
    if (share == 1) first = *std::move(found);
  }
  return first;
}

absl::StatusOr<PlanSearchResult> GpuSearch::Least(int64_t usable) {
  PlanSearchResult best;
  const auto search = [&](int64_t budget, int max_simulations,
                          int64_t enough_ns) -> absl::StatusOr<bool> {
    PlanSearchTerms terms = TermsOf(budget, usable, /*in_other_sizes=*/true);
    terms.max_simulations = max_simulations;
    terms.full_speed_ns = enough_ns;
    auto found = Search(terms);
    if (!found.ok()) return found.status();
    CountSimulations(*found);
    if (!found->best || request_.IsTooSlow(found->best->outcome.step_time_ns())) return false;
    best = *std::move(found);
    device_.set_least_budget_bytes(budget);
    return true;
  };
  const auto suffices = [&](int64_t budget) {
    return search(budget, kLowSimulations, request_.FastEnough());
  };
  const int64_t peak = ordered_.step().peak_bytes(gpu_);
  int64_t high = std::min(peak, usable);
  auto does = suffices(high);
  if (does.ok() && !*does && high < usable) does = suffices(high = usable);
  if (does.ok() && !*does) {
    auto found = Fastest(usable, /*in_other_sizes=*/true);
    if (found.ok() && found->best) device_.set_least_budget_bytes(usable);
    return found;
  }
  absl::Status status = does.status();
  if (status.ok()) {
    auto least = LeastBudget(ordered_.step().resident_bytes(gpu_), high,
                             peak / kSmallestBudgetParts + 1, suffices);
    if (least.ok()) {
      does = search(*least, request_.max_simulations(), request_.unswapped.step_time_ns());
      status = does.status();
    } else {
      status = least.status();
    }
  }
  if (GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG && best.best) {
    best.cut_short = true;  // The results so far stand.
    device_.set_cut_short(true);
    status = absl::OkStatus();
  }
  if (!status.ok()) return status;
  return best;
}

SwapPlan GpuSearch::PlanOf(const FoundPlan& found) const {
  SwapPlan plan = ordered_.base();
  plan.controls.insert(plan.controls.end(), found.chain.begin(), found.chain.end());
  plan.swaps = found.swaps;
  plan.swaps.insert(plan.swaps.end(), other_swaps_.begin(), other_swaps_.end());
  return plan;
}

// Adds a chain to the plan if it then fits in more variations.
absl::StatusOr<int> GpuSearch::CountUnfitChained(int64_t usable, OrderChains chains,
                                                 FoundPlan* found) {
  const SwapPlan plan = PlanOf(*found);
  auto unfit = CountUnfitInAll(plan, usable, kUnlimited);
  if (!unfit.ok() || *unfit == 0 || chains == OrderChains::kForbidden) return unfit;
  StepTerms terms = StepTerms::OneGpu(gpu_, usable);
  terms.record_operations = true;
  auto step = request_.simulator.Simulate(plan, terms, request_.stop);
  if (!step.ok()) return step.status();
  auto chain = ChainInOrder(request_.facts, needs_, plan, *step, gpu_,
                            ordered_.step().peak_bytes(gpu_) / kMinOrderedPart, request_.stop);
  if (!chain.ok()) return chain.status();
  if (chain->empty()) return unfit;
  FoundPlan chained{found->swaps, *std::move(chain), {}};
  auto others = CountUnfitInAll(PlanOf(chained), usable, found->outcome.step_time_ns());
  if (!others.ok() || *others >= *unfit) return others.ok() ? unfit : others;
  found->chain = std::move(chained.chain);
  return others;
}

absl::StatusOr<int> GpuSearch::CountUnfitInAll(const SwapPlan& plan, int64_t usable,
                                               int64_t most_ns) {
  std::vector<int64_t> budgets = request_.OtherBudgets(gpu_);
  budgets.insert(budgets.begin(), usable);
  for (int64_t budget : budgets) {
    auto outcome =
        request_.simulator.Simulate(plan, StepTerms::OneGpu(gpu_, budget), request_.stop);
    if (!outcome.ok()) return outcome.status();
    if (!outcome->fits || (budget == usable && outcome->step_time_ns() > most_ns)) {
      return kDoesNotFitSizes;
    }
  }
  return CountUnfit(plan, gpu_, &request_);
}

void GpuSearch::TellVariations(int unfit) {
  device_.set_variation_count(kNumVariations);
  device_.set_unfit_variation_count(unfit);
}

absl::Status GpuSearch::ReportVariations(const SwapPlan& plan) {
  if (!HasReserve(request_)) return absl::OkStatus();
  auto unfit = CountUnfit(plan, gpu_, &request_);
  if (unfit.ok()) TellVariations(*unfit);
  return unfit.status();
}

absl::Status GpuSearch::MakeSteady(int64_t usable, OrderChains chains, PlanSearchResult* found) {
  if (!HasReserve(request_) || found->cut_short) return absl::OkStatus();
  const int64_t fastest_ns = found->best->outcome.step_time_ns();
  const std::vector<Eviction> start = found->evictions;
  auto unfit = CountUnfitChained(usable, chains, &*found->best);
  int64_t steady_ns = unfit.ok() && *unfit == 0 ? fastest_ns : kUnlimited;
  for (const double share : kSteadyShares) {
    if (!unfit.ok() || steady_ns <= fastest_ns + fastest_ns / kHardlySlowerPart) break;
    PlanSearchTerms terms = TermsOf(ShareOf(usable, share), usable, /*in_other_sizes=*/true);
    terms.varied_steps = VariedSteps(request_, request_.budget_bytes(gpu_));
    terms.max_simulations =
        std::max(kLowSimulations, terms.max_simulations / kSteadySimulationsPart);
    if (share == 1) terms.start = start;
    terms.full_speed_ns = std::max(terms.full_speed_ns, fastest_ns + fastest_ns / kSteadyCostPart);
    auto steady = Search(terms);
    if (!steady.ok()) {
      unfit = steady.status();
      break;
    }
    CountSimulations(*steady);
    if (!steady->best || request_.IsTooSlow(steady->best->outcome.step_time_ns())) continue;
    const int64_t time_ns = steady->best->outcome.step_time_ns();
    if (time_ns >= steady_ns) break;
    unfit = 0;
    steady_ns = time_ns;
    *found = *std::move(steady);
  }
  if (unfit.ok() && *unfit == kDoesNotFitSizes) {  // Settle for a plan that fits in all sizes.
    auto sized = Fastest(usable, /*in_other_sizes=*/true);
    if (sized.ok()) {
      *found = *std::move(sized);
      if (found->best) unfit = CountUnfit(PlanOf(*found->best), gpu_, &request_);
    } else {
      unfit = sized.status();
    }
  }
  if (GetErrorReason(unfit.status()) == v1::ERROR_REASON_SEARCH_TOO_LONG && found->best) {
    found->cut_short = true;  // The results so far stand, without the variations.
    device_.set_cut_short(true);
    return absl::OkStatus();
  }
  if (!unfit.ok() || !found->best) return unfit.ok() ? absl::OkStatus() : unfit.status();
  TellVariations(*unfit);
  if (fastest_ns < found->best->outcome.step_time_ns()) {
    device_.set_fastest_step_time_ns(fastest_ns);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> GpuSearch::SmallestBudget(int64_t lower_bound_bytes) {
  const int64_t peak = ordered_.step().peak_bytes(gpu_);
  auto need = FindNeed(&request_.simulator, ordered_.base(), StepTerms::OneGpu(gpu_, 0), peak,
                       request_.stop);
  if (!need.ok()) return need.status();
  const auto suffices = [&](int64_t budget) -> absl::StatusOr<bool> {
    PlanSearchTerms terms;
    terms.gpu = gpu_;
    terms.budget_bytes = budget;
    terms.full_speed_ns = request_.FastEnough();  // The first plan that is fast enough suffices.
    terms.max_simulations = kLowSimulations;
    if (HasReserve(request_)) terms.varied_steps = VariedSteps(request_, budget);
    auto found = Search(terms);
    if (!found.ok()) return found.status();
    return found->best && !request_.IsTooSlow(found->best->outcome.step_time_ns());
  };
  const int64_t low = std::max(request_.budget_bytes(gpu_), lower_bound_bytes - 1);
  return LeastBudget(low, *need, peak / kSmallestBudgetParts + 1, suffices);
}

}  // namespace spillway::core
