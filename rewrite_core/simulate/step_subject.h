// One graph on its way through a rewrite: the bytes, the graph over them, the facts of its step and
// its simulator, each depending on the one before.
//
// Thread safety: none; one rewrite owns it.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_STEP_SUBJECT_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_STEP_SUBJECT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

class StepSubject {
 public:
  // Parses bytes that must outlive it, or bytes that it owns. `step` must outlive it. Errors: those
  // of Graph::Parse.
  static absl::StatusOr<std::unique_ptr<StepSubject>> Parse(absl::string_view bytes,
                                                            const v1::Step& step,
                                                            const v1::Limits& limits,
                                                            const StopToken& stop);
  static absl::StatusOr<std::unique_ptr<StepSubject>> ParseOwned(std::string bytes,
                                                                 const v1::Step& step,
                                                                 const v1::Limits& limits,
                                                                 const StopToken& stop);

  // `graph` with clones; its nodes keep their ids. Errors: those of GraphEdit::Apply, too; for more
  // nodes than the limits allow, before they are written.
  static absl::StatusOr<std::unique_ptr<StepSubject>> WithClones(const Graph& graph,
                                                                 const ClonePlan& clones,
                                                                 const v1::Step& step,
                                                                 const v1::Limits& limits,
                                                                 const StopToken& stop);

  // `graph` with these nodes moved to the host; all nodes keep their ids. Errors: likewise.
  static absl::StatusOr<std::unique_ptr<StepSubject>> WithMoves(const Graph& graph,
                                                                absl::Span<const NodeId> nodes,
                                                                const v1::Step& step,
                                                                const v1::Limits& limits,
                                                                const StopToken& stop);
  // Likewise, then with clones; null if nothing is moved or cloned.
  static absl::StatusOr<std::unique_ptr<StepSubject>> WithEdits(
      const Graph& graph, absl::Span<const NodeId> moves, const ClonePlan& clones,
      const v1::Step& step, const v1::Limits& limits, const StopToken& stop);

  const Graph& graph() const { return *graph_; }
  // REQUIRES: TakeControlFlow was not called; likewise for Simulator.
  const StepFacts& facts() const { return *facts_; }
  // Made on first demand. Errors: those of StepSimulator::Create.
  absl::StatusOr<StepSimulator*> Simulator(const StopToken& stop);
  void DropSimulator() { simulator_.reset(); }

  // Frees everything but the graph and this fact, because writing and verifying need memory too.
  absl::StatusOr<ControlFlowAnalysis> TakeControlFlow(const StopToken& stop);

 private:
  StepSubject() = default;
  absl::Status ParseGraph(absl::string_view bytes, const v1::Step& step, const v1::Limits& limits,
                          const StopToken& stop);

  // In this order: each depends on those before it.
  std::string own_bytes_;
  absl::optional<Graph> graph_;
  std::unique_ptr<StepFacts> facts_;
  std::unique_ptr<StepSimulator> simulator_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_STEP_SUBJECT_H_
