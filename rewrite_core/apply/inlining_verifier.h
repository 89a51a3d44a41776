// Proves that a graph is another one with calls inlined, from the bytes of both: without looking at
// how it was made.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_INLINING_VERIFIER_H_
#define SPILLWAY_REWRITE_CORE_APPLY_INLINING_VERIFIER_H_

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// OK if `after` is `before` with some of its calls inlined, that is:
//   undo     stripping `after` gives the bytes of `before`
//   graph    every node of `before` is there: as it was, but that it reads the results of a call
//            that was inlined, and waits for its end; or as the IdentityN in the place of such a
//            call
//   body     every node that claims to come from a call is one of the function's body, with its op,
//            attributes, device and inputs, or hands on an argument or a result, or is a control
//            node; and every node of the body is there, or is a call that was inlined itself
//   lowered  in the place of an If or Case are Switches of its inputs by its predicate, its
//            branches as calls that were inlined, each waiting for its side, and Merges of their
//            results; in that of a While a frame with Enter, Merge, Switch, NextIteration and Exit
//            of each variable, its condition and its body
//   waits    what the call waited for, all of the body that could run without it waits for
// Otherwise INTERNAL (VERIFY_FAILED) naming the check and the node: a bug of ours. Thread-safe.
absl::Status VerifyInlining(const Graph& before, const Graph& after, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_INLINING_VERIFIER_H_
