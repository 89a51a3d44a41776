// A control edge that a graph does not have: half of what a plan adds.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_CONTROL_EDGE_H_
#define SPILLWAY_REWRITE_CORE_PLAN_CONTROL_EDGE_H_

#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// `to` waits for the end of `from`.
struct ControlEdge {
  NodeId from;
  NodeId to;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_CONTROL_EDGE_H_
