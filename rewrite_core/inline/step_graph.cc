#include "rewrite_core/inline/step_graph.h"

#include <utility>

#include "rewrite_core/inline/inline_calls.h"

namespace spillway::core {

absl::StatusOr<std::unique_ptr<StepGraph>> StepGraph::Parse(absl::string_view graph_def,
                                                            const v1::Step& step,
                                                            const v1::Limits& limits,
                                                            const StopToken& stop) {
  std::unique_ptr<StepGraph> step_graph(new StepGraph());
  auto file = Graph::Parse(graph_def, limits, stop);
  if (!file.ok()) return file.status();
  step_graph->file_ = *std::move(file);
  auto calls = InlineCalls(*step_graph->file_, step, limits, stop);
  if (!calls.ok()) return calls.status();
  step_graph->inlining_ = std::move(calls->summary);
  if (calls->graph_def.empty()) return step_graph;
  step_graph->bytes_ = std::move(calls->graph_def);
  auto inlined = Graph::Parse(step_graph->bytes_, limits, stop);
  if (!inlined.ok()) return inlined.status();
  step_graph->inlined_ = *std::move(inlined);
  return step_graph;
}

}  // namespace spillway::core
