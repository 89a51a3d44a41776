// What a graph is made of: what a stranger wants to know before rewriting it.
//
// Thread safety: Inspect is a pure function; any number may run at once.
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

// Takes the parts of an answer; false: no more of them.
using InspectSink = std::function<bool(v1::InspectResponse&&)>;

// Describes `graph_def`, a serialized tensorflow.GraphDef. Time and memory grow with its size and
// not faster. The same graph gives the same summary.
//
// The answer goes to `sink` part by part: the summary, then, if options.tensors asks for it, every
// tensor in lists of bounded size (tensor_list.h). Once `sink` returns false nothing more comes,
// and the result is OK.
//
// Errors are those of Rewrite (rewriter.h): the graph is wrong (INVALID_ARGUMENT, the message names
// the node) or above one of `limits`, a feed names nothing, `stop` fired; and an option is one that
// this build does not know, or a field of the step that says nothing of a graph as such.
absl::Status Inspect(absl::string_view graph_def, const v1::InspectOptions& options,
                     const v1::Limits& limits, const StopToken& stop, const InspectSink& sink);

// The summary alone.
absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                         const v1::InspectOptions& options,
                                         const v1::Limits& limits, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_INSPECT_H_
