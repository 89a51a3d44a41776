#include "rewrite_core/simulate/step_subject.h"

#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/plan/clone_writer.h"
#include "rewrite_core/plan/state_groups.h"

namespace spillway::core {

absl::StatusOr<std::unique_ptr<StepSubject>> StepSubject::Parse(absl::string_view bytes,
                                                                const v1::Step& step,
                                                                const v1::Limits& limits,
                                                                const StopToken& stop) {
  std::unique_ptr<StepSubject> subject(new StepSubject());
  if (absl::Status s = subject->ParseGraph(bytes, step, limits, stop); !s.ok()) return s;
  return subject;
}

absl::StatusOr<std::unique_ptr<StepSubject>> StepSubject::ParseOwned(std::string bytes,
                                                                     const v1::Step& step,
                                                                     const v1::Limits& limits,
                                                                     const StopToken& stop) {
  std::unique_ptr<StepSubject> subject(new StepSubject());
  subject->own_bytes_ = std::move(bytes);
  absl::Status status = subject->ParseGraph(subject->own_bytes_, step, limits, stop);
  if (!status.ok()) return status;
  return subject;
}

absl::StatusOr<std::unique_ptr<StepSubject>> StepSubject::WithClones(const Graph& graph,
                                                                     const ClonePlan& clones,
                                                                     const v1::Step& step,
                                                                     const v1::Limits& limits,
                                                                     const StopToken& stop) {
  GraphEdit edit(graph);
  auto names = WriteClones(graph, clones, stop, &edit);
  if (!names.ok()) return names.status();
  auto bytes = edit.Apply(stop);
  if (!bytes.ok()) return bytes.status();
  return ParseOwned(*std::move(bytes), step, limits, stop);
}

absl::StatusOr<std::unique_ptr<StepSubject>> StepSubject::WithMoves(const Graph& graph,
                                                                    absl::Span<const NodeId> nodes,
                                                                    const v1::Step& step,
                                                                    const v1::Limits& limits,
                                                                    const StopToken& stop) {
  GraphEdit edit(graph);
  if (absl::Status s = WriteMoves(graph, nodes, stop, &edit); !s.ok()) return s;
  auto bytes = edit.Apply(stop);
  if (!bytes.ok()) return bytes.status();
  return ParseOwned(*std::move(bytes), step, limits, stop);
}

absl::StatusOr<std::unique_ptr<StepSubject>> StepSubject::WithEdits(
    const Graph& graph, absl::Span<const NodeId> moves, const ClonePlan& clones,
    const v1::Step& step, const v1::Limits& limits, const StopToken& stop) {
  absl::StatusOr<std::unique_ptr<StepSubject>> moved = nullptr;
  if (!moves.empty()) moved = WithMoves(graph, moves, step, limits, stop);
  if (!moved.ok() || clones.clones.empty()) return moved;
  return WithClones(*moved != nullptr ? (*moved)->graph() : graph, clones, step, limits, stop);
}

absl::Status StepSubject::ParseGraph(absl::string_view bytes, const v1::Step& step,
                                     const v1::Limits& limits, const StopToken& stop) {
  auto graph = Graph::Parse(bytes, limits, stop);
  if (!graph.ok()) return graph.status();
  graph_.emplace(*std::move(graph));
  facts_ = std::make_unique<StepFacts>(*graph_, step);
  return absl::OkStatus();
}

absl::StatusOr<StepSimulator*> StepSubject::Simulator(const StopToken& stop) {
  if (simulator_ == nullptr) {
    auto simulator = StepSimulator::Create(*facts_, stop);
    if (!simulator.ok()) return simulator.status();
    simulator_ = *std::move(simulator);
  }
  return simulator_.get();
}

absl::StatusOr<ControlFlowAnalysis> StepSubject::TakeControlFlow(const StopToken& stop) {
  if (absl::Status s = facts_->Compute({Fact::kControlFlow}, stop); !s.ok()) return s;
  simulator_.reset();
  ControlFlowAnalysis control_flow = std::move(*facts_).TakeControlFlow();
  facts_.reset();
  return control_flow;
}

}  // namespace spillway::core
