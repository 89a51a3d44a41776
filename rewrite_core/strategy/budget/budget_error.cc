#include "rewrite_core/strategy/budget/budget_error.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/strategy/common/fit_failure.h"

namespace spillway::core {
namespace {

// Returns a clause about the host's memory, if it cannot hold what the GPU lacks.
std::string HostText(const BudgetRequest& request, const OrderedStep& ordered, GpuIndex gpu) {
  const StepFacts& facts = request.facts;
  const int64_t lacking = ordered.step().peak_bytes(gpu) - request.budget_bytes(gpu);
  const int64_t host = facts.hardware().host_memory_bytes;
  const auto gpus = std::max<int64_t>(1, facts.placement().devices().size());
  if (lacking <= host / gpus) return "";
  return absl::StrCat(" with ", BytesText(host), " of the host's (host_memory_bytes",
                      gpus > 1 ? ", of all GPUs" : "", "), where swaps would have to hold about ",
                      BytesText(lacking));
}

}  // namespace

absl::Status NoPlanError(const BudgetRequest& request, const OrderedStep& ordered, GpuIndex gpu,
                         const DeviceBounds& bounds, const StepResult& failure,
                         int64_t smallest_budget_bytes) {
  const StepFacts& facts = request.facts;
  const std::string effect =
      request.objective.max_slowdown()
          ? absl::StrCat("there is one that takes at most ", request.objective.MaxSlowdownText())
          : "there is one";
  const std::string& name = facts.placement().devices()[gpu];
  FitFailure why = FailureOf(failure, gpu, facts);
  why.lower_bound_bytes = bounds.memory_bytes;
  if (bounds.memory_op != kNoOp) {
    const NodeId node = ordered.step().ops[bounds.memory_op].node;
    if (node != kNoNode) why.lower_bound_node = std::string(facts.graph().name(node));
  }
  if (why.node.empty()) why.resident_bytes = ordered.step().resident_bytes(gpu);
  const Hardware hardware = facts.HardwareOf(gpu);
  const int64_t budget = request.budget_bytes(gpu);
  const bool is_proven = bounds.memory_bytes > budget;
  const std::string claim =
      absl::StrCat(is_proven ? "no plan of swaps can fit the " : "no plan was found that fits the ",
                   BudgetText(hardware, budget), " of GPU ",
                   name.empty() ? "(no name)" : Quoted(name), HostText(request, ordered, gpu));
  return DoesNotFitError(claim, why, hardware, budget, {smallest_budget_bytes, effect});
}

absl::Status SlowPlanError(const BudgetRequest& request, GpuIndex gpu, int64_t step_time_ns,
                           int64_t smallest_budget_bytes) {
  return TooSlowError(request.objective, request.facts.placement().devices()[gpu], step_time_ns,
                      request.unswapped.step_time_ns(), request.facts.HardwareOf(gpu),
                      request.budget_bytes(gpu), smallest_budget_bytes);
}

}  // namespace spillway::core
