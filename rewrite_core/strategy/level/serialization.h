// Serialization of levels, as in TFLMS v2: a chain of control edges makes the ops of one level of
// one GPU run one after another, so that fewer of them hold memory at once.
//
// Sound where TFLMS v2's is not: an edge u -> v is added only if both run in the step, neither is
// fed, v is dead whenever u is, and u needs nothing to run that v does not need already (feeds,
// queues, iterators, initialized variables; never a write). So no initializer waits for a step, and
// no inference for labels. Chains ascend in (topological level, id), so they never close a cycle.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_SERIALIZATION_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_SERIALIZATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/strategy/level/level_filters.h"
#include "rewrite_core/strategy/level/level_order.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

struct Serialization {
  std::vector<ControlEdge> edges;
  int32_t level_count = 0;  // Levels in which there is an edge.
};

// INVALID_ARGUMENT (BAD_OPTION) if an item is neither an index nor a slice. Does not depend on the
// graph.
absl::Status CheckSerialization(const v1::LevelStrategy& options);

// Serializes the ops of the GPU whose devices (DeviceId) are flagged in `devices`. Left out, as in
// TFLMS v2, are ops with `/cond/` or `loss` in their name, variables, constants and the like, ops
// on CPUs, and the levels up to the last Assign that initializes. Empty if no level is requested.
// INVALID_ARGUMENT (BAD_OPTION) if an item selects no level. REQUIRES: CheckSerialization.
absl::StatusOr<Serialization> SerializeLevels(const StepFacts& facts,
                                              const v1::RewriteOptions& options,
                                              const LevelFilters& filters, const LevelOrder& levels,
                                              const std::vector<bool>& devices,
                                              const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_SERIALIZATION_H_
