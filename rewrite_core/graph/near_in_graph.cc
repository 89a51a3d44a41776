#include "rewrite_core/graph/near_in_graph.h"

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "rewrite_core/base/near_names.h"

namespace spillway::core {
namespace {

// NearNames examines no more, either.
constexpr size_t kMaxNames = 20'000;

}  // namespace

std::string NearNodes(const Graph& graph, absl::string_view name) {
  std::vector<absl::string_view> known;
  for (NodeId id(0); id < graph.num_nodes() && known.size() < kMaxNames; ++id) {
    // Longer names are not near, and at most kMaxNames are examined.
    const size_t size = graph.name(id).size();
    if (size <= 2 * name.size() && name.size() <= 2 * size) known.push_back(graph.name(id));
  }
  return DidYouMean(name, known);
}

std::string NearScopes(const Graph& graph, absl::string_view scope) {
  absl::ConsumeSuffix(&scope, "/");
  absl::flat_hash_set<absl::string_view> seen;
  std::vector<absl::string_view> known;
  for (NodeId id(0); id < graph.num_nodes() && known.size() < kMaxNames; ++id) {
    const absl::string_view name = graph.name(id);
    for (size_t end = name.find('/'); end != absl::string_view::npos;
         end = name.find('/', end + 1)) {
      if (end > 2 * scope.size() + 1) break;
      if (seen.insert(name.substr(0, end)).second) known.push_back(name.substr(0, end));
    }
  }
  // Scopes first: on ties, NearNames takes the earlier.
  std::string near = DidYouMean(scope, known);
  return near.empty() ? NearNodes(graph, scope) : near;
}

std::string NearTypes(const Graph& graph, absl::string_view type) {
  std::vector<absl::string_view> known;
  for (int32_t op = 0; op < graph.num_ops(); ++op) known.push_back(graph.op_name(op));
  return DidYouMean(type, known);
}

}  // namespace spillway::core
