// Edges that keep products at their planned place. Grappler's constant folding makes
// (x * y) * constant into x * (constant * y), and likewise sums, if nothing else reads the inner
// result (ConstantPushDown and PrepareConstantPushDown in
// tensorflow/core/grappler/optimizers/constant_folding.cc). The inner one then waits for y alone:
// if x is a gradient and y of the forward part, as in the gradient of a scaled softmax, it runs
// early, and is kept for x.
//
// So the inner one waits for a gradient that is launched shortly before it: one that it does not
// wait for anyway, as Grappler removes redundant edges before it moves constants. Nor one that only
// forwards its input, which Grappler removes, too. (In gradients of tf.gradients, which wait for
// each other in groups, often none is left, and the product runs early.)
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HELD_PRODUCTS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HELD_PRODUCTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/simulate/plan_simulator.h"

namespace spillway::core {

// The edges for `step` (with unlimited memory, operations recorded) on `gpu`, along `ranks`
// (RankByLaunch; empty: none): at most one for each such product whose y is made before its x; none
// if step.grappler is AS_IS. Errors: those of `stop`. REQUIRES: the facts kBuffers and
// kActiveNodes.
absl::StatusOr<std::vector<ControlEdge>> HoldProducts(const StepFacts& facts, const Needs& needs,
                                                      absl::Span<const int32_t> ranks,
                                                      const StepResult& step, GpuIndex gpu,
                                                      const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HELD_PRODUCTS_H_
