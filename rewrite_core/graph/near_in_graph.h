// "Did you mean", of what a graph holds. For errors: each looks at every node, once.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_NEAR_IN_GRAPH_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_NEAR_IN_GRAPH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// `; did you mean 'a' or 'b'?` of the nodes, of the scopes (`a` and `a/b` of the node a/b/c, and
// whole names), and of the op types that `graph` has; empty if none is near (base/near_names.h).
std::string NearNodes(const Graph& graph, absl::string_view name);
std::string NearScopes(const Graph& graph, absl::string_view scope);
std::string NearTypes(const Graph& graph, absl::string_view type);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_NEAR_IN_GRAPH_H_
