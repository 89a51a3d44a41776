// Reads a saved plan into a SwapPlan for the graph that it was made for.
//
// Plans of any origin are refused for
//
//   names     a node that the graph does not have, an input that does not read the tensor
//   twice     a tensor, an input or a node of one list that is named twice
//   tensors   a tensor that may not be swapped (eligibility.h), or a consumer that may not read a
//             swap-in (readers.h)
//   edges     an unsound edge (soundness.h), except that cycles are searched for in the graph with
//             all edges of the plan together: `budget` follows an order that is not in the plan
//   step      an edge that makes the step run a node that it otherwise does not, such as an
//             initializer
//
// So nothing is left for the verifier to find; its errors are bugs of Spillway.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_PLAN_READER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_PLAN_READER_H_

#include "absl/status/statusor.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/plan.pb.h"

namespace spillway::core {

// Sizes are those of the facts, not of the plan. Errors: INVALID_ARGUMENT (BAD_PLAN); those of the
// facts and of `stop`; RESOURCE_EXHAUSTED (SEARCH_TOO_LONG). REQUIRES: the graph is the plan's.
absl::StatusOr<SwapPlan> ReadPlan(const v1::Plan& plan, const StrategyInput& input);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_PLAN_READER_H_
