// One run of the strategy `budget` on one graph: simulates the unplanned step, and plans swaps for
// the GPUs that it does not fit. The graph may be the user's, or that with clones (joint_search.h).
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_RUN_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_RUN_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/gpu_plans.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

class BudgetRun {
 public:
  // REQUIRES: the options were checked; all must outlive it. `steps`: of the whole request.
  BudgetRun(const StrategyInput& input, SearchBudget* steps)
      : steps_(*steps), request_(input, steps) {}
  BudgetRun(const BudgetRun&) = delete;
  BudgetRun& operator=(const BudgetRun&) = delete;

  // For a graph with clones: each plan has the order edges of `base`, and full speed is that of
  // the graph without clones. `fed_inputs`: of the request before.
  void StartFrom(const SwapPlan& base, int64_t full_speed_ns,
                 FedInputs fed_inputs = FedInputs::kStay);

  // For a graph whose state was moved to the host: full speed is that of the graph before.
  void SetFullSpeed(int64_t full_speed_ns) { request_.full_speed_ns = full_speed_ns; }

  // Simulates the step, and finds the GPUs that it does not fit. Errors: an unknown batch, too many
  // GPUs, filters; those of the simulator.
  absl::Status Simulate();

  // Whether a GPU needs a plan; and whether the step itself fits on all GPUs, so that plans are
  // only for its variations, or to save memory.
  bool needs_plan() const { return !lacking_.empty(); }
  bool fits_unplanned() const { return unswapped_fits_.size() == lacking_.size(); }
  // The number of variations that do not fit, over all GPUs where the step itself does; and whether
  // each has few enough (kMaxUnfit).
  int unfit_variations() const;
  bool fits_most_variations() const;
  // Takes the unplanned step. REQUIRES: fits_unplanned(), fits_most_variations().
  void AcceptUnplanned();
  // Chains the operations of a step that does not fit in all variations, in its order
  // (order_chain.h), if it then fits in more of them and takes hardly longer. Errors: those of the
  // simulator. REQUIRES: fits_unplanned().
  absl::Status KeepOrder();

  // Whether the step, which fits the budget of each GPU, fits in the other sizes, too, and on all
  // GPUs at once. Errors: those of the simulator.
  absl::StatusOr<bool> FitsElsewhere();

  // Orders the step for which plans are made. REQUIRES: needs_plan().
  absl::Status Order();
  const GpuPlans& plans() const { return *plans_; }
  // The lower bound of a planned step's time; kUnlimited if no plan can fit.
  int64_t BoundNs() const;

  // Plans swaps, in place of those planned before. A plan that takes `worth_ns` or more is not made
  // to fit in variations. Errors: DOES_NOT_FIT; those of the simulator. REQUIRES: Order().
  absl::Status PlanSwaps(int64_t worth_ns = kUnlimited);
  // The time of the planned step, on its slowest GPU.
  int64_t StepTimeNs() const;
  // The largest peak of a planned GPU.
  int64_t PeakBytes() const;

  // Whether there is a warning that the plan, or the unplanned step, does not fit in all
  // variations.
  bool may_run_out() const;

  // Takes another run's plan, on the graph with `clones`.
  void TakeCloned(ClonePlan clones, BudgetRun* other);

  // Reports the lower bound of plans that may recompute, unless this one takes less, as one that
  // postpones nodes may.
  void ReportBound(int64_t bound_ns) {
    if (bound_ns > 0 && bound_ns <= StepTimeNs())
      result_.report.mutable_budget()->set_joint_bound_ns(bound_ns);
  }
  // Reports that max_search_steps ended the search for the plan.
  void ReportCutShort() {
    for (v1::BudgetDevice& device : *result_.report.mutable_budget()->mutable_devices()) {
      device.set_cut_short(true);
    }
  }
  // Reports the gain from more recomputation.
  void Recommend(const v1::MoreRecompute& more) {
    *result_.report.mutable_budget()->mutable_more_recompute() = more;
  }

  // Errors: those of `stop`.
  absl::StatusOr<StrategyResult> Finish();

  const BudgetRequest& request() const { return request_; }
  const std::vector<WantedGpu>& gpus() const { return gpus_; }
  const std::vector<size_t>& lacking() const { return lacking_; }
  const std::vector<v1::DeviceFit>& fits() const { return fits_; }  // By GPU.

 private:
  absl::Status MakeFilters();
  absl::Status SimulateOn(size_t i);
  absl::StatusOr<int> CountUnfitUnswapped(size_t i);
  bool IsMoreRobust() const;
  v1::BudgetDevice TriedUnplanned(size_t i) const;
  void Warn(int unfit);

  const SearchBudget& steps_;
  BudgetRequest request_;
  std::vector<WantedGpu> gpus_;
  std::vector<v1::DeviceFit> fits_;  // By GPU.
  std::vector<size_t> lacking_;      // Indices into both, of the GPUs that need a plan.
  struct Unswapped {
    v1::DeviceFit fit;
    int unfit = 0;  // The number of variations that do not fit.
  };
  absl::StatusOr<std::vector<ControlEdge>> FindChain();
  int64_t UnplannedNs() const;
  std::map<size_t, Unswapped> unswapped_fits_;  // Of planned GPUs that the step fits.
  std::set<DeviceId> idle_;                     // Those of GPUs that need no plan.
  absl::optional<GpuPlans> plans_;
  StrategyResult result_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_RUN_H_
