// The one door of the rewriting core: GraphDef bytes and options in, GraphDef bytes, report, patch
// and plan out. No gRPC, no flags, no global state: the server and the local client both call this.
//
// Thread safety: Rewrite is a pure function; any number may run at once.
//
// Example:
//   v1::RewriteOptions options;  // The default strategy with its defaults.
//   options.mutable_scope()->set_lb(3);
//   absl::StatusOr<v1::RewriteResponse> r = Rewrite(bytes, options, DefaultLimits(), StopToken());
#ifndef SPILLWAY_REWRITE_CORE_REWRITER_H_
#define SPILLWAY_REWRITE_CORE_REWRITER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/planned_step.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// Rewrites `graph_def`, a serialized tensorflow.GraphDef, as `options` say.
//
// Which parts of the response are set is what options.outputs asks for; but figures of the report
// (outcome, counts, times of stages) always are: a door counts them, and drops the report if it was
// not asked for (AsksFor of request_check.h). The graph in it passed the
// verifier: undoing the edits gives `graph_def` back byte for byte, it has no new cycle, and no
// node is dead that was alive.
//
// Errors carry a reason and the names involved (base/error.h), among them the `stage` that failed.
// The codes are those listed at RewriteService.Rewrite; `stop` gives CANCELLED or
// DEADLINE_EXCEEDED. The input is never changed, and there is no partial result.
//
// `reuse`, unless it is null: the plan to write, if one is given there, instead of making one; the
// answer is the same. It gets the plan that was made.
absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                            const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop,
                                            PlanReuse* reuse = nullptr);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REWRITER_H_
