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

namespace spillway::core {

// Compares two graphs; nodes are matched by name. Neither needs to be one that TensorFlow would
// run: cycles do not matter. Time grows with the size of both and not faster.
//
// The only error is that of `stop`. Attributes are compared as bytes.
absl::StatusOr<v1::GraphDiff> DiffGraphs(const Graph& a, const Graph& b, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_GRAPH_DIFF_H_
