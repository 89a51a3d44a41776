// The plans of all GPUs that need one, made one by one, then made to fit together. Each is planned
// as if the others had unlimited memory, but with their swaps so far. Simulated together, they may
// hold memory for longer: a GPU that then runs out is planned again, with the others' current
// swaps, and after some such repairs all are planned again, for a smaller share of the budget.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ALL_GPUS_PLAN_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ALL_GPUS_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/ordered_step.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

class AllGpusPlan {
 public:
  // `gpus`: the requested ones; `lacking`: indices into them of those that need a plan, at least
  // one; `fits`: one for each of `gpus`. All must outlive it.
  AllGpusPlan(const std::vector<WantedGpu>& gpus, const std::vector<size_t>& lacking,
              BudgetRequest* request, OrderedStep* ordered, std::vector<v1::DeviceFit>* fits,
              v1::BudgetReport* report)
      : gpus_(gpus),
        lacking_(lacking),
        request_(*request),
        ordered_(*ordered),
        fits_(*fits),
        report_(*report) {}

  // Finds the fastest plan, and reports it in the fits and the report. Errors: DOES_NOT_FIT; those
  // of the simulator.
  absl::Status Find();

  const SwapPlan& plan() const { return plan_; }
  // The buffers (Buffers::buffers()) with a gap.
  const std::set<int32_t>& has_gap() const { return has_gap_; }

 private:
  absl::Status PlanEach();
  absl::Status PlanOne(size_t k, double share, const Needs& needs);
  void CollectSwaps();
  std::vector<PlannedSwap> OtherSwaps(size_t k) const;
  absl::StatusOr<int64_t> TooSlowTogether();
  absl::Status TakeLevelIfFaster(const absl::Status& planned);
  bool is_whole_machine() const;  // Whether `gpus` are all GPUs of the machine.
  std::vector<std::vector<int64_t>> AllBudgets() const;

  const std::vector<WantedGpu>& gpus_;
  const std::vector<size_t>& lacking_;
  BudgetRequest& request_;
  OrderedStep& ordered_;
  std::vector<v1::DeviceFit>& fits_;
  v1::BudgetReport& report_;
  std::vector<v1::DeviceFit> unswapped_fits_;    // fits_ before any plan.
  std::vector<std::vector<PlannedSwap>> swaps_;  // By GPU of lacking_, so far.
  SwapPlan plan_;
  std::set<int32_t> has_gap_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ALL_GPUS_PLAN_H_
