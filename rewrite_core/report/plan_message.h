// A plan by node names, for storing: the input of strategy/apply.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_PLAN_MESSAGE_H_
#define SPILLWAY_REWRITE_CORE_REPORT_PLAN_MESSAGE_H_

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/plan.pb.h"

namespace spillway::core {

// Fills in the fields needed to apply the plan of `result` again: all of `message` except the step,
// whether calls are inlined, and the fields for human readers. `file` is the original graph;
// `graph` is the same, or has its calls inlined, or has the moves and clones, or all of these.
// Errors: RESULT_TOO_LARGE (report_names.h), those of CanonicalSha256 and of `stop`.
absl::Status WritePlanMessage(const Graph& file, const Graph& graph, const StrategyResult& result,
                              const StopToken& stop, v1::Plan* message);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_PLAN_MESSAGE_H_
