// What tells two graphs apart: what a rewrite did, whoever made it (Spillway, TFLMS, Grappler, a
// person).
//
// Thread safety: DiffGraphs is a pure function; any number may run at once.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_GRAPH_DIFF_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_GRAPH_DIFF_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/diff.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// Compares two graphs; nodes are matched by name. Calls of A that were inlined in B (its undo
// records tell) are inlined in A, too, before that: what is left is what the swaps changed. Neither
// needs to be one that TensorFlow would run: cycles do not matter. Time grows with the size of both
// and not faster.
//
// The only error is that of `stop`. Attributes are compared as bytes.
absl::StatusOr<v1::GraphDiff> DiffGraphs(const Graph& a, const Graph& b, const StopToken& stop);

// The same for two serialized tensorflow.GraphDefs, each held to `limits`. Errors, besides, are
// those of Rewrite about a graph, and say which of the two it is: "graph A: ...".
absl::StatusOr<v1::GraphDiff> DiffGraphs(absl::string_view a, absl::string_view b,
                                         const v1::Limits& limits, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_GRAPH_DIFF_H_
