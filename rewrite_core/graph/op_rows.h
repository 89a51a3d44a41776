// Tables with one row per op family, looked up once per op type of a graph.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_OP_ROWS_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_OP_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// The bit for one input, in a row's set of inputs.
constexpr uint32_t InputBit(int input) { return uint32_t{1} << input; }

// The row of each op type, by Graph::op_id; null if none. A row's first member is `ops`: the names
// of its op types, separated by spaces. If two rows have the same name, the first counts.
template <typename Row, size_t N>
std::vector<const Row*> RowsByOp(const Graph& graph, const Row (&table)[N]) {
  // Built once per table, because each table has its own Row type.
  static const auto& index = *new auto([&table] {
    absl::flat_hash_map<absl::string_view, const Row*> rows;
    for (const Row& row : table) {
      for (absl::string_view op : absl::StrSplit(row.ops, ' ', absl::SkipEmpty())) {
        rows.try_emplace(op, &row);
      }
    }
    return rows;
  }());
  std::vector<const Row*> rows(graph.num_ops(), nullptr);
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    const auto it = index.find(graph.op_name(op));
    if (it != index.end()) rows[op] = it->second;
  }
  return rows;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_OP_ROWS_H_
