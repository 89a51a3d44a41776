// The entry point of the rewriting core: GraphDef bytes and options in, GraphDef bytes, report,
// patch and plan out. No gRPC, no flags, no global state: the server and the local client both call
// this.
//
// Thread safety: Rewrite is a pure function; any number of calls may run concurrently.
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
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

struct PlanReuse;  // planned_step.h, which brings the simulator: few callers need it.

// Rewrites `graph_def`, a serialized tensorflow.GraphDef, according to `options`.
//
// options.outputs selects which parts of the response are set; but the figures of the report
// (outcome, counts, stage times) always are: the caller counts them, and drops the report if it was
// not requested (AsksFor in request_check.h). The returned graph has passed the verifier: undoing
// the edits gives back `graph_def` byte for byte, it has no new cycle, and no node is dead that was
// alive.
//
// Errors carry a reason and the names involved (base/error.h), including the `stage` that failed.
// The codes are those listed at RewriteService.Rewrite; `stop` gives CANCELLED or
// DEADLINE_EXCEEDED. The input is never changed, and there is no partial result.
//
// `reuse` may be null. If it holds a plan, that plan is written instead of a new one; the response
// is the same. Otherwise it receives the plan that was made.
absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                            const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop,
                                            PlanReuse* reuse = nullptr);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REWRITER_H_
