#include "rewrite_core/strategy/budget/gpu_search.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/order_chain.h"
#include "rewrite_core/strategy/budget/order_edges.h"
#include "rewrite_core/strategy/budget/variations.h"

namespace spillway::core {
namespace {

// Where no plan is found for the whole budget, what fits not being monotonic, plans are looked for
// that do with these parts of it.
constexpr double kPlannedShares[] = {1.0, 0.97, 0.94, 0.9};

// Where a plan does not fit in all variations, plans that do are looked for, with these parts of
// the budget.
constexpr double kSteadyShares[] = {1.0, 0.94, 0.88};
// One that is slower than the fastest by one part in so many will do.
constexpr int64_t kSteadyCostPart = 50;

int64_t SteadyEnough(const PlanSearchResult& fastest) {
  const int64_t time = fastest.best->outcome.step_time_ns();
  return time + time / kSteadyCostPart;
}

// The smallest budget for which there is a plan is told to one part in so many of the peak.
constexpr int64_t kSmallestBudgetParts = 64;

}  // namespace

PlanSearchTerms GpuSearch::TermsOf(int64_t budget) const {
  PlanSearchTerms terms;
  terms.gpu = gpu_;
  terms.budget_bytes = budget;
  terms.other_swaps = other_swaps_;
  terms.other_budgets = request_.OtherBudgets();
  terms.full_speed_ns = request_.unswapped.step_time_ns();
  terms.max_plays = request_.max_plays();
  return terms;
}

absl::StatusOr<PlanSearchResult> GpuSearch::Search(const PlanSearchTerms& terms) {
  return SearchPlan(terms, ordered_.base(), planner_, order_, &request_.simulator, request_.stop);
}

void GpuSearch::CountPlays(const PlanSearchResult& found) {
  device_.set_plan_count(device_.plan_count() + found.num_plays);
  device_.set_fitting_plan_count(device_.fitting_plan_count() + found.num_fitting);
  device_.set_cut_short(found.cut_short);
}

absl::StatusOr<PlanSearchResult> GpuSearch::Fastest(int64_t budget) {
  PlanSearchResult first;
  for (const double share : kPlannedShares) {
    PlanSearchTerms terms = TermsOf(ShareOf(budget, share));
    if (share < 1) terms.other_budgets.insert(terms.other_budgets.begin(), budget);
    auto found = Search(terms);
    if (!found.ok()) return found;
    CountPlays(*found);
    if (found->best) return found;
    if (share == 1) first = *std::move(found);
  }
  return first;
}

absl::StatusOr<PlanSearchResult> GpuSearch::Least(int64_t usable) {
  PlanSearchResult best;
  const auto search = [&](int64_t budget, int max_plays,
                          int64_t enough_ns) -> absl::StatusOr<bool> {
    PlanSearchTerms terms = TermsOf(budget);
    if (budget < usable) terms.other_budgets.insert(terms.other_budgets.begin(), usable);
    terms.max_plays = max_plays;
    terms.full_speed_ns = enough_ns;
    auto found = Search(terms);
    if (!found.ok()) return found.status();
    CountPlays(*found);
    if (!found->best || request_.IsTooSlow(found->best->outcome.step_time_ns())) return false;
    best = *std::move(found);
    device_.set_least_budget_bytes(budget);
    return true;
  };
  const auto suffices = [&](int64_t budget) {
    return search(budget, kLowPlays, request_.FastEnough());
  };
  const int64_t peak = ordered_.step().peak_bytes(gpu_);
  int64_t high = std::min(peak, usable);
  auto does = suffices(high);
  if (does.ok() && !*does && high < usable) does = suffices(high = usable);
  if (does.ok() && !*does) {
    auto found = Fastest(usable);
    if (found.ok() && found->best) device_.set_least_budget_bytes(usable);
    return found;
  }
  absl::Status status = does.status();
  if (status.ok()) {
    auto least = LeastBudget(ordered_.step().resident_bytes(gpu_), high,
                             peak / kSmallestBudgetParts + 1, suffices);
    if (least.ok()) {
      does = search(*least, request_.max_plays(), request_.unswapped.step_time_ns());
      status = does.status();
    } else {
      status = least.status();
    }
  }
  if (GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG && best.best) {
    best.cut_short = true;  // What was found so far stands.
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

absl::StatusOr<int> GpuSearch::CountUnfitChained(int64_t usable, bool may_chain, FoundPlan* found) {
  const SwapPlan plan = PlanOf(*found);
  auto unfit = CountUnfit(plan, gpu_, &request_);
  if (!unfit.ok() || *unfit == 0 || !may_chain) return unfit;
  StepTerms terms = StepTerms::OneGpu(gpu_, usable);
  terms.record_operations = true;
  auto step = request_.simulator.Simulate(plan, terms, request_.stop);
  if (!step.ok()) return step.status();
  auto chain = ChainInOrder(request_.facts, needs_, plan, *step, gpu_,
                            ordered_.step().peak_bytes(gpu_) / kLeastOrderedPart, request_.stop);
  if (!chain.ok()) return chain.status();
  if (chain->empty()) return unfit;
  FoundPlan chained{found->swaps, *std::move(chain), {}};
  const SwapPlan chained_plan = PlanOf(chained);
  auto is_as_good = FitsAsFast(chained_plan, usable, found->outcome.step_time_ns());
  if (!is_as_good.ok()) return is_as_good.status();
  if (!*is_as_good) return unfit;
  auto others = CountUnfit(chained_plan, gpu_, &request_);
  if (!others.ok() || *others >= *unfit) return others.ok() ? unfit : others;
  found->chain = std::move(chained.chain);
  return others;
}

absl::StatusOr<bool> GpuSearch::FitsAsFast(const SwapPlan& plan, int64_t usable,
                                           int64_t step_time_ns) {
  std::vector<int64_t> budgets = request_.OtherBudgets();
  budgets.insert(budgets.begin(), usable);
  for (int64_t budget : budgets) {
    auto outcome =
        request_.simulator.Simulate(plan, StepTerms::OneGpu(gpu_, budget), request_.stop);
    if (!outcome.ok()) return outcome.status();
    if (!outcome->fits) return false;
    if (budget == usable && outcome->step_time_ns() > step_time_ns) return false;
  }
  return true;
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

absl::Status GpuSearch::MakeSteady(int64_t usable, bool may_chain, PlanSearchResult* found) {
  if (!HasReserve(request_) || found->cut_short) return absl::OkStatus();
  auto unfit = CountUnfitChained(usable, may_chain, &*found->best);
  for (const double share : kSteadyShares) {
    if (!unfit.ok() || *unfit == 0) break;
    PlanSearchTerms terms = TermsOf(ShareOf(usable, share));
    if (share < 1) terms.other_budgets.insert(terms.other_budgets.begin(), usable);
    terms.varied_steps = VariedSteps(request_, request_.budget_bytes());
    if (share == 1) terms.start = found->aways;
    terms.full_speed_ns = std::max(terms.full_speed_ns, SteadyEnough(*found));
    auto steady = Search(terms);
    if (!steady.ok()) {
      unfit = steady.status();
      break;
    }
    CountPlays(*steady);
    if (!steady->best || request_.IsTooSlow(steady->best->outcome.step_time_ns())) continue;
    unfit = 0;
    const int64_t fastest_ns = found->best->outcome.step_time_ns();
    if (fastest_ns < steady->best->outcome.step_time_ns()) {
      device_.set_fastest_step_time_ns(fastest_ns);
    }
    *found = *std::move(steady);
  }
  if (GetErrorReason(unfit.status()) == v1::ERROR_REASON_SEARCH_TOO_LONG) {
    found->cut_short = true;  // What was found so far stands, untried.
    device_.set_cut_short(true);
    return absl::OkStatus();
  }
  if (unfit.ok()) TellVariations(*unfit);
  return unfit.status();
}

absl::StatusOr<int64_t> GpuSearch::SmallestBudget() {
  const int64_t peak = ordered_.step().peak_bytes(gpu_);
  auto need = FindNeed(&request_.simulator, ordered_.base(), StepTerms::OneGpu(gpu_, 0), peak,
                       request_.stop);
  if (!need.ok()) return need.status();
  const auto suffices = [&](int64_t budget) -> absl::StatusOr<bool> {
    PlanSearchTerms terms;
    terms.gpu = gpu_;
    terms.budget_bytes = budget;
    terms.full_speed_ns = request_.FastEnough();  // The first plan that fits, and is, will do.
    terms.max_plays = kLowPlays;
    if (HasReserve(request_)) terms.varied_steps = VariedSteps(request_, budget);
    auto found = Search(terms);
    if (!found.ok()) return found.status();
    return found->best && !request_.IsTooSlow(found->best->outcome.step_time_ns());
  };
  return LeastBudget(request_.budget_bytes(), *need, peak / kSmallestBudgetParts + 1, suffices);
}

}  // namespace spillway::core
