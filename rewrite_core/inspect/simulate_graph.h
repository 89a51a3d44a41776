// The forecast for one step of a graph on a machine, without a rewrite. For original graphs and for
// graphs rewritten by any program.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_SIMULATE_GRAPH_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_SIMULATE_GRAPH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::core {

// `graph_def`: a serialized tensorflow.GraphDef. A step that does not fit is a result, not an
// error. Errors: those of Rewrite about the graph, feeds, batch_size, targets, hardware and
// profile, and about options that this build does not know. Thread-safe.
absl::StatusOr<v1::SimulateReport> SimulateGraph(absl::string_view graph_def,
                                                 const v1::SimulateOptions& options,
                                                 const v1::Limits& limits, const StopToken& stop);

// The same for a parsed graph, and options without unknown fields.
absl::StatusOr<v1::SimulateReport> SimulateGraph(const Graph& graph,
                                                 const v1::SimulateOptions& options,
                                                 const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_SIMULATE_GRAPH_H_
