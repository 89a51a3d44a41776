// Writes a SwapPlan as edits of a graph: swap-out and swap-in nodes, rewired inputs, control edges.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_PLAN_WRITER_H_
#define SPILLWAY_REWRITE_CORE_APPLY_PLAN_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/plan/swap_plan.h"

namespace spillway::core {

// The names given to one swap's nodes; swap_ins in the order of PlannedSwap::swap_ins.
struct SwapNodeNames {
  std::string swap_out;
  std::vector<std::string> swap_ins;
};

// Collects the edits in `edit`. The swap nodes are called `lms/swapout_T` and `lms/swapin_T`, T the
// tensor with `/` and `:` as `_`, made unique. Returns their names, swap by swap; only those of the
// first swaps if the edits get too large (GraphEdit::Apply then fails). Errors: those of `stop`.
absl::StatusOr<std::vector<SwapNodeNames>> WritePlan(const Graph& graph, const SwapPlan& plan,
                                                     const StopToken& stop, GraphEdit* edit);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_PLAN_WRITER_H_
