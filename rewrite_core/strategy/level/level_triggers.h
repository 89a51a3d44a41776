// Finds the triggers of the strategy `level`: an op that leads to a swap-in's first consumer d over
// data edges, on the highest level that has one; ten levels are searched, from level(d) - ahead - 1
// down, above the producer's. On one level, the lowest id. Unlike in TFLMS v2, the control edge
// must be sound: no new deadness, no other loop frame, no cycle, no fed node. A trigger runs on the
// consumer's GPU, or names no device.
//
// Caches its results: a search for the same consumer with another `ahead` costs little.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_TRIGGERS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_TRIGGERS_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/level/level_candidates.h"
#include "rewrite_core/strategy/level/level_filters.h"
#include "rewrite_core/strategy/level/level_order.h"

namespace spillway::core {

class LevelTriggers {
 public:
  // `ranks`: those of Soundness. All must outlive the search.
  LevelTriggers(const StepFacts& facts, const LevelFilters& filters, const LevelOrder& levels,
                SearchBudget* budget, absl::Span<const int32_t> ranks = {});

  // Returns the trigger of a swap-in of a tensor whose producer is on `producer_level`, for
  // `group`, whose first reader is the earliest; or kNoNode. The result is meaningless once
  // `budget` is over.
  NodeId Find(int32_t producer_level, absl::Span<const LateReader> group, int32_t ahead);

 private:
  // Whether the devices are the same, or one of them is unspecified.
  bool IsSameGpu(DeviceId a, DeviceId b) const;
  // Whether `trigger` may hold back a swap-in for `consumer`.
  bool MayTrigger(NodeId trigger, NodeId consumer) const;
  bool MayTriggerAll(NodeId trigger, absl::Span<const LateReader> group) const;
  // Walks down from `consumer`, level by level, to `depth` levels below it, and calls
  // visit(levels below it, candidate) until that returns false.
  template <typename Visit>
  void Walk(NodeId consumer, int32_t depth, const Visit& visit);

  const StepFacts& facts_;
  const Soundness soundness_;
  const LevelOrder& levels_;
  SearchBudget* budget_;
  std::vector<bool> barred_;  // Per node: never a trigger, for any consumer.
  // The results of IsSameGpu so far.
  mutable absl::flat_hash_map<std::pair<DeviceId, DeviceId>, bool> same_gpu_;
  // By consumer: the candidate with the lowest id on each of the levels below it that were searched
  // so far; the first item is one level below.
  absl::flat_hash_map<NodeId, std::vector<NodeId>> found_;
  std::vector<std::vector<NodeId>> below_;  // Walk: ops to visit, by levels below.
  std::vector<uint32_t> seen_;              // Walk: per node, the last walk that met it.
  uint32_t walk_ = 0;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_TRIGGERS_H_
