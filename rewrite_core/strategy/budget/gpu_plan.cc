#include "rewrite_core/strategy/budget/gpu_plan.h"

#include <utility>

#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/budget_error.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/budget/gpu_search.h"
#include "rewrite_core/strategy/budget/level_plan.h"
#include "rewrite_core/strategy/budget/plan_search.h"
#include "rewrite_core/strategy/common/device_fit.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {
namespace {

// Takes the plan of `level` if it is faster, and fits in the same sizes and in no fewer variations.
absl::Status TryLevel(const GpuPlanTerms& terms, int64_t bound_ns, BudgetRequest* request,
                      const SwapPlan& base, GpuSearch* search, PlanSearchResult* found,
                      GpuPlan* result, v1::BudgetDevice* report) {
  if (!terms.may_be_level) return absl::OkStatus();
  const int64_t own_ns = found->best ? found->best->outcome.step_time_ns() : kUnlimited;
  if (found->best && static_cast<double>(bound_ns) >= kFarFromBound * static_cast<double>(own_ns)) {
    return absl::OkStatus();
  }
  auto tuned = TunePacedLevel(request->facts, request->eligibility, request->options.budget(),
                              terms.gpu, terms.usable_bytes, base.cpu_device, &request->steps,
                              &request->simulator, request->stop);
  if (GetErrorReason(tuned.status()) == v1::ERROR_REASON_SEARCH_TOO_LONG && found->best) {
    found->cut_short = true;
    report->set_cut_short(true);
    return absl::OkStatus();
  }
  if (!tuned.ok()) return tuned.status();
  if (!*tuned) return absl::OkStatus();
  SwapPlan& level = (*tuned)->plan;
  std::vector<int64_t> budgets = request->OtherBudgets(terms.gpu.index);
  budgets.insert(budgets.begin(), terms.usable_bytes);
  FoundPlan of_level;
  for (size_t k = 0; k < budgets.size(); ++k) {
    auto outcome = request->simulator.Simulate(
        level, StepTerms::OneGpu(terms.gpu.index, budgets[k]), request->stop);
    if (!outcome.ok()) return outcome.status();
    if (!outcome->fits) return absl::OkStatus();
    if (k > 0) continue;
    if (outcome->step_time_ns() >= own_ns) return absl::OkStatus();
    of_level.outcome = *std::move(outcome);
  }
  const v1::BudgetDevice own = *report;
  if (absl::Status s = search->ReportVariations(level); !s.ok()) return s;
  if (found->best && report->unfit_variation_count() > own.unfit_variation_count()) {
    *report = own;
    return absl::OkStatus();
  }
  report->clear_fastest_step_time_ns();
  found->best = std::move(of_level);
  result->plan = std::move(level);
  *report->mutable_level() = std::move((*tuned)->report);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GpuPlan> PlanGpu(const GpuPlanTerms& terms, const Needs& needs,
                                const v1::DeviceFit& unswapped_fit, BudgetRequest* request,
                                OrderedStep* ordered, std::set<int32_t>* has_gap,
                                v1::BudgetDevice* report) {
  const GpuIndex gpu = terms.gpu.index;
  auto order = StepOrder::Create(request->facts, gpu, ordered->step(), request->stop);
  if (!order.ok()) return order.status();
  auto planner = BudgetPlanner::Create(request->facts, request->eligibility, needs, *order,
                                       ordered->ranks(), &*request->filters, request->stop);
  if (!planner.ok()) return planner.status();
  for (const Gap& gap : planner->gaps()) has_gap->insert(order->buffers()[gap.buffer]);
  GpuPlan result;
  result.fit = unswapped_fit;
  report->Clear();
  report->set_device(unswapped_fit.device());
  report->set_gap_count(static_cast<int64_t>(planner->gaps().size()));
  if (!ordered->base().controls.empty()) {
    report->set_ordered_peak_bytes(ordered->step().peak_bytes(gpu));
  }
  auto bounds = ordered->BoundsOf(gpu);
  if (!bounds.ok()) return bounds.status();
  // No search is needed below the lower bound.
  const bool may_fit = bounds->memory_bytes <= request->budget_bytes(gpu);
  const int64_t bound_ns = may_fit ? bounds->step_time_ns : 0;
  if (bound_ns > 0) report->set_step_time_bound_ns(bound_ns);

  GpuSearch search(gpu, terms.other_swaps, needs, *ordered, *order, *planner, request, report);
  const bool saves_memory = request->objective.saves_memory();
  absl::StatusOr<PlanSearchResult> found = PlanSearchResult();
  if (may_fit) {
    found = saves_memory ? search.Least(terms.usable_bytes) : search.Fastest(terms.usable_bytes);
  }
  if (!found.ok()) return found.status();
  if (found->best && !saves_memory) {
    absl::Status s = search.MakeSteady(
        terms.usable_bytes, terms.may_be_level ? OrderChains::kAllowed : OrderChains::kForbidden,
        &*found);
    if (!s.ok()) return s;
  }
  result.plan = ordered->base();
  if (found->best) {
    const std::vector<ControlEdge>& chain = found->best->chain;
    result.plan.controls.insert(result.plan.controls.end(), chain.begin(), chain.end());
    result.plan.swaps = std::move(found->best->swaps);
  }
  if (may_fit && !found->cut_short && !(found->best && saves_memory)) {
    absl::Status s =
        TryLevel(terms, bound_ns, request, ordered->base(), &search, &*found, &result, report);
    if (!s.ok()) return s;
  }
  if (!found->best || request->IsTooSlow(found->best->outcome.step_time_ns())) {
    auto smallest = search.SmallestBudget(bounds->memory_bytes);
    if (!smallest.ok()) return smallest.status();
    if (!found->best) {
      return NoPlanError(*request, *ordered, gpu, *bounds, found->failure, *smallest);
    }
    return SlowPlanError(*request, gpu, found->best->outcome.step_time_ns(), *smallest);
  }
  if (!found->cut_short) {
    for (int64_t budget : request->OtherBudgets(gpu)) report->add_other_budget_bytes(budget);
  }

  // A search that was cut short has left no steps for the need.
  absl::Status s =
      AddPlanned(result.plan, found->best->outcome, gpu, request->facts,
                 found->cut_short ? nullptr : &request->simulator, request->stop, &result.fit);
  if (!s.ok()) return s;
  return result;
}

}  // namespace spillway::core
