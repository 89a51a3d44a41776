#include "rewrite_core/strategy/budget/variations.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace spillway::core {
namespace {

// Orders, copy times from a third to three times the preset's, seeds of initializers: each order
// and each time with its own. (In TensorFlow under a hard limit, plans that fit in all of these
// trained; of those that do not, some ran out.)
constexpr StepVariation kVariations[] = {
    {ReadyOrder::kLastReady, 0, 100, 1},  {ReadyOrder::kMixed, 1, 100, 2},
    {ReadyOrder::kMixed, 2, 100, 3},      {ReadyOrder::kMixed, 3, 300, 4},
    {ReadyOrder::kFirstReady, 0, 33, 5},  {ReadyOrder::kFirstReady, 0, 300, 6},
    {ReadyOrder::kFirstReady, 0, 100, 7}, {ReadyOrder::kFirstReady, 0, 100, 8},
    {ReadyOrder::kMixed, 4, 100, 9},      {ReadyOrder::kMixed, 5, 50, 10},
    {ReadyOrder::kMixed, 6, 100, 11},     {ReadyOrder::kLastReady, 0, 200, 12},
};

// Of the reserve, what variations may take.
constexpr double kVariedShare = 0.75;

}  // namespace

absl::Span<const StepVariation> Variations() { return kVariations; }

bool HasReserve(const BudgetRequest& request) {
  return request.facts.hardware().gpu_memory_bytes > request.budget_bytes();
}

int64_t VariationBytes(const BudgetRequest& request, int64_t budget_bytes) {
  const int64_t reserve = request.facts.hardware().GpuMemoryFor(budget_bytes) - budget_bytes;
  return budget_bytes + ShareOf(reserve, kVariedShare);
}

absl::StatusOr<int> CountUnfit(const SwapPlan& plan, int32_t gpu, BudgetRequest* request) {
  StepTerms terms = StepTerms::OneGpu(gpu, VariationBytes(*request, request->budget_bytes()));
  terms.placed_alone = true;
  int count = 0;
  for (const StepVariation& variation : kVariations) {
    terms.variation = variation;
    auto outcome = request->simulator.Simulate(plan, terms, request->stop);
    if (!outcome.ok()) return outcome.status();
    count += !outcome->fits;
  }
  return count;
}

std::string MayRunOutText(absl::string_view what, int unfit) {
  return absl::StrCat(
      "TensorFlow may run out of memory: ", what, " does not fit in ", unfit, " of ",
      std::size(kVariations),
      " steps that were simulated with other orders of what is ready, other times of copies, and "
      "variables where their initializers may leave them; plan for less of the memory "
      "(allocator_reserve), or train with TF_GPU_ALLOCATOR=cuda_malloc_async, which may leave "
      "memory in fewer pieces");
}

}  // namespace spillway::core
