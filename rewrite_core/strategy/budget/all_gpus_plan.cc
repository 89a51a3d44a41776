#include "rewrite_core/strategy/budget/all_gpus_plan.h"

#include <algorithm>
#include <utility>

#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/gpu_plan.h"
#include "rewrite_core/strategy/common/fit_failure.h"
#include "rewrite_core/strategy/common/gpu_budgets.h"
#include "rewrite_core/strategy/common/op_filter.h"
#include "rewrite_core/strategy/level/level_strategy.h"

namespace spillway::core {
namespace {

// With several GPUs, plans that do not fit together, or are too slow together, are remade at most
// this many times per GPU, for each share of the budget.
constexpr size_t kRepairsPerGpu = 2;

// Running out of search steps is no error if there is a plan.
absl::Status OkIfTooLong(absl::Status status) {
  const bool is_too_long = GetErrorReason(status) == v1::ERROR_REASON_SEARCH_TOO_LONG;
  return is_too_long ? absl::OkStatus() : status;
}

}  // namespace

absl::Status AllGpusPlan::Find() {
  plan_.cpu_device = ordered_.base().cpu_device;
  return TakeLevelIfFaster(PlanEach());
}

bool AllGpusPlan::is_whole_machine() const {
  return gpus_.size() == request_.facts.placement().devices().size();
}

absl::Status AllGpusPlan::PlanEach() {
  const StepFacts& facts = request_.facts;
  auto needs = Needs::Find(facts, request_.stop);
  if (!needs.ok()) return needs.status();
  unswapped_fits_ = fits_;
  request_.num_planned_gpus = lacking_.size();
  FitFailure failure;
  for (const double share : kBudgetShares) {
    swaps_.assign(lacking_.size(), {});
    report_.clear_devices();
    for (size_t k = 0; k < lacking_.size(); ++k) {
      report_.add_devices();
      if (absl::Status s = PlanOne(k, share, *needs); !s.ok()) return s;
    }
    for (size_t repair = 0;; ++repair) {
      CollectSwaps();
      const bool may_repair = repair < kRepairsPerGpu * lacking_.size();
      size_t next = repair % lacking_.size();
      if (gpus_.size() > 1 && is_whole_machine()) {
        auto fits = SimulateTogether(plan_, facts, &request_.simulator, request_.stop, &failure);
        if (!fits.ok()) return fits.status();
        if (!*fits) {
          const auto failed = std::find_if(lacking_.begin(), lacking_.end(), [&](size_t i) {
            return facts.placement().devices()[gpus_[i].index] == failure.gpu;
          });
          if (!may_repair || failure.on_host || failed == lacking_.end()) break;
          next = static_cast<size_t>(failed - lacking_.begin());
          if (absl::Status s = PlanOne(next, share, *needs); !s.ok()) return s;
          continue;
        }
      }
      auto slow_ns = TooSlowTogether();
      if (!slow_ns.ok()) return slow_ns.status();
      if (*slow_ns == 0) return absl::OkStatus();
      if (!may_repair) {
        return TooSlowError(request_.objective, "", *slow_ns, request_.unswapped.step_time_ns(),
                            facts.hardware(), facts.hardware().device_budget_bytes(),
                            /*smallest_budget_bytes=*/0);
      }
      if (absl::Status s = PlanOne(next, share, *needs); !s.ok()) return s;
    }
  }
  int64_t unswapped_peak_bytes = 0;
  for (const WantedGpu& gpu : gpus_) {
    unswapped_peak_bytes = std::max(unswapped_peak_bytes, request_.unswapped.peak_bytes(gpu.index));
  }
  return NotTogetherError(failure, unswapped_peak_bytes, facts, &request_.simulator, request_.stop);
}

// Plans lacking_[k] within a share of the budget.
absl::Status AllGpusPlan::PlanOne(size_t k, double share, const Needs& needs) {
  const size_t i = lacking_[k];
  const std::vector<PlannedSwap> others = OtherSwaps(k);
  const GpuPlanTerms terms{gpus_[i], ShareOf(request_.budget_bytes(gpus_[i].index), share), others,
                           lacking_.size() == 1};
  auto planned = PlanGpu(terms, needs, unswapped_fits_[i], &request_, &ordered_, &has_gap_,
                         report_.mutable_devices(static_cast<int>(k)));
  if (!planned.ok()) return planned.status();
  fits_[i] = std::move(planned->fit);
  plan_.controls = std::move(planned->plan.controls);
  swaps_[k] = std::move(planned->plan.swaps);
  return absl::OkStatus();
}

void AllGpusPlan::CollectSwaps() {
  plan_.swaps.clear();
  for (const auto& swaps : swaps_) {
    plan_.swaps.insert(plan_.swaps.end(), swaps.begin(), swaps.end());
  }
  SortSwaps(&plan_.swaps);
}

// Returns the swaps so far of the GPUs other than lacking_[k].
std::vector<PlannedSwap> AllGpusPlan::OtherSwaps(size_t k) const {
  std::vector<PlannedSwap> others;
  for (size_t i = 0; i < swaps_.size(); ++i) {
    if (i != k) others.insert(others.end(), swaps_[i].begin(), swaps_[i].end());
  }
  return others;
}

// Plans that were made one by one may slow each other down. Returns the step time if it is too
// slow; 0 if it is fast enough.
absl::StatusOr<int64_t> AllGpusPlan::TooSlowTogether() {
  if (!request_.objective.max_slowdown() || gpus_.size() < 2) return 0;
  auto outcome = request_.simulator.Simulate(
      plan_, is_whole_machine() ? StepTerms::AllGpus(request_.facts.Budgets()) : StepTerms(),
      request_.stop);
  if (!outcome.ok()) return outcome.status();
  return request_.IsTooSlow(outcome->step_time_ns()) ? outcome->step_time_ns() : 0;
}

// Returns lists by GPU: the budgets, and then each of the other sizes.
std::vector<std::vector<int64_t>> AllGpusPlan::AllBudgets() const {
  std::vector<std::vector<int64_t>> all = {request_.facts.Budgets()};
  for (GpuIndex gpu(0); gpu < static_cast<int32_t>(all[0].size()); ++gpu) {
    const std::vector<int64_t> others = request_.OtherBudgets(gpu);
    all.resize(std::max(all.size(), others.size() + 1), all[0]);
    for (size_t i = 0; i < others.size(); ++i) all[i + 1][gpu] = others[i];
  }
  return all;
}

// Like PlanGpu for one GPU, takes the plans of `level` for several GPUs, all of them or none, if
// they are faster. `planned`: the status of the plans of `budget`.
absl::Status AllGpusPlan::TakeLevelIfFaster(const absl::Status& planned) {
  const bool has_none = GetErrorReason(planned) == v1::ERROR_REASON_DOES_NOT_FIT;
  if (lacking_.size() < 2 || gpus_.size() < request_.facts.placement().devices().size() ||
      request_.objective.saves_memory() || !(planned.ok() || has_none)) {
    return planned;
  }
  CountedSimulator& simulator = request_.simulator;
  int64_t own_ns = kUnlimited;
  if (!has_none) {
    auto own =
        simulator.Simulate(plan_, StepTerms::AllGpus(request_.facts.Budgets()), request_.stop);
    if (!own.ok()) return OkIfTooLong(own.status());
    own_ns = own->step_time_ns();
    int64_t bound_ns = 0;
    for (const v1::BudgetDevice& device : report_.devices()) {
      bound_ns = std::max(bound_ns, device.step_time_bound_ns());
    }
    if (static_cast<double>(bound_ns) >= kFarFromBound * static_cast<double>(own_ns)) {
      return planned;
    }
  }
  v1::RewriteOptions options = request_.options;
  CopyFilters(request_.options.budget(), options.mutable_level());
  options.mutable_level()->set_pace(true);
  options.set_decision_detail(v1::DECISION_DETAIL_NONE);
  auto level = PlanLevel({request_.facts, request_.eligibility, options, request_.input.limits,
                          &simulator, request_.stop});
  const v1::ErrorReason why_not = GetErrorReason(level.status());
  // Its built-in list may exclude everything that the filters leave.
  if (why_not == v1::ERROR_REASON_DOES_NOT_FIT || why_not == v1::ERROR_REASON_BAD_OPTION) {
    return planned;
  }
  if (!level.ok()) return has_none ? level.status() : OkIfTooLong(level.status());
  for (const std::vector<int64_t>& budgets : AllBudgets()) {
    auto outcome = simulator.Simulate(level->plan, StepTerms::AllGpus(budgets), request_.stop);
    if (!outcome.ok()) return has_none ? outcome.status() : OkIfTooLong(outcome.status());
    if (!outcome->fits) return planned;
    if (budgets == request_.facts.Budgets() &&
        (outcome->step_time_ns() >= own_ns || request_.IsTooSlow(outcome->step_time_ns()))) {
      return planned;
    }
  }
  plan_ = std::move(level->plan);
  fits_.assign(level->report.fits().begin(), level->report.fits().end());
  report_.clear_devices();
  for (v1::LevelDevice& of_level : *level->report.mutable_level()->mutable_devices()) {
    v1::BudgetDevice& device = *report_.add_devices();
    device.set_device(of_level.device());
    const GpuIndex gpu = gpus_[report_.devices_size() - 1].index;
    for (int64_t budget : request_.OtherBudgets(gpu)) device.add_other_budget_bytes(budget);
    *device.mutable_level() = std::move(of_level);
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
