// Order edges save memory without a copy. An operation that is ready long before its reader needs
// its output (such as the gradient of a weight decay, ready when the step begins) is made to wait
// for the latest of the reader's other inputs.
//
// If v waits for u, both lead to the reader r, and v to nothing else: the nodes between v and r are
// a chain, and u is launched after the last of them.
//   Nothing runs unnecessarily. A step that runs v runs r, and u with it, unless v itself is
//   fetched.
//   No cycles, however many edges. A cycle of edges u1 -> v1, u2 -> v2, ... would lead from each v
//   to the next u: through r, so that the next reader comes after this one in the graph, or, if u
//   is in v's own chain, with the same reader and a later last node of the chain. Neither can close
//   a cycle.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_ORDER_EDGES_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_ORDER_EDGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

// Returns the edges that postpone outputs on the GPU of `order`, if these are larger than the
// inputs that must stay live for longer. Outputs below `least_bytes` are left alone. The edges are
// in order of the nodes that wait. Errors: those of `stop`.
absl::StatusOr<std::vector<ControlEdge>> FindOrderEdges(const StepFacts& facts,
                                                        const StepOrder& order, int64_t least_bytes,
                                                        const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_ORDER_EDGES_H_
