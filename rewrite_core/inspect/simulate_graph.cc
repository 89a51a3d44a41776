#include "rewrite_core/inspect/simulate_graph.h"

#include <string>
#include <utility>

#include "rewrite_core/analysis/hardware.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/known_fields.h"
#include "rewrite_core/step_model.h"

namespace spillway::core {

absl::StatusOr<v1::SimulateReport> SimulateGraph(const Graph& graph,
                                                 const v1::SimulateOptions& options,
                                                 const StopToken& stop) {
  auto topology = Topology::Build(graph, stop);
  if (!topology.ok()) return topology.status();
  auto shapes = Shapes::Infer(graph, *topology, options.step(), stop);
  if (!shapes.ok()) return shapes.status();
  auto model = StepModel::Create(graph, *topology, *shapes, options.step(), stop);
  if (!model.ok()) return model.status();
  WorkloadNotes notes;
  auto workload = (*model)->Build(/*plan=*/nullptr, &notes, stop);
  if (!workload.ok()) return workload.status();
  auto forecast = (*model)->Forecast(*workload, options.no_budget(), /*with_bounds=*/true, stop);
  if (!forecast.ok()) return forecast.status();
  v1::SimulateReport report;
  *report.mutable_forecast() = *std::move(forecast);
  *report.mutable_hardware() = (*model)->hardware().ToReport();
  for (std::string& name : (*model)->TargetNames()) report.add_targets(std::move(name));
  report.set_node_count((*model)->num_active_nodes());
  for (v1::Warning& warning : (*model)->Warnings(notes))
    *report.add_warnings() = std::move(warning);
  if (options.memory()) {
    const bool in_budget = !options.no_budget() && report.forecast().fit() != v1::FIT_DOES_NOT_FIT;
    absl::Status status = (*model)->DescribeMemory(*workload, in_budget, stop, &report);
    if (!status.ok()) return status;
  }
  return report;
}

absl::StatusOr<v1::SimulateReport> SimulateGraph(absl::string_view graph_def,
                                                 const v1::SimulateOptions& options,
                                                 const v1::Limits& limits, const StopToken& stop) {
  if (absl::Status s = CheckKnownFields(options); !s.ok()) return s;
  // Before the graph is read, as Rewrite does.
  if (auto hardware = Hardware::FromOptions(options.step().hardware()); !hardware.ok()) {
    return hardware.status();
  }
  auto graph = Graph::Parse(graph_def, limits, stop);
  if (!graph.ok()) return graph.status();
  return SimulateGraph(*graph, options, stop);
}

}  // namespace spillway::core
