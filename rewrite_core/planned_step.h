// The result of planning for one graph: the slow part of a rewrite, which is reusable for another
// serialization of the same graph. (TensorFlow's maps are unordered: each process serializes a
// graph to different bytes.)
#ifndef SPILLWAY_REWRITE_CORE_PLANNED_STEP_H_
#define SPILLWAY_REWRITE_CORE_PLANNED_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// Node ids are those of the graph. Immutable once made.
struct PlannedStep {
  int64_t node_count = 0;  // Nodes of the graph.
  StrategyResult result;
  // The forecasts for a step, if the report was requested, and the warnings about them.
  v1::RewriteReport forecast;
  std::vector<v1::Warning> forecast_warnings;  // Reported after all others.

  // The approximate memory that it takes, in bytes.
  int64_t SpaceUsed() const;
};

// A plan to reuse, and the plan that was made, for later reuse.
struct PlanReuse {
  // A plan for the same graph up to the order of map entries (graph/canonical_form.h), with the
  // same options and limits. Null if none.
  std::shared_ptr<const PlannedStep> given;
  // Set by a rewrite that planned, unless the graph had been rewritten before.
  std::shared_ptr<const PlannedStep> made;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLANNED_STEP_H_
