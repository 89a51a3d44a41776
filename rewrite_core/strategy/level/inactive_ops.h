// The ops that the strategy `level` leaves alone, as TFLMS v2 does: they do not run in this mode,
// or run many times. They are FusedBatchNorm and FusedBatchNormGrad of the other mode (attribute
// is_training); ops inside loops (level_order.h) other than Enter and Exit; readers of the side of
// a Switch that `keras_learning_phase` does not take; and ops that depend only on such ops
// (constants do not count; Merge and Switch stay active; for an op with "Variable" in its own name,
// one such input suffices).
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_INACTIVE_OPS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_INACTIVE_OPS_H_

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// The mode of the step: Keras' learning phase.
enum class Phase { kTraining, kInference };

// Flags these ops. Linear in the graph. Errors: those of `stop`.
absl::StatusOr<NodeFlags> FindInactiveOps(const Graph& graph,
                                          const ControlFlowAnalysis& control_flow, Phase phase,
                                          const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_INACTIVE_OPS_H_
