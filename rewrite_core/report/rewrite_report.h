// Builds the report and the patch of a rewrite from the results of the stages.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_REWRITE_REPORT_H_
#define SPILLWAY_REWRITE_CORE_REPORT_REWRITE_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/apply/plan_writer.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/plan/state_groups.h"
#include "rewrite_core/plan/swap_plan.h"
#include "spillway/v1/patch.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// Fills in devices, edge counts, advice and warnings: figures only, no node names. Errors: those of
// `stop`.
absl::Status ReportFigures(const Graph& graph, const ClonePlan& clones, const SwapPlan& plan,
                           const StopToken& stop, v1::RewriteReport* report);
// Fills in the bytes that the clones recompute, and their time. Errors: those of the facts.
absl::Status ReportClones(const StepFacts& facts, const ClonePlan& clones, const StopToken& stop,
                          v1::RewriteReport* report);
// Adds the recomputed nodes. `names` are those of WriteClones. Errors: as for ReportSwaps.
absl::Status ReportCloneNames(const Graph& graph, const ClonePlan& clones,
                              const std::vector<std::string>& names, const StopToken& stop,
                              v1::RewriteReport* report);
// Adds the state that moved to the host, and that which cannot. Must precede ReportFigures. Errors:
// likewise.
absl::Status ReportOffload(const Graph& graph, const OffloadPlan& offload, const StopToken& stop,
                           v1::RewriteReport* report);
// Says whether the graph with these clones, or with swaps or inlined calls alone, computes the same
// bits as `original`, and the settings needed. Must follow ReportFigures if that is called.
void ReportSameBits(const Graph& original, const ClonePlan& clones, v1::RewriteReport* report);
// Adds to the advice the session options that the simulation assumed: the fraction of Hardware, if
// it is not 0, and pinned memory for state on the host. Must follow ReportFigures if that is
// called.
void AdviseOnSession(double internal_fragmentation_fraction, v1::RewriteReport* report);

// Adds the environment that the plan needs. Must follow ReportFigures and the forecasts.
void AdviseOnEnvironment(const v1::Step& step, v1::RewriteReport* report);

// Adds the swaps. `names` are those of WritePlan. Each node is named as often as in the plan, so a
// name of a megabyte may be repeated very often. Errors: RESULT_TOO_LARGE if all names together
// would be many times as large as the graph; those of `stop`.
absl::Status ReportSwaps(const Graph& graph, const SwapPlan& plan,
                         const std::vector<SwapNodeNames>& names, const StopToken& stop,
                         v1::RewriteReport* report);

// Errors: those of `stop`.
absl::Status ReportDecisions(const Graph& graph, const std::vector<TensorDecision>& decisions,
                             const StopToken& stop, v1::RewriteReport* report);

void AddWarning(v1::WarningCode code, absl::string_view message, v1::RewriteReport* report);

// Warns that tensors inside functions are never swapped, if the graph has functions.
void WarnOfFunctions(const Graph& graph, absl::string_view why_kept, v1::RewriteReport* report);

// One sentence for human readers on the plans' effects.
std::string PlanSummary(const OffloadPlan& offload, const ClonePlan& clones, const SwapPlan& plan,
                        int64_t nodes_added, bool dry_run = false);

// Names the originals of the clones in `patch`; the rest as above.
absl::Status NameOriginals(const Graph& graph, const ClonePlan& clones,
                           const std::vector<std::string>& names, const StopToken& stop,
                           v1::GraphPatch* patch);

// Adds the collected edits to `patch`, of the edits that made `graph`, if any. Errors: as for
// ReportSwaps.
absl::Status AddToPatch(const Graph& graph, const GraphEdit& edit, const StopToken& stop,
                        v1::GraphPatch* patch);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_REWRITE_REPORT_H_
