// A control edge to be added between two original nodes, and its purpose.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_CONTROL_EDGE_H_
#define SPILLWAY_REWRITE_CORE_PLAN_CONTROL_EDGE_H_

#include "rewrite_core/graph/graph.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// `to` waits for the end of `from`. The kind is serialization or order; edges of the other kinds
// lead from or to swap nodes.
struct ControlEdge {
  NodeId from;
  NodeId to;
  v1::EdgeKind kind = v1::EDGE_KIND_UNSPECIFIED;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_CONTROL_EDGE_H_
