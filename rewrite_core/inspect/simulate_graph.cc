#include "rewrite_core/inspect/simulate_graph.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "rewrite_core/inline/kept_calls.h"
#include "rewrite_core/inline/step_graph.h"
#include "rewrite_core/report/forecast_report.h"
#include "rewrite_core/report/simulated_step.h"

namespace spillway::core {

absl::StatusOr<v1::SimulateReport> SimulateGraph(const Graph& graph,
                                                 const v1::SimulateOptions& options,
                                                 const StopToken& stop) {
  const StepFacts facts(graph, options.step());
  auto created = StepSimulator::Create(facts, stop);
  if (!created.ok()) return created.status();
  StepSimulator* simulator = created->get();
  const ForecastBudget budget =
      options.no_budget() ? ForecastBudget::kNone : ForecastBudget::kHardware;
  auto forecast = MakeForecast(SwapPlan(), budget, simulator, stop);
  if (!forecast.ok()) return forecast.status();
  if (!options.no_budget()) {
    if (absl::Status s = AddLowerBounds(simulator, stop, &*forecast); !s.ok()) return s;
  }
  v1::SimulateReport report;
  *report.mutable_forecast() = *std::move(forecast);
  *report.mutable_hardware() = facts.ReportHardware();
  for (std::string& name : TargetNames(facts)) report.add_targets(std::move(name));
  report.set_node_count(CountActiveNodes(facts));
  for (v1::Warning& warning : ForecastWarnings(*simulator)) {
    *report.add_warnings() = std::move(warning);
  }
  auto temporaries = LargestTemporaries(facts, stop);
  if (!temporaries.ok()) return temporaries.status();
  *report.mutable_temporaries() = {temporaries->begin(), temporaries->end()};
  if (options.memory() || options.trace()) {
    const bool fits = report.forecast().fit() != v1::FIT_DOES_NOT_FIT;
    absl::Status status = DescribeSimulation(options, fits ? budget : ForecastBudget::kNone,
                                             simulator, stop, &report);
    if (!status.ok()) return status;
  }
  return report;
}

absl::StatusOr<v1::SimulateReport> SimulateGraph(absl::string_view graph_def,
                                                 const v1::SimulateOptions& options,
                                                 const v1::Limits& limits, const StopToken& stop) {
  if (absl::Status s = CheckKnownFields(options); !s.ok()) return s;
  if (!v1::Execution_IsValid(options.execution())) {
    const std::string value = absl::StrCat(options.execution());
    return InvalidError(v1::ERROR_REASON_UNKNOWN_OPTION,
                        absl::StrCat("execution has the unknown value ", value,
                                     "; give one of its values in simulate.proto"),
                        {{"option", "execution"}, {"value", value}});
  }
  // Checked before the graph is read, as in Rewrite.
  if (absl::Status s = CheckStep(options.step()); !s.ok()) return s;
  auto step_graph = StepGraph::Parse(graph_def, options.step(), limits, stop);
  if (!step_graph.ok()) return step_graph.status();
  auto report = SimulateGraph((*step_graph)->graph(), options, stop);
  if (report.ok() && (*step_graph)->has_calls()) {
    *report->mutable_inlining() = (*step_graph)->inlining();
    ReportKeptCalls(report->inlining(), report->mutable_forecast());
  }
  return report;
}

}  // namespace spillway::core
