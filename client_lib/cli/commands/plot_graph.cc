#include "client_lib/cli/commands/plot_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/cli/flags/flag_names.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

// Whether the error means that there is no plan, so that the graph is drawn without one.
bool IsNoPlan(const absl::Status& status) {
  switch (core::GetErrorReason(status)) {
    case v1::ERROR_REASON_DOES_NOT_FIT:
    case v1::ERROR_REASON_NO_BACKWARD_PART:
    case v1::ERROR_REASON_NAME_MATCHES_NOTHING:
    case v1::ERROR_REASON_FOREIGN_REWRITE:
    case v1::ERROR_REASON_SEARCH_TOO_LONG:
      return true;
    default:
      return false;
  }
}

// The pictures before and after `graph`. If both are empty, the note gives the reason.
struct OtherGraph {
  std::string before, after;
  std::string note;
};

absl::StatusOr<OtherGraph> PlanFor(absl::string_view graph, const v1::Step& step,
                                   v1::Recompute recompute, const Client& client,
                                   const CallOptions& call) {
  v1::RewriteOptions options;
  *options.mutable_step() = step;
  if (recompute != v1::RECOMPUTE_UNSPECIFIED) options.mutable_budget()->set_recompute(recompute);
  OtherGraph other;
  auto planned = client.Rewrite(graph, options, call);
  if (!planned.ok()) {
    if (!IsNoPlan(planned.status())) return planned.status();
    other.note = absl::StrCat("there is no plan: ", MessageInFlags(planned.status()));
    return other;
  }
  switch (planned->report().outcome()) {
    case v1::OUTCOME_REWRITTEN:
      other.before = std::string(graph);
      other.after = std::move(*planned->mutable_graph_def());
      break;
    case v1::OUTCOME_FOREIGN:
      other.note = "another program has rewritten the graph, so the original is not known";
      break;
    case v1::OUTCOME_DRY_RUN:
      other.note = "the server makes dry runs only";
      break;
    default:
      other.note = "nothing is swapped";
  }
  return other;
}

absl::StatusOr<OtherGraph> FindOther(absl::string_view graph, const v1::Step& step,
                                     Comparison comparison, v1::Recompute recompute,
                                     const Client& client, const CallOptions& call) {
  const absl::Time deadline = core::SteadyNow() + call.timeout;
  auto stripped = client.Strip(graph, call);
  if (stripped.ok() && stripped->report().outcome() == v1::OUTCOME_STRIPPED) {
    if (recompute != v1::RECOMPUTE_UNSPECIFIED) {
      return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                                "--recompute is for a plan that is made here, and the graph is "
                                "rewritten already; leave it out, or strip the graph first",
                                {{"flag", "--recompute"}});
    }
    OtherGraph other;
    other.before = std::move(*stripped->mutable_graph_def());
    other.after = std::string(graph);
    return other;
  }
  if (!stripped.ok() && !IsNoPlan(stripped.status())) return stripped.status();
  if (comparison == Comparison::kNone) return OtherGraph();
  return PlanFor(graph, step, recompute, client, Until(deadline, call));
}

}  // namespace

absl::StatusOr<DrawnStep> SimulateToDraw(absl::string_view graph, v1::SimulateOptions options,
                                         Comparison comparison, v1::Recompute recompute,
                                         const Client& client, const CallOptions& call) {
  options.set_memory(true);
  options.set_trace(true);
  const absl::Time deadline = core::SteadyNow() + call.timeout;
  auto other = FindOther(graph, options.step(), comparison, recompute, client, call);
  if (!other.ok()) return other.status();
  DrawnStep drawn;
  const bool has_both = !other->after.empty();
  auto step = client.Simulate(has_both ? other->after : graph, options, Until(deadline, call));
  if (!step.ok()) return step.status();
  drawn.step = *std::move(step);
  if (has_both) {
    auto before = client.Simulate(other->before, options, Until(deadline, call));
    if (!before.ok()) return before.status();
    drawn.before = *std::move(before);
  }
  if (!other->note.empty()) drawn.notes.push_back(std::move(other->note));
  return drawn;
}

}  // namespace spillway::cli
