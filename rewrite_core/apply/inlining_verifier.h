// Proves that a graph is another one with calls inlined, from the bytes of both alone.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_INLINING_VERIFIER_H_
#define SPILLWAY_REWRITE_CORE_APPLY_INLINING_VERIFIER_H_

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// OK if `after` is `before` with some of its calls inlined, that is:
//   undo     stripping `after` gives the bytes of `before`
//   graph    every node of `before` exists: unchanged except that it reads the results of an
//            inlined call and waits for its end; or as the IdentityN in the place of such a call
//   body     every node that claims to come from a call is one of the function's body, with its op,
//            attributes, device and inputs, or forwards an argument or a result, or is a control
//            node; and every node of the body exists, or is itself an inlined call
//   lowered  an If or Case is replaced by Switches of its inputs by its predicate, its branches as
//            inlined calls, each waiting for its side, and Merges of their results; a While by a
//            frame with Enter, Merge, Switch, NextIteration and Exit of each variable, its
//            condition and its body
//   waits    every node of the body that could otherwise run earlier keeps the call's waits
// Otherwise INTERNAL (VERIFY_FAILED) naming the check and the node: a bug in this program.
// Thread-safe.
absl::Status VerifyInlining(const Graph& before, const Graph& after, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_INLINING_VERIFIER_H_
