// Plans of clones for several targets, on one GPU or on several at once. How a sweep leaves memory,
// free or in pieces, is known only after it: so sweeps are made for a grid of terms, and the one
// that adds the least time is tried first.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_CLONE_GRID_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_CLONE_GRID_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/plan/clone_rules.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/strategy/order/ordered_step.h"
#include "rewrite_core/strategy/order/step_order.h"
#include "rewrite_core/strategy/recompute/recompute_step.h"
#include "rewrite_core/strategy/recompute/recompute_sweep.h"

namespace spillway::core {

// One point of the grid.
struct CloneSweeps {
  size_t terms = 0;  // An index in those of the grid.
  std::vector<Sweep> by_gpu;
  int64_t added_ns = 0;  // Of the GPU whose clones take longest.
};
inline bool TakesLess(const CloneSweeps& a, const CloneSweeps& b) {
  return a.added_ns < b.added_ns;
}

class CloneGrid {
 public:
  struct Gpu {
    GpuIndex index{0};
    int64_t budget_bytes = 0;
  };

  // Each point is tried with each of `terms`: if more nodes may be cloned, a sweep is not always
  // better. All must outlive the grid. Errors: those of the facts and of `stop`. REQUIRES: kBuffers
  // and kActiveNodes.
  static absl::StatusOr<CloneGrid> Create(const StepFacts& facts, const OrderedStep& ordered,
                                          const Needs& needs, const std::vector<Gpu>& gpus,
                                          const std::vector<RecomputeTerms>& terms,
                                          const StopToken& stop);

  // kFine: twice the work of kUsual, in addition.
  enum class Fineness { kUsual, kFine };
  // Adds sweeps that fit the budgets and are not known: for a grid of shares of the budgets and
  // powers of the time, with memory counted and placed.
  absl::Status AddWithin(Fineness fineness, std::vector<CloneSweeps>* known) const;
  // For a target of this share of the budget.
  absl::StatusOr<std::vector<CloneSweeps>> Of(double share) const { return At({share, 0}); }
  // For a target between the budget and the peak, which leaves something to swap: `part` of the
  // way, from 0 to 1.
  absl::StatusOr<std::vector<CloneSweeps>> Beyond(double part) const { return At({1, part}); }

  struct Plan {
    ClonePlan clones;
    std::vector<ControlEdge> controls;  // In place of those of the ordered step (postpone.h).
  };
  // The plan of such sweeps, if any (PlanClones).
  absl::StatusOr<std::optional<Plan>> PlanOf(const CloneSweeps& sweeps) const;

 private:
  struct OnGpu {
    Gpu gpu;
    int64_t peak_bytes = 0;
    StepOrder order;
    std::vector<std::unique_ptr<RecomputeStep>> steps;  // By terms.
  };

  CloneGrid(const StepFacts& facts, const OrderedStep& ordered, const Needs& needs,
            const StopToken& stop)
      : facts_(&facts), ordered_(&ordered), needs_(&needs), stop_(&stop) {}
  // A point: the target is a share of the budget, plus a part of the peak beyond it.
  struct Point {
    double share = 1, part = 0, time_power = 1;
    bool is_placed = false;
  };
  absl::StatusOr<std::vector<CloneSweeps>> At(const Point& point) const;
  // Adds the sweeps of all GPUs to `found`, if all fit, and are not there yet; for each terms.
  absl::Status Add(const Point& point, std::vector<CloneSweeps>* found) const;
  absl::Status Add(const Point& point, size_t terms, std::vector<CloneSweeps>* found) const;

  const StepFacts* facts_;
  const OrderedStep* ordered_;
  const Needs* needs_;
  const StopToken* stop_;
  std::unique_ptr<CloneRules> rules_;
  size_t num_terms_ = 0;
  std::vector<std::unique_ptr<OnGpu>> gpus_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_CLONE_GRID_H_
