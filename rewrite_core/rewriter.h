// The one door of the rewriting core: GraphDef bytes and options in, GraphDef bytes, report and
// patch out. No gRPC, no flags, no global state: the server and the local client both call this.
//
// Thread safety: Rewrite is a pure function; any number may run at once.
//
// Example:
//   v1::RewriteOptions options;  // The default strategy with its defaults.
//   options.mutable_scope()->set_lb(3);
//   absl::StatusOr<v1::RewriteResponse> r = Rewrite(bytes, options, DefaultLimits(), StopToken());
#ifndef SPILLWAY_REWRITE_CORE_REWRITER_H_
#define SPILLWAY_REWRITE_CORE_REWRITER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// Rewrites `graph_def`, a serialized tensorflow.GraphDef, as `options` say.
//
// Which parts of the response are set is what options.outputs asks for. The graph in it passed the
// verifier: undoing the edits gives `graph_def` back byte for byte, it has no new cycle, and no
// node is dead that was alive.
//
// Errors carry a reason and the names involved (graph/error.h). The codes are those listed at
// RewriteService.Rewrite; `stop` gives CANCELLED or DEADLINE_EXCEEDED. The input is never changed,
// and there is no partial result.
absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                            const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop);

// The limits that apply where nobody sets others. max_unary_bytes, max_chunk_bytes,
// max_concurrent_requests, max_inflight_bytes, max_concurrent_streams and max_metadata_bytes
// concern the server alone.
v1::Limits DefaultLimits();

// The strategies of this build, strongest first; the first one is the default.
std::vector<v1::Strategy> Strategies();

// What this build can do, under `limits`.
v1::GetCapabilitiesResponse Capabilities(const v1::Limits& limits);

// The version of this build, `MAJOR.MINOR.PATCH`.
std::string Version();

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REWRITER_H_
