// Describes an unfamiliar graph, for users who want to rewrite it.
//
// Thread safety: Inspect is a pure function; any number of calls may run concurrently.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_INSPECT_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_INSPECT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/inspect.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// Takes one part of the response. Returns false to get no more.
using InspectSink = std::function<bool(v1::InspectResponse&&)>;

// Describes `graph_def`, a serialized tensorflow.GraphDef. Time and memory are linear in its size.
// The same graph gives the same summary.
//
// The response goes to `sink` part by part: the summary, then, if options.tensors is set, every
// tensor in lists of bounded size (tensor_list.h). Once `sink` returns false, it is not called
// again, and the result is OK.
//
// Errors are those of Rewrite (rewriter.h): the graph is invalid (INVALID_ARGUMENT, the message
// names the node) or above one of `limits`, a feed names nothing, or `stop` fired. Also an error if
// this build does not know an option, or a field of the step is set that does not apply to a graph
// by itself.
absl::Status Inspect(absl::string_view graph_def, const v1::InspectOptions& options,
                     const v1::Limits& limits, const StopToken& stop, const InspectSink& sink);

// Only the summary.
absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                         const v1::InspectOptions& options,
                                         const v1::Limits& limits, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_INSPECT_H_
