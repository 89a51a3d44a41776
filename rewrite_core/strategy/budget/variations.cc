#include "rewrite_core/strategy/budget/variations.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace spillway::core {
namespace {

// The variations cycle through each of these, and each has a different placement of variables. The
// shares are those of the reserve: fitting is not monotonic, and a part is left for what no
// variation covers, such as kernels that run in parallel on a CPU. (In TensorFlow under a hard
// limit, plans that fit in all of these trained, except for a few runs; of those that do not, many
// ran out of memory: tests/tensorflow/README.md.)
constexpr ReadyOrder kOrders[] = {ReadyOrder::kMixed, ReadyOrder::kFirstReady, ReadyOrder::kMixed,
                                  ReadyOrder::kLastReady};
constexpr int32_t kCopyPercents[] = {100, 33, 300, 100, 50, 200, 100};
constexpr double kReserveShares[] = {0.9, 0.8, 0.7, 0.6, 0.5};

}  // namespace

bool HasReserve(const BudgetRequest& request) {
  const Hardware& hardware = request.facts.hardware();
  return hardware.gpu_memory_bytes > hardware.device_budget_bytes();
}

std::vector<VariedStep> VariedSteps(const BudgetRequest& request, int64_t budget_bytes) {
  const int64_t reserve = request.facts.hardware().GpuMemoryFor(budget_bytes) - budget_bytes;
  std::vector<VariedStep> steps(kNumVariations);
  for (uint32_t i = 0; i < kNumVariations; ++i) {
    StepVariation& variation = steps[i].variation;
    variation.ready_order = kOrders[i % std::size(kOrders)];
    variation.seed = i;
    variation.copy_percent = kCopyPercents[i % std::size(kCopyPercents)];
    variation.initializer_seed = i + 1;
    steps[i].bytes = budget_bytes + ShareOf(reserve, kReserveShares[i % std::size(kReserveShares)]);
  }
  return steps;
}

absl::StatusOr<int> CountUnfit(const SwapPlan& plan, GpuIndex gpu, BudgetRequest* request) {
  int count = 0;
  for (const VariedStep& step : VariedSteps(*request, request->budget_bytes(gpu))) {
    StepTerms terms = StepTerms::OneGpu(gpu, step.bytes);
    terms.placed_alone = true;
    terms.variation = step.variation;
    auto outcome = request->simulator.Simulate(plan, terms, request->stop);
    if (!outcome.ok()) return outcome.status();
    count += !outcome->fits;
  }
  return count;
}

std::string MayRunOutText(absl::string_view what, int unfit) {
  return absl::StrCat(
      "TensorFlow may run out of memory: ", what, " does not fit in ", unfit, " of ",
      kNumVariations,
      " steps that were simulated with other orders of ready operations, other copy times, and "
      "variables where their initializers may leave them; plan for less of the memory "
      "(allocator_reserve), or train with TF_GPU_ALLOCATOR=cuda_malloc_async, which may leave "
      "memory in fewer pieces");
}

}  // namespace spillway::core
