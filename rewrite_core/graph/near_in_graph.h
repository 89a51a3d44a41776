// "Did you mean" suggestions from a graph's names, for error messages. Each call visits at
// most a million nodes, and looks up at most a million scopes.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_NEAR_IN_GRAPH_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_NEAR_IN_GRAPH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// Returns `; did you mean 'a' or 'b'?` from the nodes, the scopes (`a` and `a/b` for the node
// a/b/c, and whole names) or the op types of `graph`; empty if none is similar (base/near_names.h).
std::string NearNodes(const Graph& graph, absl::string_view name);
std::string NearScopes(const Graph& graph, absl::string_view scope);
std::string NearTypes(const Graph& graph, absl::string_view type);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_NEAR_IN_GRAPH_H_
