// Replaces calls of library functions by the functions' bodies, as TensorFlow does before it places
// a graph. Forecasts and swaps then see the graph that a step runs.
//
// The rules are those of TensorFlow 2.15: InlineFunctionCalls (which calls are inlined, control
// edges for strict inputs and frames) in grappler/optimizers/function_optimizer.cc, and
// InlineFunctionBody (names, Identities at the borders, control nodes) and its placers (devices) in
// common_runtime/inline_function_utils.cc.
//
//   CALL/NODE                               a node of the body
//   Func/CALL/input/_N, .../output/_N       Identities of arguments and results
//   Func/CALL/input_control_node/_N, output_control_node/_N
//                                           NoOps before and after the body
//   CALL                                    an IdentityN of the results (NoOp if none), which only
//                                           runs if the call is fetched or is a target
//
// Numbers N count up; `_1`, `_2`, ... is appended to a name that is taken. Readers of the call read
// the Identities instead, or directly the tensors that these forward if that is equivalent
// (Borders). One difference from TensorFlow: a call with effects but without readers, which is run
// by its name, is inlined, too.
//
// The result carries undo records (graph/undo.h), so strip gives back the original bytes. The
// library is unchanged.
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

// The tensor that readers of an argument or a result of an inlined call read.
enum class Borders {
  // The tensor that its Identity forwards: TensorFlow's optimizers later give the same, and plans
  // see the tensor's actual readers. Not used if the Identity has control inputs, reads a
  // reference, may be on another device, or states a shape that its input does not.
  kDirect,
  // The Identity, as TensorFlow's function optimizer leaves it.
  kIdentities,
};

struct InlinedCalls {
  std::string graph_def;  // Empty if no call was inlined.
  v1::Inlining summary;  // The calls that were inlined, and those that were kept, with the reasons.
  bool too_large = false;  // A call was kept because of the limits: TOO_LARGE.
  bool has_loops = false;  // A While was lowered to Enter, Merge, NextIteration and the like.
};

// Inlines the calls of `graph`. If, Case and While nodes that request it
// (_lower_using_switch_merge) are lowered to Switch, Merge, Enter and the like (lowering.cc); their
// names are kept, like those of calls. If the graph already has undo records, the result cannot be
// stripped and is only for analysis. Not inlined are fed calls (step.feeds); calls that would make
// the graph exceed `limits`, or grow too many times (kMaxGrowth), which is determined before
// anything is built; and all calls in a graph with a cycle. Errors: those of `stop`.
absl::StatusOr<InlinedCalls> InlineCalls(const Graph& graph, const v1::Step& step,
                                         const v1::Limits& limits, const StopToken& stop,
                                         Borders borders = Borders::kDirect);

// Whether some node's op type is a function, or one that calls functions; cheap.
bool MayHaveCalls(const Graph& graph);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_INLINE_CALLS_H_
