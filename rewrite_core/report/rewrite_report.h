// Builds the report and the patch of a rewrite from what the stages found.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_REWRITE_REPORT_H_
#define SPILLWAY_REWRITE_CORE_REPORT_REWRITE_REPORT_H_

#include <string>
#include <vector>

#include "rewrite_core/apply/plan_writer.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/plan/swap_plan.h"
#include "spillway/v1/patch.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// Fills in devices, swaps and advice. `names` are those of WritePlan.
void ReportPlan(const Graph& graph, const SwapPlan& plan, const std::vector<SwapNodeNames>& names,
                v1::RewriteReport* report);

void ReportDecisions(const Graph& graph, const std::vector<TensorDecision>& decisions,
                     v1::RewriteReport* report);

void AddWarning(v1::WarningCode code, absl::string_view message, v1::RewriteReport* report);

// One sentence on what `plan` does, for people.
std::string PlanSummary(const SwapPlan& plan, int64_t nodes_added);

// The collected edits as a patch.
v1::GraphPatch MakePatch(const Graph& graph, const GraphEdit& edit);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_REWRITE_REPORT_H_
