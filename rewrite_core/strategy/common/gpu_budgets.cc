#include "rewrite_core/strategy/common/gpu_budgets.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/common/fit_failure.h"

namespace spillway::core {

absl::Status CheckKnownBatch(const StepFacts& facts, absl::string_view instead) {
  const Graph& graph = facts.graph();
  for (NodeId id : facts.shapes().open_sources()) {
    if (!facts.active_nodes().flags[id]) continue;
    return InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("the batch of node ", Quoted(graph.name(id)),
                     " is not known, and tuning needs sizes; give batch_size, or a feed of that "
                     "name",
                     instead),
        {{"option", "batch_size"}, {"node", graph.name(id)}});
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SimulateTogether(const SwapPlan& plan, const StepFacts& facts,
                                      PlanSimulator* simulator, const StopToken& stop,
                                      FitFailure* failure) {
  const std::vector<int64_t> budgets = facts.Budgets();
  std::vector<int64_t> memory;
  for (GpuIndex gpu(0); gpu < static_cast<int32_t>(budgets.size()); ++gpu) {
    memory.push_back(facts.HardwareOf(gpu).gpu_memory_bytes);
  }
  auto result = simulator->Simulate(plan, StepTerms::AllGpus(budgets), stop);
  if (result.ok() && result->fits && memory != budgets) {
    result = simulator->Simulate(plan, StepTerms::AllGpus(memory), stop);
  }
  if (!result.ok()) return result.status();
  if (result->fits) return true;
  const OutOfMemory* oom = result->failure();
  *failure =
      FailureOf(*result, std::max(oom == nullptr ? GpuIndex(0) : oom->device, GpuIndex(0)), facts);
  return false;
}

absl::Status NotTogetherError(const FitFailure& failure, int64_t unswapped_peak_bytes,
                              const StepFacts& facts, PlanSimulator* simulator,
                              const StopToken& stop) {
  const std::vector<std::string>& gpus = facts.placement().devices();
  const auto failed = std::find(gpus.begin(), gpus.end(), failure.gpu);
  const Hardware hardware =
      facts.HardwareOf(GpuIndex(failed == gpus.end() ? 0 : failed - gpus.begin()));
  const int64_t budget = hardware.device_budget_bytes();
  auto need = FindNeed(simulator, SwapPlan(), StepTerms::AllGpus(unswapped_peak_bytes),
                       unswapped_peak_bytes, stop);
  if (!need.ok()) return need.status();
  const std::string claim =
      absl::StrCat(failure.unknown.empty() ? "each GPU fits into its "
                                           : "the known part of each GPU fits into its ",
                   BudgetText(hardware, budget),
                   " while the others do not wait for memory, but not all at once, on ",
                   failure.on_host ? "the host" : GpuText(failure.gpu));
  return DoesNotFitError(claim, failure, hardware, budget,
                         {*need, "would suffice without swapping"});
}

}  // namespace spillway::core
