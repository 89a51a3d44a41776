// The errors for a plan that is refused.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/soundness.h"
#include "spillway/v1/plan.pb.h"

namespace spillway::core {

// INVALID_ARGUMENT (BAD_PLAN). `what` is a clause that names the thing.
inline absl::Status BadPlanError(absl::string_view what,
                                 absl::Span<const ErrorDetail> details = {}) {
  return InvalidError(v1::ERROR_REASON_BAD_PLAN,
                      absl::StrCat("the plan cannot be applied: ", what,
                                   "; give it as it was saved, or make another one"),
                      details);
}

// The plan names a node that is not there.
inline absl::Status NoNodeError(absl::string_view name) {
  return BadPlanError(absl::StrCat("the graph has no node ", Quoted(name)), {{"node", name}});
}

// `what` says what is wrong with an input of a node.
inline absl::Status BadInputError(const v1::InputRef& ref, absl::string_view what) {
  return BadPlanError(
      absl::StrCat("input ", ref.input_index(), " of node ", Quoted(ref.node()), " ", what),
      {{"node", ref.node()}, {"input", absl::StrCat(ref.input_index())}});
}

// OK if `to` may wait for `from`: for `fault`, or since the step would run more.
inline absl::Status CheckWait(const StepFacts& facts, NodeId from, NodeId to, EdgeFault fault) {
  absl::string_view why = EdgeFaultText(fault);
  if (fault == EdgeFault::kNone) {
    const NodeFlags& needed = facts.active_nodes().needed;
    if (!needed[to] || needed[from]) return absl::OkStatus();
    why = "the step runs only the node that would wait, and would run the other, too";
  }
  const absl::string_view waiting = facts.graph().name(to), source = facts.graph().name(from);
  return BadPlanError(
      absl::StrCat("node ", Quoted(waiting), " may not wait for ", Quoted(source), ": ", why),
      {{"node", waiting}, {"source", source}});
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_
