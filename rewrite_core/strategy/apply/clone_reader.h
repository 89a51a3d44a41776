// Reads the clones of a saved plan for the graph that it was made for.
//
// Plans of any origin are refused for
//
//   names      a node that the graph does not have; more clones than the graph may have nodes
//   originals  a node that may not be cloned (clone_rules.h), or that the step does not run
//   inputs     a clone that does not exist yet, or is not one of the input's producer; an input of
//              an original that does not read the node, is served twice, fed, or in a loop
//   updates    a clone that reads a variable by reference, for which some update does not wait
//   triggers   none for a clone that reads no other one; one that its original waits for, or for
//              which the original, or a reader of the clone, may not wait (soundness.h); one that
//              the step would run only as a trigger, since clones take over its readers
//
// Cycles are searched for in the graph with all clones.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_CLONE_READER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_CLONE_READER_H_

#include "absl/status/statusor.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/strategy/common/strategy_result.h"
#include "spillway/v1/plan.pb.h"

namespace spillway::core {

// Errors: INVALID_ARGUMENT (BAD_PLAN); those of the facts and of `stop`. REQUIRES: the graph is the
// plan's.
absl::StatusOr<ClonePlan> ReadClones(const v1::Plan& plan, const StrategyInput& input);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_CLONE_READER_H_
