// The errors for a plan that is refused.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/graph.h"
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

// `what` describes the fault of a node's input.
inline absl::Status BadInputError(const v1::InputRef& ref, absl::string_view what) {
  return BadPlanError(
      absl::StrCat("input ", ref.input_index(), " of node ", Quoted(ref.node()), " ", what),
      {{"node", ref.node()}, {"input", absl::StrCat(ref.input_index())}});
}

// OK if `to` may wait for `from`; `fault` is the verdict of Soundness.
inline absl::Status CheckWait(const Graph& graph, NodeId from, NodeId to, EdgeFault fault) {
  if (fault == EdgeFault::kNone) return absl::OkStatus();
  const absl::string_view waiting = graph.name(to), source = graph.name(from);
  return BadPlanError(absl::StrCat("node ", Quoted(waiting), " may not wait for ", Quoted(source),
                                   ": ", EdgeFaultText(fault)),
                      {{"node", waiting}, {"source", source}});
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_APPLY_BAD_PLAN_H_
