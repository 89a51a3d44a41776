// The verifier: proves a rewritten graph sound from its bytes and the original's, without looking
// at the plan. It runs on every response.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_VERIFIER_H_
#define SPILLWAY_REWRITE_CORE_APPLY_VERIFIER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

// OK if `after` is `before` with swaps and clones in it, that is:
//   undo         stripping `after` gives the bytes of `before` (also stripped, if rewritten before)
//   data         every data input of an original node reads the tensor that it read before, either
//                directly or through one swap-out and one swap-in, or that of a clone of its
//                producer
//   clone        every other new node is a clone of an original one: the same op, device,
//                attributes and tensors read, all of its control inputs, and something to wait
//                for besides; and the op may run twice (OpInfo::run_again)
//   variable     a clone that reads a variable by reference runs before each update that its
//                original runs before; so does a reader of each swap-in of its memory
//   acyclic      no cycles except for the loops' own back edges
//   frames       no swap and no added control edge leads from one loop frame to another
//   deadness     a node that waits for more nodes than before is dead whenever one of these is
//   step         no original node runs that the step did not run, or only because another one waits
//                for it over an added control edge
//   names        targets and fed nodes exist; fed nodes are unedited
// Otherwise INTERNAL (VERIFY_FAILED) naming the check and the node: a bug in this program, never a
// wrong graph. `control_flow` is the analysis of `before`. `targets`: of before, the step's targets
// (active_nodes.h) if `step` does not name any; without either, the check `step` is left out.
absl::Status VerifyRewrite(const Graph& before, const ControlFlowAnalysis& control_flow,
                           absl::string_view after, const v1::Step& step, const StopToken& stop,
                           const std::vector<NodeId>& targets = {});

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_VERIFIER_H_
