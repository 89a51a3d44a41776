// A plan in names, to be kept: what strategy/apply reads.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_PLAN_MESSAGE_H_
#define SPILLWAY_REWRITE_CORE_REPORT_PLAN_MESSAGE_H_

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/swap_plan.h"
#include "spillway/v1/plan.pb.h"

namespace spillway::core {

// Fills in what is needed to apply `plan` to `graph` again: all of `message` but the step, whether
// calls are inlined, and what is for people. `file`: the graph as it came, which `graph` is with
// its calls inlined, or the same. Errors: RESULT_TOO_LARGE (told_names.h), those of CanonicalSha256
// and of `stop`.
absl::Status WritePlanMessage(const Graph& file, const Graph& graph, const SwapPlan& plan,
                              const StopToken& stop, v1::Plan* message);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_PLAN_MESSAGE_H_
