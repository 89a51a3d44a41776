// Makes the plan of the strategy `level` for one GPU and one setting: which readers read which
// swap-in, its triggers, and the nodes that wait for copies.
//
// Thread safety: one thread at a time. The arguments of the constructor must outlive it.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PLANNER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PLANNER_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"
#include "rewrite_core/strategy/level/level_candidates.h"
#include "rewrite_core/strategy/level/level_filters.h"
#include "rewrite_core/strategy/level/level_order.h"
#include "rewrite_core/strategy/level/level_pacing.h"
#include "rewrite_core/strategy/level/level_parameters.h"
#include "rewrite_core/strategy/level/level_triggers.h"
#include "rewrite_core/strategy/level/level_tuning.h"

namespace spillway::core {

class LevelPlanner : public TunedPlanner {
 public:
  // `gpu`: the one whose tensors are swapped. `pacing`: may be null.
  LevelPlanner(const StepFacts& facts, const LevelFilters& filters, const LevelOrder& levels,
               const LevelCandidates& candidates, const WantedGpu& gpu, SearchBudget* budget,
               const LevelPacing* pacing = nullptr);

  // Returns the swaps, by tensor. Errors: those of `budget`.
  absl::StatusOr<std::vector<PlannedSwap>> Plan(const LevelSetting& setting) override;

  std::vector<int32_t> Thresholds() const override;
  std::vector<int32_t> Aheads() const override;
  std::vector<int32_t> Groupbys() const override;

 private:
  PlannedSwap PlanSwap(const LevelCandidate& candidate, absl::Span<const LateReader> readers,
                       const LevelSetting& setting);
  PlannedSwapIn PlanSwapIn(const LevelCandidate& candidate, absl::Span<const LateReader> group,
                           const LevelSetting& setting);
  PlannedSwapIn PlanUnpaced(const LevelCandidate& candidate, absl::Span<const LateReader> group,
                            const LevelSetting& setting);
  // Returns the ops with which a swap-in for `consumer` alone is synchronized: the producers of its
  // other inputs that stay on a GPU, and its control inputs.
  absl::InlinedVector<NodeId, 1> SyncProducers(NodeId consumer, int32_t threshold);
  // Returns the ops that wait for the swap-out of `candidate`.
  std::vector<NodeId> Waiting(const LevelCandidate& candidate, int32_t threshold);
  // Whether the input reads a swap-in with this threshold.
  bool ReadsSwapIn(InputPosition position, int32_t threshold) const;

  const Soundness soundness_;
  const Graph& graph_;
  const LevelFilters& filters_;
  const LevelCandidates& candidates_;
  SearchBudget* budget_;
  const LevelPacing* const pacing_;
  const GpuIndex gpu_;
  LevelTriggers triggers_;
  std::vector<LevelCandidate> tensors_;
  // The distance of every late reader's edge. Filled in by the first Plan, as that may run out of
  // steps.
  absl::flat_hash_map<std::pair<NodeId, int32_t>, int32_t> distances_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_PLANNER_H_
