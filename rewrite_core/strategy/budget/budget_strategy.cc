#include "rewrite_core/strategy/budget/budget_strategy.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/plan/state_groups.h"
#include "rewrite_core/strategy/budget/budget_run.h"
#include "rewrite_core/strategy/budget/joint_search.h"
#include "rewrite_core/strategy/budget/objective.h"
#include "rewrite_core/strategy/budget/offload_search.h"
#include "rewrite_core/strategy/common/op_filter.h"

namespace spillway::core {

absl::Status CheckBudgetStrategy(const v1::RewriteOptions& options, const StopToken&) {
  const v1::PlanningEffort effort = options.budget().planning_effort();
  const v1::Recompute recompute = options.budget().recompute();
  if (!v1::Recompute_IsValid(recompute)) {
    return InvalidError(
        v1::ERROR_REASON_UNKNOWN_OPTION,
        absl::StrCat("recompute is ", static_cast<int>(recompute),
                     ", which this server does not know; it is OFF, CHEAP or ALL"),
        {{"option", "recompute"}, {"value", absl::StrCat(static_cast<int>(recompute))}});
  }
  if (const v1::Offload offload = options.budget().offload(); !v1::Offload_IsValid(offload)) {
    return InvalidError(
        v1::ERROR_REASON_UNKNOWN_OPTION,
        absl::StrCat("offload is ", static_cast<int>(offload),
                     ", which this server does not know; it is OFF or OPTIMIZER"),
        {{"option", "offload"}, {"value", absl::StrCat(static_cast<int>(offload))}});
  }
  if (v1::PlanningEffort_IsValid(effort)) {
    absl::Status s = CheckObjective(options.budget());
    return s.ok() ? SwapFilters::Check(options.budget()) : s;
  }
  return InvalidError(
      v1::ERROR_REASON_UNKNOWN_OPTION,
      absl::StrCat("planning_effort is ", static_cast<int>(effort),
                   ", which this server does not know; it is LOW, MEDIUM or HIGH"),
      {{"option", "planning_effort"}, {"value", absl::StrCat(static_cast<int>(effort))}});
}

namespace {

// State below 1/kWorthMoving of a GPU's budget is not worth a hint.
constexpr int64_t kWorthMoving = 10;

// Advice on a training step in a loop, whose tensors are not swapped: Keras puts several steps into
// one (steps_per_execution). Empty if it is not in one.
absl::StatusOr<std::string> LoopText(const StepFacts& facts, const StopToken& stop) {
  if (absl::Status s = facts.Compute({Fact::kControlFlow, Fact::kBackwardPart}, stop); !s.ok())
    return s;
  for (NodeId update : facts.backward_part().updates) {
    if (facts.control_flow().input_frame(update) == kRootFrame) continue;
    return absl::StrCat("; or take the step out of its loop (", facts.graph().name(update),
                        " is in one), whose tensors are not swapped: in Keras, "
                        "steps_per_execution=1");
  }
  return std::string();
}

// A hint at state that the host could hold: by its bytes alone, so it says "may". Empty if it is
// too little for the GPUs that lack memory.
absl::StatusOr<std::string> OffloadText(const StrategyInput& input, const BudgetRun& run) {
  auto groups = StateGroups::Find(input.facts, input.stop);
  if (!groups.ok()) return groups.status();
  std::vector<int64_t> movable(input.facts.placement().devices().size(), 0);
  for (const StateGroup& group : groups->groups()) {
    if (group.kept == v1::STATE_KEPT_UNSPECIFIED) {
      movable[group.gpu] = SaturatingAdd(movable[group.gpu], group.bytes);
    }
  }
  for (size_t i : run.lacking()) {
    const GpuIndex gpu = run.gpus()[i].index;
    const int64_t budget = input.facts.BudgetOf(gpu);
    const int64_t needed = run.plans().bounds()[gpu].memory_bytes - movable[gpu];
    if (movable[gpu] < budget / kWorthMoving || needed > budget) return std::string();
  }
  return std::string(
      "; or keep optimizer state in host memory (budget.offload = OPTIMIZER), which may make a "
      "plan fit");
}

bool Offloads(const v1::RewriteOptions& options) {
  return options.budget().offload() == v1::OFFLOAD_OPTIMIZER;
}

// Plans for the GPUs that need it, and finds the gain from more recomputation.
absl::Status Plan(const StrategyInput& input, SearchBudget* steps, BudgetRun* run) {
  if (absl::Status s = run->Order(); !s.ok()) return s;
  // If an op alone takes too much, recomputation cannot help.
  const bool may_fit = run->BoundNs() < kUnlimited;
  absl::Status status = may_fit && RecomputeOf(input.options) != v1::RECOMPUTE_OFF
                            ? PlanJointly(input, steps, run)
                            : run->PlanSwaps();
  const bool fits = GetErrorReason(status) != v1::ERROR_REASON_DOES_NOT_FIT;
  if (input.only_plan || (fits && !status.ok())) return status;
  if (!fits && Offloads(input.options)) return status;  // That comes first.
  if (!fits) {
    const auto text = LoopText(input.facts, input.stop);
    if (!text.ok()) return text.status();
    if (!text->empty()) status = WithMoreText(status, *text);
    const auto offload = OffloadText(input, *run);
    if (!offload.ok()) return offload.status();
    if (!offload->empty()) status = WithMoreText(status, *offload);
    if (!may_fit) return status;
  }
  auto more = FindMoreRecompute(input, fits ? run->StepTimeNs() : kUnlimited, steps, run);
  if (!more.ok()) return more.status();
  if (more->recompute() == v1::RECOMPUTE_UNSPECIFIED) return status;
  if (fits) {
    run->Recommend(*more);
    return status;
  }
  const std::string name = RecomputeName(more->recompute());
  return WithDetail(
      WithMoreText(status, absl::StrCat("; or allow more recomputation (budget.recompute = ",
                                        absl::AsciiStrToUpper(name), "), which makes a plan fit")),
      "recompute", name);
}

// Plans the graph of `run`, and returns the result if it has a plan or needs none.
absl::StatusOr<StrategyResult> PlanRun(const StrategyInput& input, SearchBudget* steps,
                                       BudgetRun* run) {
  absl::Status s = run->Simulate();
  if (s.ok() && run->needs_plan()) s = Plan(input, steps, run);
  if (!s.ok()) return s;
  return run->Finish();
}

absl::StatusOr<StrategyResult> PlanOneGraph(const StrategyInput& input, int64_t full_speed_ns,
                                            SearchBudget* steps) {
  BudgetRun run(input, steps);
  run.SetFullSpeed(full_speed_ns);
  return PlanRun(input, steps, &run);
}

}  // namespace

absl::StatusOr<StrategyResult> PlanBudget(const StrategyInput& input) {
  SearchBudget steps(input.limits.max_search_steps(), input.stop);
  BudgetRun run(input, &steps);
  auto result = PlanRun(input, &steps, &run);
  const bool is_wanted = result.ok()
                             ? IsWorthOffloading(*result, run)
                             : GetErrorReason(result.status()) == v1::ERROR_REASON_DOES_NOT_FIT;
  if (Offloads(input.options) && run.needs_plan() && is_wanted) {
    result = PlanOffloaded(input, run, std::move(result), PlanOneGraph, &steps);
  }
  if (input.search_steps != nullptr) {
    *input.search_steps = SaturatingAdd(*input.search_steps, steps.steps_taken());
  }
  if (result.ok() && steps.ended_early()) result->report.set_stopped_early(true);
  return result;
}

}  // namespace spillway::core
