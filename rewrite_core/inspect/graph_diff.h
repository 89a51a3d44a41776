// The differences between two graphs: the changes by any rewrite (Spillway, TFLMS, Grappler, a
// person).
//
// Thread safety: DiffGraphs is a pure function; any number of calls may run concurrently.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_GRAPH_DIFF_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_GRAPH_DIFF_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/diff.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// Compares two graphs; nodes are matched by name. Calls of A that were inlined in B (according to
// B's undo records) are first inlined in A, too, so that only the changes by swaps remain. The
// graphs need not be valid for TensorFlow: they may have cycles. Time is linear in the size of
// both.
//
// The only error is that of `stop`. Attributes are compared as bytes.
absl::StatusOr<v1::GraphDiff> DiffGraphs(const Graph& a, const Graph& b, const StopToken& stop);

// The same for two serialized tensorflow.GraphDefs, each subject to `limits`. Further errors are
// those of Rewrite about a graph, and say which of the two it is: "graph A: ...".
absl::StatusOr<v1::GraphDiff> DiffGraphs(absl::string_view a, absl::string_view b,
                                         const v1::Limits& limits, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_GRAPH_DIFF_H_
