#include "rewrite_core/strategy/budget/budget_request.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "rewrite_core/strategy/order/order_chain.h"

namespace spillway::core {
namespace {

// Plans simulated for one GPU, by effort (documented in options.proto).
constexpr int kMediumSimulations = 128;
constexpr int kHighSimulations = 8192;

// A plan must fit in this many sizes of memory above the budget, up to and including the GPU's
// whole memory.
constexpr int kOtherSizes = 3;

// If any plan within max_slowdown suffices, a search aims at 1/kFastEnoughPart below that step
// time. At least the margin within which SearchPlan considers a plan to be at full speed.
constexpr int64_t kFastEnoughPart = 1000;

// With n GPUs, each gets 1/(n * kPartsPerGpu) of the remaining simulations: a plan takes more than
// one search, and simulations in variations as well.
constexpr int64_t kPartsPerGpu = 4;

// The variations cycle through each of these, and each has a different placement of variables. The
// shares are those of the reserve: fitting is not monotonic, and a part is left for effects that
// none covers, such as kernels that run in parallel on a CPU. (In TensorFlow under a hard limit,
// plans that fit in all of these trained, except for a few runs; of those that do not, many ran out
// of memory: tests/tensorflow/README.md.)
constexpr ReadyOrder kOrders[] = {ReadyOrder::kMixed, ReadyOrder::kFirstReady, ReadyOrder::kMixed,
                                  ReadyOrder::kLastReady};
constexpr int32_t kCopyPercents[] = {100, 33, 300, 100, 50, 200, 100};
// Spreads of operations' times, and delays of host reads: with processes that emulate GPUs on
// shared cores, kernels took from a third to seven times their traced time, and weights came up to
// 5 ms late. Of 40 runs of plans for two towers with the smallest memory 24 failed without a
// spread, 8 with 400 % in every other variation, 5 with these; plans were as fast, and found as
// soon.
constexpr int32_t kSpreadPercents[] = {200, 400};
constexpr int64_t kLateNs[] = {0, 1'000'000, 5'000'000};
// Each kFileOrders-th variation differs in the order of the nodes in the file, every second one of
// these also in the places of variables, and in nothing else: Grappler adds nodes, formats sort
// them. (With only every fifth of this kind, a plan of a U-Net that fits in all variations did not
// fit in 6 of 30 other orders; now in none. Of 14 plans of three nets for two GPUs, each in ten
// orders and after TensorFlow's passes, 8 of 154 do not fit, 9 before; 1 and 2 of plans that fit in
// all variations. Plans take 1 % longer.)
constexpr uint32_t kFileOrders = 2;
constexpr double kReserveShares[] = {0.9, 0.8, 0.7, 0.6, 0.5};

int SimulationsOf(v1::PlanningEffort effort) {
  switch (effort) {
    case v1::PLANNING_EFFORT_LOW:
      return kLowSimulations;
    case v1::PLANNING_EFFORT_HIGH:
      return kHighSimulations;
    default:
      return kMediumSimulations;
  }
}

v1::PlanningEffort EffortOf(const v1::RewriteOptions& options) {
  const v1::PlanningEffort effort = options.budget().planning_effort();
  return effort == v1::PLANNING_EFFORT_UNSPECIFIED ? v1::PLANNING_EFFORT_MEDIUM : effort;
}

}  // namespace

BudgetRequest::BudgetRequest(const StrategyInput& from, SearchBudget* steps)
    : input(from),
      facts(from.facts),
      eligibility(from.eligibility),
      options(from.options),
      stop(from.stop),
      effort(EffortOf(from.options)),
      objective(from.options.budget()),
      simulator(from.simulator, from.facts.graph().num_nodes(), steps,
                "name some of the GPUs with devices, set planning_effort to LOW, or raise the "
                "limit") {
  base.cpu_device = from.options.cpu_device();
}

std::vector<int64_t> BudgetRequest::OtherBudgets(GpuIndex gpu) const {
  const int64_t budget = budget_bytes(gpu);
  const int64_t memory = facts.HardwareOf(gpu).gpu_memory_bytes;
  const int64_t rest = memory - budget;
  std::vector<int64_t> budgets;
  for (int i = 1; i <= kOtherSizes && rest >= kOtherSizes; ++i) {
    budgets.push_back(i < kOtherSizes ? budget + rest / kOtherSizes * i : memory);
  }
  return budgets;
}

bool BudgetRequest::has_reserve() const {
  const Hardware& hardware = facts.hardware();
  return hardware.gpu_memory_bytes > hardware.device_budget_bytes();
}

std::vector<VariedStep> BudgetRequest::VariedSteps(int64_t budget_bytes) const {
  const int64_t reserve = facts.hardware().GpuMemoryFor(budget_bytes) - budget_bytes;
  std::vector<VariedStep> varied(kNumVariations);
  for (uint32_t i = 0; i < kNumVariations; ++i) {
    varied[i].bytes =
        budget_bytes + ShareOf(reserve, kReserveShares[i % std::size(kReserveShares)]);
    StepVariation& variation = varied[i].variation;
    variation.seed = i;
    const uint32_t other = i / kFileOrders;
    if (i % kFileOrders == 0) {
      variation.file_seed = i + 1;
      if (other % 2 == 1) variation.initializer_seed = i + 1;
      continue;
    }
    variation.ready_order = kOrders[other % std::size(kOrders)];
    variation.copy_percent = kCopyPercents[other % std::size(kCopyPercents)];
    variation.spread_percent = kSpreadPercents[other % std::size(kSpreadPercents)];
    variation.late_ns = kLateNs[other % std::size(kLateNs)];
    variation.initializer_seed = i + 1;
  }
  return varied;
}

absl::StatusOr<int> BudgetRequest::CountUnfit(const SwapPlan& plan, GpuIndex gpu, int most,
                                              std::vector<VariedStep>* varied,
                                              const std::vector<int64_t>& sizes,
                                              PlanSimulator* by) {
  if (by == nullptr) by = &simulator;
  int count = 0;
  size_t last = 0;
  for (size_t i = 0; i < varied->size() && count < most; ++i) {
    StepTerms terms = StepTerms::OneGpu(gpu, (*varied)[i].bytes);
    terms.placed_alone = true;
    terms.variation = (*varied)[i].variation;
    auto outcome = by->Simulate(plan, terms, stop);
    if (!outcome.ok()) return outcome.status();
    if (outcome->fits) continue;
    ++count;
    last = i;
    unfit = *std::move(outcome);
  }
  if (count > 0) std::rotate(varied->begin(), varied->begin() + last, varied->begin() + last + 1);
  for (size_t i = 0; i < sizes.size() && count < most; ++i) {
    auto outcome = by->Simulate(plan, StepTerms::OneGpu(gpu, sizes[i]), stop);
    if (!outcome.ok()) return outcome.status();
    if (outcome->fits) continue;
    unfit = *std::move(outcome);
    return kDoesNotFitSizes;
  }
  return count;
}

absl::StatusOr<std::vector<ControlEdge>> BudgetRequest::ChainOf(const SwapPlan& plan, GpuIndex gpu,
                                                                int64_t budget, const Needs& needs,
                                                                absl::Span<const int32_t> ranks) {
  StepTerms terms = StepTerms::OneGpu(gpu, budget);
  terms.record_operations = true;
  auto step = simulator.Simulate(plan, terms, stop);
  if (!step.ok()) return step.status();
  return ChainOf(plan, *step, gpu, needs, ranks);
}

absl::StatusOr<std::vector<ControlEdge>> BudgetRequest::ChainOf(
    const SwapPlan& plan, const StepResult& step, GpuIndex gpu, const Needs& needs,
    absl::Span<const int32_t> ranks) const {
  auto chain = ChainInOrder(facts, needs, ranks, step, gpu, stop);
  if (!chain.ok()) return chain;
  absl::flat_hash_set<std::pair<NodeId, NodeId>> has;
  for (const ControlEdge& edge : plan.controls) has.emplace(edge.from, edge.to);
  std::vector<ControlEdge> found;
  for (const ControlEdge& edge : *chain) {
    if (!has.contains({edge.from, edge.to})) found.push_back(edge);
  }
  return found;
}

int BudgetRequest::max_simulations() const {
  const int simulations = SimulationsOf(effort);
  if (num_planned_gpus < 2) return simulations;
  const int64_t parts = kPartsPerGpu * static_cast<int64_t>(num_planned_gpus);
  return static_cast<int>(std::max<int64_t>(
      kLowSimulations, std::min<int64_t>(simulations, simulator.simulations_left() / parts)));
}

int64_t BudgetRequest::FastEnough() const {
  const int64_t time = MaxStepTime();
  return time - time / kFastEnoughPart;
}

int64_t ShareOf(int64_t bytes, double share) {
  return share < 1 ? static_cast<int64_t>(share * static_cast<double>(bytes)) : bytes;
}

}  // namespace spillway::core
