// The plans of all GPUs that need one, made one by one, then made to fit together. Each is planned
// as if the others had unlimited memory, but with their swaps so far. Simulated together, they may
// hold memory for longer: a GPU that then runs out is planned again, for a smaller share of its
// budget, and with the others' current swaps. A single GPU needs no repair.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_PLANS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_PLANS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/gpu_search.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"
#include "rewrite_core/strategy/order/ordered_step.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

class GpuPlans {
 public:
  // `gpus`: the requested ones; `lacking`: indices into them of those that need a plan, at least
  // one; `fits`: one for each of `gpus`. All must outlive it.
  GpuPlans(const std::vector<WantedGpu>& gpus, const std::vector<size_t>& lacking,
           BudgetRequest* request, std::vector<v1::DeviceFit>* fits, v1::BudgetReport* report)
      : gpus_(gpus), lacking_(lacking), request_(*request), fits_(*fits), report_(*report) {}

  // Orders the step, once. Errors: those of the simulator.
  absl::Status Order();
  // REQUIRES: Order(); likewise below.
  const OrderedStep& ordered() const { return ordered_; }
  const Needs& needs() const { return *needs_; }
  // By GPU, for that order.
  const std::vector<DeviceBounds>& bounds() const { return bounds_; }

  // Finds the fastest plan, and reports it in the fits and the report. Errors: DOES_NOT_FIT; those
  // of the simulator.
  absl::Status Find();

  const SwapPlan& plan() const { return plan_; }
  // The buffers with a gap. Errors: those of `stop`.
  absl::StatusOr<std::set<BufferIndex>> FindGaps();

 private:
  std::vector<size_t> SlowestFirst() const;  // Indices in lacking_.
  absl::Status HoldEarlyProducts();
  // Plans lacking_[k] within a share of the budget. A plan that takes `enough_ns` is not improved.
  absl::Status PlanOne(size_t k, double share, int64_t enough_ns);
  // Takes the next plan of lacking_[k]'s search that fits enough variations (kMaxUnfit); returns
  // false if none does.
  absl::StatusOr<bool> TakeNext(size_t k);
  absl::Status ReportFits();
  void Collect();
  std::vector<PlannedSwap> OtherSwaps(size_t k) const;
  absl::StatusOr<int64_t> TooSlowTogether();
  bool is_whole_machine() const;  // Whether `gpus` are all GPUs of the machine.

  const std::vector<WantedGpu>& gpus_;
  const std::vector<size_t>& lacking_;
  BudgetRequest& request_;
  std::vector<v1::DeviceFit>& fits_;
  v1::BudgetReport& report_;
  absl::optional<Needs> needs_;
  OrderedStep ordered_;
  std::vector<DeviceBounds> bounds_;  // By GPU, of ordered_.
  std::vector<GpuPlan> planned_;      // By GPU of lacking_: the plan is the first of its plans.
  SwapPlan plan_;
  std::set<BufferIndex> has_gap_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_GPU_PLANS_H_
