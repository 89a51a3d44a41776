// Writes a ClonePlan as edits of a graph.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_CLONE_WRITER_H_
#define SPILLWAY_REWRITE_CORE_PLAN_CLONE_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/plan/clone_plan.h"

namespace spillway::core {

// Collects the edits in `edit`. A clone of node N is called `lms/recompute_N`, with `/` as `_`,
// made unique. It has all of N except its name, some inputs, and one more control input. (Not the
// attribute that keeps Grappler from removing a swap node: on clones it makes Grappler give up on
// the graph.) Returns the names, clone by clone; only the first ones if the edits get too large
// (GraphEdit::Apply then fails). Errors: those of `stop`.
absl::StatusOr<std::vector<std::string>> WriteClones(const Graph& graph, const ClonePlan& plan,
                                                     const StopToken& stop, GraphEdit* edit);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_CLONE_WRITER_H_
