// Strip: restores the graph from before Spillway, byte for byte, from the file alone.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_STRIP_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_STRIP_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// Passes the stripped bytes to `sink` piece by piece, in order, and stops early with OK when `sink`
// returns false. FAILED_PRECONDITION if an undo record is damaged.
absl::Status StripTo(const Graph& graph, const StopToken& stop,
                     const std::function<bool(absl::string_view)>& sink);

// The stripped graph. A graph without records is returned unchanged. FAILED_PRECONDITION
// (FOREIGN_REWRITE) if another program added swap nodes; otherwise errors of StripTo.
absl::StatusOr<std::string> Strip(const Graph& graph, const StopToken& stop);

// Whether some node carries an undo record.
bool HasUndoRecords(const Graph& graph);

// Which program rewrote this graph before.
struct EarlierRewrite {
  bool ours = false;              // HasUndoRecords.
  NodeId foreign_node = kNoNode;  // A swap node, if no node has an undo record.
};
// The only error is that of `stop`.
absl::StatusOr<EarlierRewrite> FindEarlierRewrite(const Graph& graph, const StopToken& stop);

// Whether Spillway added this node (rather than edited it, or left it alone), either to swap a
// tensor or as part of an inlined call.
bool IsAddedNode(const Graph& graph, NodeId id);
bool IsInlinedNode(const Graph& graph, NodeId id);

// Whether this node stands for an inlined call: it keeps the call's name, so that it can still be
// fetched.
bool IsInlinedCall(const Graph& graph, NodeId id);

// Likewise, if other nodes read the call's results or waited for its end: the node then only runs
// if a step names it.
bool IsIdleCall(const Graph& graph, NodeId id);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_STRIP_H_
