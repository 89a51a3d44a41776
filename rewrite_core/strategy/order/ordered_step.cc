#include "rewrite_core/strategy/order/ordered_step.h"

#include <utility>

#include "rewrite_core/strategy/order/order_edges.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {
namespace {

absl::StatusOr<std::vector<ControlEdge>> EdgesOf(const StepFacts& facts,
                                                 const StepResult& unswapped,
                                                 const std::vector<GpuIndex>& gpus,
                                                 int64_t least_part, const StopToken& stop) {
  std::vector<ControlEdge> all;
  for (GpuIndex gpu : gpus) {
    auto order = StepOrder::Create(facts, gpu, unswapped, stop);
    if (!order.ok()) return order.status();
    auto edges = FindOrderEdges(facts, *order, unswapped.peak_bytes(gpu) / least_part, stop);
    if (!edges.ok()) return edges.status();
    all.insert(all.end(), edges->begin(), edges->end());
  }
  return all;
}

double PeakOf(const StepResult& step, const std::vector<GpuIndex>& gpus) {
  double bytes = 0;
  for (GpuIndex gpu : gpus) bytes += static_cast<double>(step.peak_bytes(gpu));
  return bytes;
}

}  // namespace

absl::StatusOr<OrderedStep> OrderedStep::Create(const StepFacts& facts, const SwapPlan& base,
                                                const StepResult& unswapped,
                                                const std::vector<GpuIndex>& gpus,
                                                absl::Span<const OrderEdgeTerms> terms,
                                                int64_t most_ns, PlanSimulator* simulator,
                                                const StopToken& stop) {
  OrderedStep result{base, unswapped, {}};
  size_t num_edges = 0;
  for (const OrderEdgeTerms& of : terms) {
    auto edges = EdgesOf(facts, unswapped, gpus, of.least_part, stop);
    if (!edges.ok()) return edges.status();
    if (edges->size() <= num_edges) continue;
    SwapPlan plan = base;
    plan.controls.insert(plan.controls.end(), edges->begin(), edges->end());
    if (!base.controls.empty()) {
      // Together, they may close a cycle.
      auto ranks = RankByLaunch(facts, unswapped, plan.controls, stop);
      if (!ranks.ok()) return ranks.status();
      if (ranks->empty()) continue;
    }
    StepTerms unlimited;
    unlimited.record_operations = true;
    auto step = simulator->Simulate(plan, unlimited, stop);
    if (!step.ok()) return step.status();
    if (PeakOf(*step, gpus) >= (1 - of.gain) * PeakOf(result.step, gpus)) continue;
    if (step->step_time_ns() > most_ns) continue;
    auto ranks = RankByLaunch(facts, *step, plan.controls, stop);
    if (!ranks.ok()) return ranks.status();
    if (ranks->empty()) continue;  // A cycle among nodes that lead to a fed one.
    num_edges = edges->size();
    result = {std::move(plan), *std::move(step), *std::move(ranks)};
  }
  if (num_edges > 0) return result;
  auto ranks = RankByLaunch(facts, unswapped, base.controls, stop);
  if (!ranks.ok()) return ranks.status();
  result.ranks = *std::move(ranks);
  return result;
}

}  // namespace spillway::core
