// Which control edges may be added to a graph. An edge from -> to makes `to` wait for `from`, and
// makes every step that runs `to` run `from`. The rules, and what happens without them:
//
//   fed       neither end is fed: ancestors of a fed node would run for nothing, and a fed node
//             must not be edited
//   cycle     `from` is on a lower topological level (topology.h), or earlier in an order of the
//             caller's: otherwise the graph might never run. Nodes that a loop leads to come after
//             its body, which topological levels alone do not say (loops.h)
//   frame     `from` ends in the loop frame in which `to` starts: TensorFlow refuses other graphs
//   deadness  `to` is dead whenever `from` is: otherwise a branch not taken would end the training
//   switch    `to` does not wait for the copy of one side of a Switch, dead when that is not taken
//   extra     a step that runs `to` runs `from` anyway: otherwise it would run more, perhaps the
//             initializer of a variable
//
// The verifier checks frames, deadness, switches and cycles again on the answer, without the plan.
//
// Thread safety: immutable.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_SOUNDNESS_H_
#define SPILLWAY_REWRITE_CORE_PLAN_SOUNDNESS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// The rule that an edge breaks.
enum class EdgeFault : uint8_t { kNone, kFed, kCycle, kFrame, kDeadness, kSwitch, kExtra };

// Returns a clause about it: "the node waited for may be dead while the other is not".
absl::string_view EdgeFaultText(EdgeFault fault);

class Soundness {
 public:
  // `ranks`: by node, numbers that grow along every edge of the graph (except back edges of loops)
  // and of the plan so far, used in place of topological levels; empty: use the levels. REQUIRES:
  // the facts kShapes, kLoops, kControlFlow and kActiveNodes. Both must outlive the result.
  explicit Soundness(const StepFacts& facts, absl::Span<const int32_t> ranks = {})
      : facts_(facts), ranks_(ranks) {}

  // Judges from -> to: a trigger of a swap-in (`to`: each of its consumers), or an order edge.
  EdgeFault Wait(NodeId from, NodeId to) const;
  bool MayWait(NodeId from, NodeId to) const { return Wait(from, to) == EdgeFault::kNone; }

  // The same without the rule on cycles, for callers that check all edges together for cycles.
  EdgeFault WaitAnywhere(NodeId from, NodeId to) const;

  // The same again, but `from` must not be a Switch: for edges that all grow along one order of the
  // caller's, in which no edge of the graph goes back.
  EdgeFault WaitInOrder(NodeId from, NodeId to) const;

  // Judges a deadline edge: `to` waits for the swap-out of an output of `producer`.
  EdgeFault WaitForSwapOut(NodeId producer, NodeId to) const;

  // Judges a pace edge: `to` waits for a swap-in of an output of `producer` with these triggers.
  EdgeFault WaitForSwapIn(NodeId producer, absl::Span<const NodeId> triggers, NodeId to) const;

  // Whether no wait should be added to a node: it is a Const, which takes no time and no memory of
  // the step. Constant folding moves constants past the products that read them (ConstantPushDown,
  // constant_folding.cc): one that waits for a descendant of its product's other factor would close
  // a cycle, and Grappler gives up. Its readers can wait in place of it.
  bool IsConstant(NodeId id) const { return facts_.graph().op(id) == "Const"; }

 private:
  bool IsBelow(NodeId from, NodeId to) const {
    if (!ranks_.empty()) return ranks_[from] < ranks_[to];
    const bool waits = !facts_.loops().order().empty();
    return facts_.topology().level(from) < facts_.topology().level(to) &&
           (!waits || facts_.loops().level(from) < facts_.loops().level(to));
  }
  bool IsSwitch(NodeId id) const {
    return facts_.graph().op_info(id).control_flow == ControlFlow::kSwitch;
  }

  const StepFacts& facts_;
  const absl::Span<const int32_t> ranks_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_SOUNDNESS_H_
