#include "rewrite_core/strategy/budget/gpu_search.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/budget/plan_search.h"
#include "rewrite_core/strategy/common/fit_failure.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {
namespace {

// If no plan is found for the whole budget, plans for these shares of it are searched, as fitting
// is not monotonic: beside clones, of which there are others, with the lowest effort.
constexpr double kPlannedShares[] = {1.0, 0.97, 0.94, 0.9};

// If the fastest robust plan of a search (one that fits in all variations) is slower than the
// fastest by more than 1/kMuchSlowerPart, or missing, more searches follow that try each plan in
// the variations: with these shares of the budget, until a plan is not that slow, or is chained.
// Those for less than the budget have the lowest effort. A search ends once a plan is as fast as
// MaxRobustNs. (Ten graphs on three machines with the default reserve: 0.893 to 0.898 of the
// bound, where searches without variations came first, for 0.92 of the time.) Chained plans keep
// the order of the step for which they are made. (With chains, seven of 16 plans of two hard nets
// were faster, by up to 0.26, and none slower; ResNet-50 in half of its memory has a plan without a
// chain.)
struct RobustSearch {
  double share;
  bool is_chained;
};
constexpr RobustSearch kRobustSearches[] = {{1.0, false}, {1.0, true},  {0.97, true},
                                            {0.94, true}, {0.91, true}, {0.88, true}};
constexpr int64_t kMuchSlowerPart = 10;

// This many plans of a search are tried in variations: those that were the fastest last.
constexpr size_t kKeptPlans = 16;

// The smallest budget with a plan is found to within 1/kSmallestBudgetParts of the peak.
constexpr int64_t kSmallestBudgetParts = 64;

// A step's need is raised by 1/kNeedSteps, at most kNeedTries times, until it fits in the
// variations.
constexpr int64_t kNeedSteps = 32;
constexpr int kNeedTries = 32;

class GpuSearch {
 public:
  GpuSearch(const GpuTerms& terms, const Needs& needs, const OrderedStep& ordered,
            const StepOrder& order, const BudgetPlanner& planner, BudgetRequest* request,
            v1::BudgetDevice* device)
      : terms_(terms),
        gpu_(terms.gpu.index),
        usable_(terms.usable_bytes),
        needs_(needs),
        ordered_(ordered),
        order_(order),
        planner_(planner),
        request_(*request),
        device_(*device) {}

  // The fastest plan that fits, or the one for the least budget, as the objective asks for; in the
  // variations, too, if there is a reserve. Reports on it.
  absl::StatusOr<PlanSearchResult> Find() {
    if (request_.objective.saves_memory()) {
      auto least = Least();
      if (!least.ok() || least->plans.empty()) return least;
      if (absl::Status s = Judge(&*least); !s.ok()) return s;
      if (!least->plans.empty()) return least;
    }
    // With a reserve, the other sizes are left to MakeRobust: fitting in them depends on details as
    // small as in variations, so a search does better without them.
    auto found = Fastest(/*in_other_sizes=*/!request_.has_reserve());
    if (!found.ok() || found->plans.empty()) return found;
    if (found->plans[0].outcome.step_time_ns() >= request_.worth_ns) return found;
    if (absl::Status s = MakeRobust(&*found); !s.ok()) return s;
    return found;
  }

  // Returns the smallest budget known to suffice, from searches with the lowest effort; 0 if none
  // is known.
  absl::StatusOr<int64_t> SmallestBudget();

 private:
  // The need of the step without swaps (FindNeed), with which it also fits in all of the memory and
  // in half of the variations; 0 if none is found.
  absl::StatusOr<int64_t> RobustNeed(int64_t from_bytes);
  // Finds, with the lowest effort, the smallest budget with a plan that is fast enough, and then a
  // plan for that budget with the full effort. It fits the usable bytes and the other sizes, too.
  // If none is found, returns the result of Fastest.
  absl::StatusOr<PlanSearchResult> Least();
  // Searches with all usable bytes; if no plan is found, searches with less for one that fits.
  absl::StatusOr<PlanSearchResult> Fastest(bool in_other_sizes);
  // The reserve covers other orders and times, and other placements of variables. If a plan does
  // not fit in these variations, or in the other sizes, another of the search that is hardly slower
  // is taken, or the operations are chained in its order. If that fails, this searches for the
  // fastest plan that fits in all of them, or otherwise in all sizes and half of them; if that
  // fails too, `found` is left without a plan. REQUIRES: a best plan in `found`.
  absl::Status MakeRobust(PlanSearchResult* found);
  absl::Status SearchRobust(int64_t fastest_ns, std::vector<VariedStep>* steps, int* unfit,
                            PlanSearchResult* found);
  absl::Status TakeRobust(std::vector<FoundPlan> plans, std::vector<VariedStep>* steps,
                          FoundPlan* steady, int64_t* steady_ns);
  // Chains a plan that does not fit in `unfit` variations, if it then takes no longer and fits in
  // as many. (Of 511 other orders of files, 17 did not fit before, then 13. In 7 of both, the plan
  // fits in all variations: a chain does not help such plans.)
  absl::Status KeepOrder(std::vector<VariedStep>* steps, int* unfit, FoundPlan* found);
  // The plan with a chain, without an outcome; its edges are unchanged if there is nothing to
  // chain.
  absl::StatusOr<FoundPlan> Chained(const FoundPlan& found);
  // Returns the number of variations in which the plan does not fit, counting at most `most`;
  // kDoesNotFitSizes if the step takes longer than `most_ns`, or does not fit in all sizes.
  // `outcome`, if given: of the step with all usable bytes, if the count is below `most`.
  absl::StatusOr<int> CountUnfit(const FoundPlan& found, int64_t most_ns, int most,
                                 std::vector<VariedStep>* steps, StepResult* outcome = nullptr,
                                 PlanSimulator* by = nullptr);
  // Leaves `found` without a plan if its best fits in too few variations (kMaxUnfit), or not in all
  // sizes. The search may have taken all steps, so these few simulations are not counted.
  absl::Status Judge(PlanSearchResult* found);
  // Reports in how many variations the best does not fit; beyond kMaxUnfit, clears the plans.
  void Conclude(int unfit, PlanSearchResult* found);

  // A plan for `budget` must fit the usable bytes, too, and the other sizes, if requested.
  PlanSearchTerms TermsOf(int64_t budget, bool in_other_sizes) const;
  // `chain`: edges that all plans have.
  absl::StatusOr<PlanSearchResult> Search(const PlanSearchTerms& terms,
                                          const std::vector<ControlEdge>& chain = {});
  SwapPlan PlanOf(const FoundPlan& found) const;

  const GpuTerms& terms_;
  const GpuIndex gpu_;
  const int64_t usable_;
  const Needs& needs_;
  const OrderedStep& ordered_;
  const StepOrder& order_;
  const BudgetPlanner& planner_;
  BudgetRequest& request_;
  v1::BudgetDevice& device_;
};

PlanSearchTerms GpuSearch::TermsOf(int64_t budget, bool in_other_sizes) const {
  PlanSearchTerms terms;
  terms.gpu = gpu_;
  terms.budget_bytes = budget;
  terms.other_swaps = terms_.other_swaps;
  if (in_other_sizes) terms.other_budgets = request_.OtherBudgets(gpu_);
  if (budget < usable_) terms.other_budgets.insert(terms.other_budgets.begin(), usable_);
  terms.enough_ns =
      std::max({request_.unswapped.step_time_ns(), terms_.bounds.step_time_ns, terms_.enough_ns});
  terms.max_simulations = request_.max_simulations();
  if (request_.has_reserve() || request_.num_planned_gpus > 1) terms.num_kept = kKeptPlans;
  return terms;
}

absl::StatusOr<PlanSearchResult> GpuSearch::Search(const PlanSearchTerms& terms,
                                                   const std::vector<ControlEdge>& chain) {
  SwapPlan base = ordered_.base;
  base.controls.insert(base.controls.end(), chain.begin(), chain.end());
  auto found = SearchPlan(terms, base, planner_, order_, &request_.simulator, request_.stop);
  if (!found.ok()) return found;
  for (FoundPlan& plan : found->plans) {
    plan.controls.insert(plan.controls.end(), chain.begin(), chain.end());
  }
  device_.set_cut_short(found->cut_short);
  return found;
}

absl::StatusOr<PlanSearchResult> GpuSearch::Fastest(bool in_other_sizes) {
  PlanSearchResult first;
  for (const double share : kPlannedShares) {
    PlanSearchTerms terms = TermsOf(ShareOf(usable_, share), in_other_sizes);
    if (share < 1 && request_.is_one_of_several) terms.max_simulations = kLowSimulations;
    auto found = Search(terms);
    if (!found.ok() || !found->plans.empty()) return found;
    if (share == 1) first = *std::move(found);
  }
  return first;
}

absl::StatusOr<PlanSearchResult> GpuSearch::Least() {
  PlanSearchResult best;
  const auto search = [&](int64_t budget, int max_simulations,
                          int64_t enough_ns) -> absl::StatusOr<bool> {
    PlanSearchTerms terms = TermsOf(budget, /*in_other_sizes=*/true);
    terms.max_simulations = max_simulations;
    terms.enough_ns = enough_ns;
    auto found = Search(terms);
    if (!found.ok()) return found.status();
    if (found->plans.empty() || request_.IsTooSlow(found->plans[0].outcome.step_time_ns()))
      return false;
    best = *std::move(found);
    device_.set_least_budget_bytes(budget);
    return true;
  };
  const auto suffices = [&](int64_t budget) {
    return search(budget, kLowSimulations, request_.FastEnough());
  };
  const int64_t peak = ordered_.step.peak_bytes(gpu_);
  int64_t high = std::min(peak, usable_);
  auto does = suffices(high);
  if (does.ok() && !*does && high < usable_) does = suffices(high = usable_);
  if (does.ok() && !*does) {
    auto found = Fastest(/*in_other_sizes=*/true);
    if (found.ok() && !found->plans.empty()) device_.set_least_budget_bytes(usable_);
    return found;
  }
  absl::Status status = does.status();
  if (status.ok()) {
    auto least = LeastBudget(ordered_.step.resident_bytes(gpu_), high,
                             peak / kSmallestBudgetParts + 1, suffices);
    status = least.status();
    if (status.ok()) {
      status =
          search(*least, request_.max_simulations(), request_.unswapped.step_time_ns()).status();
    }
  }
  if (GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG && !best.plans.empty()) {
    best.cut_short = true;  // The results so far stand.
    device_.set_cut_short(true);
    return best;
  }
  if (!status.ok()) return status;
  return best;
}

SwapPlan GpuSearch::PlanOf(const FoundPlan& found) const {
  return WholePlan(ordered_.base, found, terms_.other_swaps);
}

absl::StatusOr<FoundPlan> GpuSearch::Chained(const FoundPlan& found) {
  auto chain = request_.ChainOf(PlanOf(found), gpu_, usable_, needs_, ordered_.ranks);
  if (!chain.ok()) return chain.status();
  FoundPlan chained{found.swaps, found.controls, {}};
  chained.controls.insert(chained.controls.end(), chain->begin(), chain->end());
  return chained;
}

absl::Status GpuSearch::KeepOrder(std::vector<VariedStep>* steps, int* unfit, FoundPlan* found) {
  auto chained = Chained(*found);
  if (!chained.ok()) return chained.status();
  if (chained->controls.size() == found->controls.size()) return absl::OkStatus();
  auto count =
      CountUnfit(*chained, found->outcome.step_time_ns(), *unfit + 1, steps, &chained->outcome);
  if (!count.ok() || *count > *unfit) return count.status();
  *unfit = *count;
  *found = *std::move(chained);
  return absl::OkStatus();
}

absl::StatusOr<int> GpuSearch::CountUnfit(const FoundPlan& found, int64_t most_ns, int most,
                                          std::vector<VariedStep>* steps, StepResult* outcome,
                                          PlanSimulator* by) {
  if (by == nullptr) by = &request_.simulator;
  const SwapPlan plan = PlanOf(found);
  auto count = request_.CountUnfit(plan, gpu_, most, steps, request_.OtherBudgets(gpu_), by);
  if (!count.ok() || *count >= most) return count;
  auto usable = by->Simulate(plan, StepTerms::OneGpu(gpu_, usable_), request_.stop);
  if (!usable.ok()) return usable.status();
  if (!usable->fits || usable->step_time_ns() > most_ns) return kDoesNotFitSizes;
  if (outcome != nullptr) *outcome = *std::move(usable);
  return count;
}

absl::Status GpuSearch::Judge(PlanSearchResult* found) {
  if (!request_.has_reserve()) return absl::OkStatus();
  std::vector<VariedStep> steps = request_.VariedSteps(request_.budget_bytes(gpu_));
  auto unfit = CountUnfit(found->plans[0], kUnlimited, kMaxUnfit + 1, &steps, /*outcome=*/nullptr,
                          request_.input.simulator);
  if (unfit.ok()) Conclude(*unfit, found);
  return unfit.status();
}

void GpuSearch::Conclude(int unfit, PlanSearchResult* found) {
  if (unfit > kMaxUnfit) {
    found->plans.clear();
    found->failure = std::move(request_.unfit);
    found->is_fragile = true;
    return;
  }
  device_.set_variation_count(kNumVariations);
  device_.set_unfit_variation_count(unfit);
}

absl::Status GpuSearch::MakeRobust(PlanSearchResult* found) {
  if (!request_.has_reserve()) return absl::OkStatus();
  if (found->cut_short) return Judge(found);
  const int64_t fastest_ns = found->plans[0].outcome.step_time_ns();
  std::vector<VariedStep> steps = request_.VariedSteps(request_.budget_bytes(gpu_));
  int unfit = 0;
  const absl::Status status = SearchRobust(fastest_ns, &steps, &unfit, found);
  if (GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG && !found->plans.empty()) {
    found->cut_short = true;  // The results so far stand, if they fit.
    device_.set_cut_short(true);
    return Judge(found);
  }
  if (!status.ok() || found->plans.empty()) return status;
  if (unfit > 0 && unfit <= kMaxUnfit) {
    if (absl::Status s = KeepOrder(&steps, &unfit, &found->plans[0]); !s.ok()) return s;
  }
  Conclude(unfit, found);
  if (found->plans.empty()) return absl::OkStatus();
  if (fastest_ns < found->plans[0].outcome.step_time_ns()) {
    device_.set_fastest_step_time_ns(fastest_ns);
  }
  return absl::OkStatus();
}

// Plans that fail in a variation are likely to fail in the one that failed last: few simulations
// show that a plan is not robust.
absl::Status GpuSearch::SearchRobust(int64_t fastest_ns, std::vector<VariedStep>* steps, int* unfit,
                                     PlanSearchResult* found) {
  FoundPlan& fastest = found->plans[0];
  auto count = CountUnfit(fastest, kUnlimited, 1, steps);
  if (!count.ok() || *count == 0) return count.status();
  FoundPlan steady;
  int64_t steady_ns = kUnlimited;
  absl::Status status =
      TakeRobust({found->plans.begin() + 1, found->plans.end()}, steps, &steady, &steady_ns);
  if (!status.ok()) return status;
  if (steady_ns <= MaxRobustNs(fastest_ns)) {
    found->plans = {std::move(steady)};
    return absl::OkStatus();
  }
  auto chained = Chained(fastest);
  if (!chained.ok()) return chained.status();
  const bool has_chain = chained->controls.size() > fastest.controls.size();
  if (has_chain) {
    count = CountUnfit(*chained, MaxRobustNs(fastest_ns), 1, steps, &chained->outcome);
    if (!count.ok()) return count.status();
    if (*count == 0) {
      fastest = *std::move(chained);
      return absl::OkStatus();
    }
  }
  const int64_t much_slower_ns = fastest_ns + fastest_ns / kMuchSlowerPart;
  std::vector<ControlEdge> chain;
  bool is_chained = false;
  for (const RobustSearch& search : kRobustSearches) {
    if (steady_ns <= much_slower_ns || (is_chained && steady_ns < kUnlimited)) break;
    if (search.is_chained && !std::exchange(is_chained, true)) {
      auto edges = request_.ChainOf(ordered_.base, ordered_.step, gpu_, needs_, ordered_.ranks);
      if (!edges.ok()) return edges.status();
      chain = *std::move(edges);
    }
    PlanSearchTerms terms = TermsOf(ShareOf(usable_, search.share), /*in_other_sizes=*/false);
    terms.varied_steps = *steps;
    if (search.share < 1) terms.max_simulations = kLowSimulations;
    terms.enough_ns = std::max(terms.enough_ns, MaxRobustNs(fastest_ns));
    auto other = Search(terms, chain);
    if (!other.ok()) return other.status();
    status = TakeRobust(other->plans, steps, &steady, &steady_ns);
    if (!status.ok()) return status;
  }
  if (steady_ns < kUnlimited) {
    found->plans = {std::move(steady)};
    return absl::OkStatus();
  }
  // Settle for the plan that fits in more of them, chained or not; or for one that fits in all
  // sizes; or for a slower one.
  count = CountUnfit(fastest, kUnlimited, kMaxUnfit + 1, steps);
  if (!count.ok()) return count.status();
  *unfit = *count;
  if (has_chain) {
    count = CountUnfit(*chained, MaxRobustNs(fastest_ns), std::min(*unfit, kMaxUnfit + 1), steps,
                       &chained->outcome);
    if (!count.ok()) return count.status();
    if (*count < *unfit) {
      *unfit = *count;
      fastest = *std::move(chained);
    }
  }
  if (*unfit <= kMaxUnfit) return absl::OkStatus();
  auto sized = Fastest(/*in_other_sizes=*/true);
  if (!sized.ok()) return sized.status();
  for (PlanSearchResult* result : {&*sized, found}) {
    for (FoundPlan& plan : result->plans) {
      count = CountUnfit(plan, kUnlimited, kMaxUnfit + 1, steps);
      if (!count.ok()) return count.status();
      if (*count > kMaxUnfit) continue;
      *unfit = *count;
      FoundPlan taken = std::move(plan);
      found->plans = {std::move(taken)};
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// Takes the first of `plans`, the fastest first, that fits in all variations and sizes, if it takes
// less than `steady_ns`.
absl::Status GpuSearch::TakeRobust(std::vector<FoundPlan> plans, std::vector<VariedStep>* steps,
                                   FoundPlan* steady, int64_t* steady_ns) {
  for (FoundPlan& plan : plans) {
    const int64_t time_ns = plan.outcome.step_time_ns();
    if (time_ns >= *steady_ns || request_.IsTooSlow(time_ns)) break;
    auto count = CountUnfit(plan, kUnlimited, 1, steps);
    if (!count.ok()) return count.status();
    if (*count > 0) continue;
    *steady = std::move(plan);
    *steady_ns = time_ns;
    break;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> GpuSearch::SmallestBudget() {
  if (request_.is_one_of_several) return 0;
  const int64_t peak = ordered_.step.peak_bytes(gpu_);
  auto need = RobustNeed(peak);
  if (!need.ok()) return need.status();
  const auto suffices = [&](int64_t budget) -> absl::StatusOr<bool> {
    PlanSearchTerms terms;
    terms.gpu = gpu_;
    terms.budget_bytes = budget;
    terms.enough_ns = request_.FastEnough();  // The first plan that is fast enough suffices.
    terms.max_simulations = kLowSimulations;
    if (request_.has_reserve()) terms.varied_steps = request_.VariedSteps(budget);
    auto found =
        SearchPlan(terms, ordered_.base, planner_, order_, &request_.simulator, request_.stop);
    if (!found.ok()) return found.status();
    return !found->plans.empty() && !request_.IsTooSlow(found->plans[0].outcome.step_time_ns());
  };
  // Less than the lower bound never suffices.
  const int64_t low = std::max(request_.budget_bytes(gpu_), terms_.bounds.memory_bytes - 1);
  return LeastBudget(low, *need, peak / kSmallestBudgetParts + 1, suffices);
}

absl::StatusOr<int64_t> GpuSearch::RobustNeed(int64_t from_bytes) {
  for (int tries = 0; tries < kNeedTries; ++tries) {
    auto need = FindNeed(&request_.simulator, ordered_.base, StepTerms::OneGpu(gpu_, 0), from_bytes,
                         request_.stop);
    if (!need.ok() || *need == 0 || !request_.has_reserve()) return need;
    std::vector<VariedStep> steps = request_.VariedSteps(*need);
    const int64_t memory = request_.facts.HardwareOf(gpu_).GpuMemoryFor(*need);
    auto unfit = request_.CountUnfit(ordered_.base, gpu_, kMaxUnfit + 1, &steps, {memory});
    if (!unfit.ok()) return unfit.status();
    if (*unfit <= kMaxUnfit) return need;
    from_bytes = SaturatingAdd(*need, *need / kNeedSteps + 1);
  }
  return 0;
}

// Returns a clause about the host's memory, if it cannot hold the GPU's excess bytes.
std::string HostText(const BudgetRequest& request, const StepResult& step, GpuIndex gpu) {
  const StepFacts& facts = request.facts;
  const int64_t lacking = step.peak_bytes(gpu) - request.budget_bytes(gpu);
  const int64_t host = facts.hardware().host_memory_bytes;
  const auto gpus = std::max<int64_t>(1, facts.placement().devices().size());
  if (lacking <= host / gpus) return "";
  return absl::StrCat(" with ", BytesText(host), " of host memory (host_memory_bytes",
                      gpus > 1 ? ", for all GPUs" : "", "), where swaps would need about ",
                      BytesText(lacking));
}

// DOES_NOT_FIT: no plan was found for `gpu`, or none exists. `step`: the one with only order edges.
// `failure`: that of the plan that got furthest; `is_fragile`: it fits the budget.
// `smallest_budget_bytes`: a budget with which a plan is found; 0: none is known.
absl::Status NoPlanError(const BudgetRequest& request, const StepResult& step, GpuIndex gpu,
                         const DeviceBounds& bounds, const StepResult& failure, bool is_fragile,
                         int64_t smallest_budget_bytes) {
  const StepFacts& facts = request.facts;
  const std::string effect = request.objective.max_slowdown()
                                 ? absl::StrCat("would suffice for a plan that takes at most ",
                                                request.objective.MaxSlowdownText())
                                 : "would suffice";
  const std::string& name = facts.placement().devices()[gpu];
  FitFailure why = FailureOf(failure, gpu, facts);
  why.lower_bound_bytes = bounds.memory_bytes;
  if (bounds.memory_op != kNoOp) {
    const NodeId node = step.ops[bounds.memory_op].node;
    if (node != kNoNode) why.lower_bound_node = std::string(facts.graph().name(node));
  }
  if (why.node.empty()) why.resident_bytes = step.resident_bytes(gpu);
  const Hardware hardware = facts.HardwareOf(gpu);
  const int64_t budget = request.budget_bytes(gpu);
  const bool is_proven = bounds.memory_bytes > budget;
  const std::string claim = absl::StrCat(
      is_proven ? "no plan can fit the " : "no plan was found that fits the ",
      BudgetText(hardware, budget), " of ", GpuText(name), HostText(request, step, gpu),
      is_fragile ? absl::StrCat(", all of its memory, and ", kNumVariations - kMaxUnfit, " of ",
                                kNumVariations, " variations of the step")
                 : "");
  return DoesNotFitError(claim, why, hardware, budget, {smallest_budget_bytes, effect});
}

}  // namespace

absl::StatusOr<GpuPlan> PlanGpu(const GpuTerms& terms, const Needs& needs,
                                const OrderedStep& ordered, BudgetRequest* request,
                                std::set<BufferIndex>* has_gap, v1::BudgetDevice* report) {
  const GpuIndex gpu = terms.gpu.index;
  auto order = StepOrder::Create(request->facts, gpu, ordered.step, request->stop);
  if (!order.ok()) return order.status();
  auto planner =
      BudgetPlanner::Create(request->facts, request->eligibility, needs, *order, ordered.ranks,
                            &*request->filters, request->stop, request->fed_inputs);
  if (!planner.ok()) return planner.status();
  for (const Gap& gap : planner->gaps()) has_gap->insert(planner->BufferOf(gap));
  report->Clear();
  report->set_device(request->facts.placement().devices()[gpu]);
  report->set_gap_count(static_cast<int64_t>(planner->gaps().size()));
  if (ordered.step.peak_bytes(gpu) < request->unswapped.peak_bytes(gpu)) {
    report->set_ordered_peak_bytes(ordered.step.peak_bytes(gpu));
  }
  // No search is needed below the lower bound.
  const bool may_fit = terms.bounds.memory_bytes <= request->budget_bytes(gpu);
  if (may_fit && terms.bounds.step_time_ns > 0) {
    report->set_step_time_bound_ns(terms.bounds.step_time_ns);
  }
  GpuSearch search(terms, needs, ordered, *order, *planner, request, report);
  auto found = may_fit ? search.Find() : PlanSearchResult();
  if (!found.ok()) return found.status();
  if (may_fit && found->plans.empty() && request->fed_inputs == FedInputs::kStay) {
    auto other =
        BudgetPlanner::Create(request->facts, request->eligibility, needs, *order, ordered.ranks,
                              &*request->filters, request->stop, FedInputs::kMayComeLate);
    if (!other.ok()) return other.status();
    if (other->num_gaps() > planner->num_gaps()) {
      planner.emplace(*std::move(other));  // In the same place: `search` refers to it.
      found = search.Find();
      if (!found.ok()) return found.status();
      if (!found->plans.empty()) request->fed_inputs = FedInputs::kMayComeLate;
    }
  }
  if (found->plans.empty() || request->IsTooSlow(found->plans[0].outcome.step_time_ns())) {
    auto smallest = search.SmallestBudget();
    if (!smallest.ok()) return smallest.status();
    if (found->plans.empty()) {
      return NoPlanError(*request, ordered.step, gpu, terms.bounds, found->failure,
                         found->is_fragile, *smallest);
    }
    return TooSlowError(request->objective, request->facts.placement().devices()[gpu],
                        found->plans[0].outcome.step_time_ns(), request->full_speed_ns,
                        request->facts.HardwareOf(gpu), request->budget_bytes(gpu), *smallest);
  }
  if (!found->cut_short) {
    for (int64_t budget : request->OtherBudgets(gpu)) report->add_other_budget_bytes(budget);
  }
  GpuPlan result{{}, found->cut_short, found->plans[0].outcome.step_time_ns()};
  result.plans = std::move(found->plans);
  return result;
}

}  // namespace spillway::core
