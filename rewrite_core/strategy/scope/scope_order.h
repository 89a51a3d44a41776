// The order of ops in TFLMS v1, by which the strategy `scope` measures distances.
//
// Levels are built over the ops that a walk over data edges from the seeds visits. Of an op's
// inputs and control inputs, only ops that lie both on that walk and on a backward walk from the
// backward part count, except that an op without data inputs keeps all its control inputs. An op's
// level is its longest distance from an op without counted inputs. Then backward ops are dropped
// from levels that hold other ops too; ops after the backward part (the weight updates) are
// dropped; and empty levels are removed.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_ORDER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

inline constexpr int32_t kNoOrder = -1;

struct ScopeOrder {
  // Per node: the number of its level, or kNoOrder if it was dropped or never visited.
  std::vector<int32_t> order;
  // Per node: its level before anything was dropped, or kNoOrder if it was never visited. Grows
  // along the data edges between visited ops that lead to the backward part (not along others,
  // which do not count).
  std::vector<int32_t> level;
  // Nodes from which data edges lead to the backward part, and the backward part itself.
  NodeFlags leads_to_backward;
  // The first level that holds a backward op; kNoOrder if none does.
  int32_t backward_start = kNoOrder;
  int32_t level_count = 0;
};

// `backward` flags the ops of the backward part; `seeds` are where the walk starts.
absl::StatusOr<ScopeOrder> BuildScopeOrder(const Graph& graph, const Topology& topology,
                                           const NodeFlags& backward,
                                           const std::vector<NodeId>& seeds, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_SCOPE_SCOPE_ORDER_H_
