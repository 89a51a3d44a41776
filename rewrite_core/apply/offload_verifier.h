// The verifier of moves to the host: proves from the bytes of two graphs that the second is the
// first with state groups on the host (plan/state_groups.h), without looking at the plan.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_OFFLOAD_VERIFIER_H_
#define SPILLWAY_REWRITE_CORE_APPLY_OFFLOAD_VERIFIER_H_

#include <vector>

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

// OK if `after` has the nodes of `before`, in its order, and:
//   undo        stripping `after` gives the bytes of `before` (also stripped, if rewritten before)
//   data        no field of a node has changed but its device and its colocations
//   device      a node that moved is on the first CPU of its own job, replica and task
//   group       nodes that a reference or a variable's handle connects moved together
//   colocation  nothing is colocated across the two sides, and only such colocations are gone
//   cone        every other moved node is elementwise, reshapes, reads a variable or gathers rows
//   of
//               one; is not fed; and, but for reads, all that reads it moved
//   variable    a read of a moved variable waits for each of its updates, or comes before it: the
//               read by handle, or a reader on the GPU of one by reference, leads to the update
// Otherwise INTERNAL (VERIFY_FAILED) naming the check and the node. `targets`: of before, targets
// of the step besides step.targets; without either, all updates of optimizers count, and no others.
absl::Status VerifyMoves(const Graph& before, const Graph& after, const v1::Step& step,
                         const std::vector<NodeId>& targets, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_OFFLOAD_VERIFIER_H_
