#include "rewrite_core/strategy/budget/gpu_plans.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/common/device_fit.h"
#include "rewrite_core/strategy/common/fit_failure.h"
#include "rewrite_core/strategy/common/gpu_budgets.h"
#include "rewrite_core/strategy/order/held_products.h"

namespace spillway::core {
namespace {

// The shares of a GPU's budget that it is planned for, one after the other, while it runs out
// together with the others: all of it twice, since the others' swaps have changed by then.
constexpr double kShares[] = {1.0, 1.0, 0.97, 0.94, 0.91, 0.88, 0.84, 0.8};
// Before that, other plans of its search are tried that take at most 1/kTogetherPart longer.
constexpr int64_t kTogetherPart = 50;

// With several GPUs, plans that are too slow together are remade at most this many times per GPU.
constexpr size_t kRemadePerGpu = 2;

// Many outputs that are smaller than kLargeOutputs are worth order edges only together.
constexpr OrderEdgeTerms kManyOutputs = {16384, 0.03};

}  // namespace

absl::Status GpuPlans::Order() {
  if (needs_) return absl::OkStatus();
  const StepFacts& facts = request_.facts;
  const StopToken& stop = request_.stop;
  auto needs = Needs::Find(facts, stop);
  if (!needs.ok()) return needs.status();
  needs_.emplace(*std::move(needs));
  std::vector<GpuIndex> lacking;
  for (size_t i : lacking_) lacking.push_back(gpus_[i].index);
  auto ordered = OrderedStep::Create(facts, request_.base, request_.unswapped, lacking,
                                     {kLargeOutputs, kManyOutputs}, request_.MaxStepTime(),
                                     &request_.simulator, stop);
  if (!ordered.ok()) return ordered.status();
  ordered_ = *std::move(ordered);
  if (absl::Status s = HoldEarlyProducts(); !s.ok()) return s;
  auto bounds = request_.simulator.LowerBounds(LaunchOrder(ordered_.step), {}, stop);
  if (!bounds.ok()) return bounds.status();
  bounds_ = *std::move(bounds);
  return absl::OkStatus();
}

absl::Status GpuPlans::HoldEarlyProducts() {
  if (request_.is_one_of_several) return absl::OkStatus();  // `base` has their edges.
  for (size_t i : lacking_) {
    auto held = HoldProducts(request_.facts, *needs_, ordered_.ranks, ordered_.step, gpus_[i].index,
                             request_.stop);
    if (!held.ok()) return held.status();
    std::vector<ControlEdge>& controls = ordered_.base.controls;
    controls.insert(controls.end(), held->begin(), held->end());
  }
  return absl::OkStatus();
}

absl::Status GpuPlans::Find() {
  if (absl::Status s = Order(); !s.ok()) return s;
  const StepFacts& facts = request_.facts;
  const StopToken& stop = request_.stop;
  plan_ = request_.base;
  request_.num_planned_gpus = lacking_.size();
  planned_.assign(lacking_.size(), GpuPlan());
  report_.clear_devices();
  for (size_t k = 0; k < lacking_.size(); ++k) report_.add_devices();
  int64_t slowest_ns = 0;
  for (size_t k : SlowestFirst()) {
    if (absl::Status s = PlanOne(k, kShares[0], slowest_ns); !s.ok()) return s;
    slowest_ns = std::max(slowest_ns, planned_[k].fastest_ns);
  }
  std::vector<size_t> shares(lacking_.size(), 0);  // By GPU of lacking_, in kShares.
  FitFailure failure;
  for (size_t remade = 0;;) {
    Collect();
    if (absl::Status s = stop.status("strategy"); !s.ok()) return s;
    if (gpus_.size() > 1 && is_whole_machine()) {
      auto fits = SimulateTogether(plan_, facts, &request_.simulator, stop, &failure);
      if (!fits.ok()) return fits.status();
      if (!*fits) {
        const auto failed = std::find_if(lacking_.begin(), lacking_.end(), [&](size_t i) {
          return facts.placement().devices()[gpus_[i].index] == failure.gpu;
        });
        if (failure.on_host || failed == lacking_.end()) break;
        const auto k = static_cast<size_t>(failed - lacking_.begin());
        auto next = TakeNext(k);
        if (!next.ok()) return next.status();
        if (*next) continue;
        if (++shares[k] == std::size(kShares)) break;
        if (absl::Status s = PlanOne(k, kShares[shares[k]], /*enough_ns=*/0); !s.ok()) return s;
        continue;
      }
    }
    auto slow_ns = TooSlowTogether();
    if (!slow_ns.ok()) return slow_ns.status();
    if (*slow_ns == 0) return ReportFits();
    if (remade == kRemadePerGpu * lacking_.size()) {
      return TooSlowError(request_.objective, "", *slow_ns, request_.full_speed_ns,
                          facts.hardware(), facts.hardware().device_budget_bytes(),
                          /*smallest_budget_bytes=*/0);
    }
    const size_t k = remade++ % lacking_.size();
    if (absl::Status s = PlanOne(k, kShares[shares[k]], /*enough_ns=*/0); !s.ok()) return s;
  }
  int64_t unswapped_peak_bytes = 0;
  for (const WantedGpu& gpu : gpus_) {
    unswapped_peak_bytes = std::max(unswapped_peak_bytes, request_.unswapped.peak_bytes(gpu.index));
  }
  return NotTogetherError(failure, unswapped_peak_bytes, facts, &request_.simulator, stop);
}

// A step takes as long as its slowest GPU: if that is planned first, searches for the others end
// once they are as fast. (tfcnn_inception3_4gpu in a half and a quarter of its memory, with all
// clones: 168 to 111 s.) A GPU that no plan fits comes first: then none is searched.
std::vector<size_t> GpuPlans::SlowestFirst() const {
  std::vector<size_t> order(lacking_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto bound_ns = [this](size_t k) {
    const GpuIndex gpu = gpus_[lacking_[k]].index;
    const bool may_fit = bounds_[gpu].memory_bytes <= request_.budget_bytes(gpu);
    return may_fit ? bounds_[gpu].step_time_ns : kUnlimited;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bound_ns(a) > bound_ns(b); });
  return order;
}

absl::Status GpuPlans::PlanOne(size_t k, double share, int64_t enough_ns) {
  const size_t i = lacking_[k];
  const WantedGpu& gpu = gpus_[i];
  const std::vector<PlannedSwap> others = OtherSwaps(k);
  const GpuTerms terms{gpu, ShareOf(request_.budget_bytes(gpu.index), share), others,
                       bounds_[gpu.index], enough_ns};
  auto planned = PlanGpu(terms, *needs_, ordered_, &request_, &has_gap_,
                         report_.mutable_devices(static_cast<int>(k)));
  if (!planned.ok()) return planned.status();
  planned_[k] = *std::move(planned);
  return absl::OkStatus();
}

absl::StatusOr<bool> GpuPlans::TakeNext(size_t k) {
  std::vector<FoundPlan>& plans = planned_[k].plans;
  const GpuIndex gpu = gpus_[lacking_[k]].index;
  const int64_t most_ns = planned_[k].fastest_ns + planned_[k].fastest_ns / kTogetherPart;
  while (plans.size() > 1 && plans[1].outcome.step_time_ns() <= most_ns) {
    plans.erase(plans.begin());
    if (!request_.has_reserve()) return true;
    const SwapPlan plan = WholePlan(ordered_.base, plans[0], OtherSwaps(k));
    std::vector<VariedStep> steps = request_.VariedSteps(request_.budget_bytes(gpu));
    auto unfit = request_.CountUnfit(plan, gpu, kMaxUnfit + 1, &steps, request_.OtherBudgets(gpu));
    if (!unfit.ok()) return unfit.status();
    if (*unfit > kMaxUnfit) continue;
    report_.mutable_devices(static_cast<int>(k))->set_unfit_variation_count(*unfit);
    return true;
  }
  return false;
}

absl::Status GpuPlans::ReportFits() {
  for (size_t k = 0; k < lacking_.size(); ++k) {
    const GpuPlan& planned = planned_[k];
    SwapPlan plan = plan_;
    plan.swaps = planned.plans[0].swaps;
    // A search that was cut short has left no steps for the need.
    absl::Status s = AddPlanned(plan, planned.plans[0].outcome, gpus_[lacking_[k]].index,
                                request_.facts, planned.cut_short ? nullptr : &request_.simulator,
                                request_.stop, &fits_[lacking_[k]]);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

void GpuPlans::Collect() {
  plan_.swaps = OtherSwaps(lacking_.size());
  SortSwaps(&plan_.swaps, request_.stop);
  MergeSwaps(&plan_.swaps);
  plan_.controls = ordered_.base.controls;
  for (const GpuPlan& planned : planned_) {
    const std::vector<ControlEdge>& controls = planned.plans[0].controls;
    plan_.controls.insert(plan_.controls.end(), controls.begin(), controls.end());
  }
}

// Returns the swaps so far of the GPUs other than lacking_[k].
std::vector<PlannedSwap> GpuPlans::OtherSwaps(size_t k) const {
  std::vector<PlannedSwap> others;
  for (size_t i = 0; i < planned_.size(); ++i) {
    if (i == k || planned_[i].plans.empty()) continue;
    const std::vector<PlannedSwap>& swaps = planned_[i].plans[0].swaps;
    others.insert(others.end(), swaps.begin(), swaps.end());
  }
  return others;
}

// Plans that were made one by one may slow each other down. Returns the step time if it is too
// slow; 0 if it is fast enough.
absl::StatusOr<int64_t> GpuPlans::TooSlowTogether() {
  if (!request_.objective.max_slowdown() || gpus_.size() < 2) return 0;
  auto outcome = request_.simulator.Simulate(
      plan_, is_whole_machine() ? StepTerms::AllGpus(request_.facts.Budgets()) : StepTerms(),
      request_.stop);
  if (!outcome.ok()) return outcome.status();
  return request_.IsTooSlow(outcome->step_time_ns()) ? outcome->step_time_ns() : 0;
}

absl::StatusOr<std::set<BufferIndex>> GpuPlans::FindGaps() {
  if (!planned_.empty()) return has_gap_;
  for (size_t i : lacking_) {
    auto order = StepOrder::Create(request_.facts, gpus_[i].index, ordered_.step, request_.stop);
    if (!order.ok()) return order.status();
    auto planner = BudgetPlanner::Create(request_.facts, request_.eligibility, *needs_, *order,
                                         ordered_.ranks, &*request_.filters, request_.stop);
    if (!planner.ok()) return planner.status();
    for (const Gap& gap : planner->gaps()) has_gap_.insert(planner->BufferOf(gap));
  }
  return has_gap_;
}

bool GpuPlans::is_whole_machine() const {
  return gpus_.size() == request_.facts.placement().devices().size();
}

}  // namespace spillway::core
