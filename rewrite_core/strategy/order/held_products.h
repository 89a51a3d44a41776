// Edges that keep products where they are planned. Grappler's constant folding makes
// (x * y) * constant into x * (constant * y), and likewise sums, if nothing else reads the inner
// result (ConstantPushDown and PrepareConstantPushDown in
// tensorflow/core/grappler/optimizers/constant_folding.cc). The inner one then waits for y alone:
// where x is a gradient and y of the forward part, as in the gradient of a scaled softmax, it runs
// there, and is kept until x comes. (A ViT in half of its memory, planned with swaps and `cheap`,
// did not fit so, in 4 of 4 cases.) An edge from what x is made of says again what the graph says
// anyway, and is left to the inner one.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HELD_PRODUCTS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HELD_PRODUCTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

// The edges of the GPU of `order`, one for each such product whose y is made before its x; none if
// step.grappler is AS_IS. Errors: those of `stop`.
absl::StatusOr<std::vector<ControlEdge>> HoldProducts(const StepFacts& facts,
                                                      const StepOrder& order,
                                                      const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_HELD_PRODUCTS_H_
