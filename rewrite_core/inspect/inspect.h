// What a graph is made of: what a stranger wants to know before rewriting it.
//
// Thread safety: Inspect is a pure function; any number may run at once.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_INSPECT_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_INSPECT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/inspect.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// Describes `graph_def`, a serialized tensorflow.GraphDef. Time and memory grow with its size and
// not faster. The same graph gives the same summary.
//
// Errors are those of Rewrite (rewriter.h): the graph is wrong (INVALID_ARGUMENT, the message names
// the node) or above one of `limits`, a feed names nothing, `stop` fired.
absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                         const v1::InspectOptions& options,
                                         const v1::Limits& limits, const StopToken& stop);

// INVALID_ARGUMENT (BAD_OPTION) if more than feeds and batch_size is set.
absl::Status CheckInspectStep(const v1::Step& step);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_INSPECT_H_
