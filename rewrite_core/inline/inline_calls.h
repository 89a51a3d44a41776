// Calls of library functions replaced by the functions' bodies, as TensorFlow does it before it
// places a graph: what a step really runs, for forecasts and for swaps.
//
// The rules are those of TensorFlow 2.15: InlineFunctionCalls (what is inlined, control edges for
// strict inputs and frames) in grappler/optimizers/function_optimizer.cc, and InlineFunctionBody
// (names, Identities at the borders, control nodes) and its placers (devices) in
// common_runtime/inline_function_utils.cc.
//
//   CALL/NODE                               a node of the body
//   Func/CALL/input/_N, .../output/_N       Identities of arguments and results
//   Func/CALL/input_control_node/_N, output_control_node/_N
//                                           what the body waits for; what waits for the call
//   CALL                                    an IdentityN of the results (NoOp: none), which only
//                                           those run who fetch the call or have it as their target
//
// Numbers N count up; a name that is taken gets `_1`, `_2`, ... behind it. Nodes that read the call
// read the Identities; or directly what these hand on, where nothing is lost by that (Borders).
// One thing differs: a call with effects and no reader at all, which is run by its name, is
// inlined, too.
//
// The result says how to undo it (graph/undo.h), so strip gives back the graph's own bytes. The
// library stays as it is.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_INLINE_CALLS_H_
#define SPILLWAY_REWRITE_CORE_INLINE_INLINE_CALLS_H_

#include <string>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/inlining.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

// Who reads an argument or a result of a call that was inlined.
enum class Borders {
  // What its Identity hands on: so TensorFlow's own optimizers leave it later, and plans see the
  // tensor's true readers. Not where the Identity waits for something, reads a reference, may be on
  // another device, or states a shape that its input does not.
  kDirect,
  // The Identity, as TensorFlow's function optimizer leaves it.
  kIdentities,
};

struct InlinedCalls {
  std::string graph_def;   // Empty: no call was inlined.
  v1::Inlining summary;    // What was done, and which calls stay, and why.
  bool too_large = false;  // A call stays for the limits: TOO_LARGE.
};

// Inlines the calls of `graph`. If, Case and While that ask for it (_lower_using_switch_merge) are
// lowered to Switch, Merge, Enter and their like (lowering.cc); their names stay as those of calls
// do. If the graph has undo records, strip leads nowhere from the result, which is to be looked at
// only. Calls that are fed (step.feeds) stay, and those with which the graph would grow beyond
// `limits`, or many times (kMaxGrowth): that is known before anything is built; and all calls of a
// graph with a cycle. Errors: those of `stop`.
absl::StatusOr<InlinedCalls> InlineCalls(const Graph& graph, const v1::Step& step,
                                         const v1::Limits& limits, const StopToken& stop,
                                         Borders borders = Borders::kDirect);

// Whether some node calls a function by its op type's nature or name; cheap.
bool MayHaveCalls(const Graph& graph);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_INLINE_CALLS_H_
