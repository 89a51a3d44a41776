#include "rewrite_core/analysis/graph_facts.h"

#include <utility>

#include "rewrite_core/analysis/variable_aliases.h"

namespace spillway::core {

absl::StatusOr<GraphFacts> GraphFacts::Compute(const Graph& graph, const v1::Step& step,
                                               const StopToken& stop) {
  auto topology = Topology::Build(graph, stop);
  if (!topology.ok()) return topology.status();
  auto shapes = Shapes::Infer(graph, *topology, step, stop);
  if (!shapes.ok()) return shapes.status();
  auto control_flow = ControlFlowAnalysis::Build(graph, *topology, stop);
  if (!control_flow.ok()) return control_flow.status();
  auto aliases = FindVariableAliases(graph, stop);
  if (!aliases.ok()) return aliases.status();
  return GraphFacts{&graph, *std::move(topology), *std::move(control_flow), *std::move(aliases),
                    *std::move(shapes)};
}

}  // namespace spillway::core
