// What planning has found for one graph: the part of a rewrite that takes long, and that another
// serialization of the same graph shares. (TensorFlow's maps are unordered: each process serializes
// a graph to other bytes.)
#ifndef SPILLWAY_REWRITE_CORE_PLANNED_STEP_H_
#define SPILLWAY_REWRITE_CORE_PLANNED_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "rewrite_core/strategy/strategy_result.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// Nodes have the ids that they have in the graph. Immutable once made.
struct PlannedStep {
  int64_t node_count = 0;  // Of the graph.
  StrategyResult result;
  // What a step takes, if the report was asked for, and what is to be said of that.
  v1::RewriteReport forecast;
  std::vector<v1::Warning> forecast_warnings;  // They come after all others.

  // Memory that it takes, in bytes, about.
  int64_t SpaceUsed() const;
};

// Planning that is given, and that is left for the next one.
struct PlanReuse {
  // Of the same graph but for the order of map entries (graph/canonical_form.h), with the same
  // options and limits; null: there is none.
  std::shared_ptr<const PlannedStep> given;
  // Set by a rewrite that has planned, and not edited a graph that was rewritten before.
  std::shared_ptr<const PlannedStep> made;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLANNED_STEP_H_
