#include "rewrite_core/inspect/simulate_graph.h"

#include <string>
#include <utility>

#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/step_model.h"

namespace spillway::core {

v1::RewriteOptions RewriteOptionsOf(const v1::SimulateOptions& options) {
  v1::RewriteOptions out;
  *out.mutable_feeds() = options.feeds();
  if (options.has_batch_size()) out.set_batch_size(options.batch_size());
  *out.mutable_targets() = options.targets();
  *out.mutable_hardware() = options.hardware();
  out.set_profile(options.profile());
  out.set_convolution_workspace_bytes(options.convolution_workspace_bytes());
  return out;
}

absl::StatusOr<v1::SimulateReport> SimulateGraph(const Graph& graph,
                                                 const v1::SimulateOptions& options,
                                                 const StopToken& stop) {
  const v1::RewriteOptions rewrite_options = RewriteOptionsOf(options);
  const StepFacts facts(graph, rewrite_options);
  auto model = StepModel::Create(facts, stop);
  if (!model.ok()) return model.status();
  WorkloadNotes notes;
  auto workload = (*model)->Build(/*plan=*/nullptr, &notes, stop);
  if (!workload.ok()) return workload.status();
  auto forecast = (*model)->Forecast(*workload, options.no_budget(), /*with_bounds=*/true, stop);
  if (!forecast.ok()) return forecast.status();
  v1::SimulateReport report;
  *report.mutable_forecast() = *std::move(forecast);
  *report.mutable_hardware() = (*model)->hardware().ToProto();
  for (std::string& name : (*model)->TargetNames()) report.add_targets(std::move(name));
  report.set_node_count((*model)->num_active_nodes());
  for (v1::Warning& warning : (*model)->Warnings(notes))
    *report.add_warnings() = std::move(warning);
  if (options.memory()) {
    const bool in_budget = !options.no_budget() && report.forecast().fits();
    absl::Status status = (*model)->DescribeMemory(*workload, in_budget, stop, &report);
    if (!status.ok()) return status;
  }
  return report;
}

absl::StatusOr<v1::SimulateReport> SimulateGraph(absl::string_view graph_def,
                                                 const v1::SimulateOptions& options,
                                                 const v1::Limits& limits, const StopToken& stop) {
  auto graph = Graph::Parse(graph_def, limits, stop);
  if (!graph.ok()) return graph.status();
  return SimulateGraph(*graph, options, stop);
}

}  // namespace spillway::core
