#include "rewrite_core/graph/near_in_graph.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "rewrite_core/base/near_names.h"

namespace spillway::core {
namespace {

// Nodes examined: some milliseconds.
constexpr int32_t kMaxNodes = 1'000'000;
// Scopes looked up, each a part of a short name: some milliseconds.
constexpr int32_t kMaxScopes = 1'000'000;

// The nodes of a graph whose names may be near to `word`.
int32_t NodesFor(const Graph& graph, absl::string_view word) {
  return word.size() > kMaxNearWord ? 0 : std::min(graph.num_nodes(), kMaxNodes);
}

}  // namespace

std::string NearNodes(const Graph& graph, absl::string_view name) {
  std::vector<absl::string_view> known;
  for (NodeId id(0); id < NodesFor(graph, name) && known.size() < kMaxNearNames; ++id) {
    // Longer names are not near.
    const size_t size = graph.name(id).size();
    if (size <= 2 * name.size() && name.size() <= 2 * size) known.push_back(graph.name(id));
  }
  return DidYouMean(name, known);
}

std::string NearScopes(const Graph& graph, absl::string_view scope) {
  absl::ConsumeSuffix(&scope, "/");
  absl::flat_hash_set<absl::string_view> seen;
  std::vector<absl::string_view> known;
  absl::string_view last;
  int32_t looks = 0;
  for (NodeId id(0); id < NodesFor(graph, scope) && known.size() < kMaxNearNames; ++id) {
    // Longer scopes are not near.
    const absl::string_view name = graph.name(id).substr(0, 2 * scope.size() + 2);
    const size_t same =
        std::mismatch(name.begin(), name.end(), last.begin(), last.end()).first - name.begin();
    last = name;
    for (size_t end = name.find('/'); end != absl::string_view::npos;
         end = name.find('/', end + 1)) {
      if (end < same) continue;  // As in the name before.
      if (++looks > kMaxScopes) break;
      if (seen.insert(name.substr(0, end)).second) known.push_back(name.substr(0, end));
    }
  }
  // Scopes first: on ties, NearNames takes the earlier.
  std::string near = DidYouMean(scope, known);
  return near.empty() ? NearNodes(graph, scope) : near;
}

std::string NearTypes(const Graph& graph, absl::string_view type) {
  std::vector<absl::string_view> known;
  const int32_t ops = std::min<int32_t>(graph.num_ops(), kMaxNearNames);
  for (int32_t op = 0; op < ops; ++op) known.push_back(graph.op_name(op));
  return DidYouMean(type, known);
}

}  // namespace spillway::core
