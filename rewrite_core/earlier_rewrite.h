// Graphs that this program has already rewritten: the graph underneath the edits, and the devices
// that the edits are on. Undo records are as untrusted as the rest of a graph.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_EARLIER_REWRITE_H_
#define SPILLWAY_REWRITE_CORE_EARLIER_REWRITE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/simulate/step_subject.h"

namespace spillway::core {

// `edited` without the edits of earlier rewrites. FAILED_PRECONDITION (BAD_UNDO_RECORD) if undoing
// the records gives an invalid graph or a different one; otherwise errors of Strip and Parse.
absl::StatusOr<std::unique_ptr<StepSubject>> ParseStripped(const Graph& edited,
                                                           const v1::Step& step,
                                                           const v1::Limits& limits,
                                                           const StopToken& stop);

// Whether an earlier rewrite inlined calls. The only error is that of `stop`.
absl::StatusOr<bool> HasInlinedNodes(const Graph& edited, const StopToken& stop);

// The nodes whose device an earlier rewrite changed, by their ids in `original`. Errors: those of
// `stop`.
absl::StatusOr<std::vector<NodeId>> FindMoves(const Graph& edited, const Graph& original,
                                              const StopToken& stop);

// Checks that the edits in `edited` are only swaps and are all sound, so that a plan can be built
// on top of them. FAILED_PRECONDITION (BAD_UNDO_RECORD) if not. Computes the fact kControlFlow.
absl::Status CheckEarlierEdits(const Graph& edited, const StepSubject& original,
                               const StopToken& stop);

// Whether a swap of an earlier rewrite starts on a device that is to be rewritten now. Edits
// without any swap count for every device. `eligibility` is that of `original`. The only error is
// that of `stop`.
absl::StatusOr<bool> IsRewrittenOn(const Graph& edited, const Graph& original,
                                   const Eligibility& eligibility, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_EARLIER_REWRITE_H_
