#include "rewrite_core/strategy/budget/ordered_step.h"

#include <utility>

#include "rewrite_core/strategy/order/launch_ranks.h"
#include "rewrite_core/strategy/order/order_edges.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {
namespace {

// Outputs between 1/kMinOfMany and 1/kMinOrderedPart of the peak are worth an order edge if
// edges for all of them take more than kManyGain off the remaining peak.
constexpr int64_t kMinOfMany = 16384;
constexpr double kManyGain = 0.03;

}  // namespace

OrderedStep::OrderedStep(BudgetRequest* request) : request_(*request) {
  base_.cpu_device = request_.options.cpu_device();
}

absl::Status OrderedStep::AddEdges(const std::vector<GpuIndex>& gpus) {
  step_ = request_.unswapped;
  if (absl::Status s = AddEdges(gpus, kMinOrderedPart, /*gain=*/0); !s.ok()) return s;
  if (absl::Status s = AddEdges(gpus, kMinOfMany, kManyGain); !s.ok()) return s;
  if (!base_.controls.empty()) return absl::OkStatus();
  auto ranks = RankByLaunch(request_.facts, step_, {}, request_.stop);
  if (!ranks.ok()) return ranks.status();
  ranks_ = *std::move(ranks);
  return absl::OkStatus();
}

// Adds edges for outputs of at least 1/`least_part` of the peak, if they take more than `gain` off
// the remaining peak.
absl::Status OrderedStep::AddEdges(const std::vector<GpuIndex>& gpus, int64_t least_part,
                                   double gain) {
  const StepFacts& facts = request_.facts;
  const StepResult& unswapped = request_.unswapped;
  const StopToken& stop = request_.stop;
  SwapPlan plan;
  plan.cpu_device = base_.cpu_device;
  for (GpuIndex gpu : gpus) {
    auto order = StepOrder::Create(facts, gpu, unswapped, stop);
    if (!order.ok()) return order.status();
    auto edges = FindOrderEdges(facts, *order, unswapped.peak_bytes(gpu) / least_part, stop);
    if (!edges.ok()) return edges.status();
    plan.controls.insert(plan.controls.end(), edges->begin(), edges->end());
  }
  if (plan.controls.size() <= base_.controls.size()) return absl::OkStatus();
  StepTerms terms;
  terms.record_operations = true;
  auto ordered = request_.simulator.Simulate(plan, terms, stop);
  if (!ordered.ok()) return ordered.status();
  const auto peak = [&gpus](const StepResult& step) {
    double bytes = 0;
    for (GpuIndex gpu : gpus) bytes += static_cast<double>(step.peak_bytes(gpu));
    return bytes;
  };
  if (peak(*ordered) >= (1 - gain) * peak(step_)) return absl::OkStatus();
  if (request_.IsTooSlow(ordered->step_time_ns())) return absl::OkStatus();
  auto ranks = RankByLaunch(facts, *ordered, plan.controls, stop);
  if (!ranks.ok()) return ranks.status();
  if (ranks->empty()) return absl::OkStatus();  // A cycle among nodes that lead to a fed one.
  step_ = *std::move(ordered);
  base_ = std::move(plan);
  ranks_ = *std::move(ranks);
  return absl::OkStatus();
}

absl::StatusOr<DeviceBounds> OrderedStep::BoundsOf(GpuIndex gpu) {
  if (bounds_.empty()) {  // Computed for all GPUs, once.
    auto bounds = request_.simulator.LowerBounds(step_.launch_ahead.order, request_.stop);
    if (!bounds.ok()) return bounds.status();
    bounds_ = *std::move(bounds);
  }
  return bounds_[gpu];
}

}  // namespace spillway::core
