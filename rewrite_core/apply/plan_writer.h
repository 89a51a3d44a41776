// Writes a SwapPlan as edits of a graph: swap-out and swap-in nodes, rewired inputs, control edges.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_PLAN_WRITER_H_
#define SPILLWAY_REWRITE_CORE_APPLY_PLAN_WRITER_H_

#include <string>
#include <vector>

#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/plan/swap_plan.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// The names that one swap's nodes got; swap_ins in the order of PlannedSwap::swap_ins.
struct SwapNodeNames {
  std::string swap_out;
  std::vector<std::string> swap_ins;
};

// Collects the edits in `edit`. The swap nodes are called `lms/swapout_T` and `lms/swapin_T`, T the
// tensor with `/` and `:` as `_`, made unique. Returns their names, swap by swap.
std::vector<SwapNodeNames> WritePlan(const Graph& graph, const SwapPlan& plan,
                                     v1::SwapEncoding encoding, GraphEdit* edit);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_PLAN_WRITER_H_
