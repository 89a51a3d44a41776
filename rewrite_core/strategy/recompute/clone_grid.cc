#include "rewrite_core/strategy/recompute/clone_grid.h"

#include <algorithm>
#include <utility>

#include "rewrite_core/plan/clone_needs.h"
#include "rewrite_core/strategy/recompute/clone_planner.h"
#include "rewrite_core/strategy/recompute/postpone.h"

namespace spillway::core {
namespace {

// Shares of the budget. Placed memory is in pieces, and a step launched ahead holds some buffers
// for longer than a sweep counts, so smaller targets are also tried.
constexpr double kShares[] = {1.0, 0.98, 0.96, 0.93, 0.9, 0.86, 0.82, 0.77, 0.7};
// Powers of the time until the next use. (On networks of several kinds each is the better one for
// some.)
constexpr double kTimePowers[] = {1.0, 0.3};
constexpr double kFinePowers[] = {0.7, 0.5, 0.15, 0.0};

}  // namespace

absl::StatusOr<CloneGrid> CloneGrid::Create(const StepFacts& facts, const OrderedStep& ordered,
                                            const Needs& needs, const std::vector<Gpu>& gpus,
                                            const std::vector<RecomputeTerms>& terms,
                                            const StopToken& stop) {
  if (absl::Status s = facts.Compute({Fact::kControlFlow, Fact::kBackwardPart}, stop); !s.ok())
    return s;
  CloneGrid grid(facts, ordered, needs, stop);
  grid.num_terms_ = terms.size();
  auto rules = CloneRules::Find(facts, stop);
  if (!rules.ok()) return rules.status();
  grid.rules_ = std::make_unique<CloneRules>(*std::move(rules));
  for (const Gpu& gpu : gpus) {
    auto order = StepOrder::Create(facts, gpu.index, ordered.step, stop);
    if (!order.ok()) return order.status();
    auto on = std::make_unique<OnGpu>(
        OnGpu{gpu, ordered.step.peak_bytes(gpu.index), *std::move(order), {}});
    for (const RecomputeTerms& each : terms) {
      auto step = RecomputeStep::Create(facts, on->order, *grid.rules_, each, stop);
      if (!step.ok()) return step.status();
      on->steps.push_back(std::make_unique<RecomputeStep>(*std::move(step)));
    }
    grid.gpus_.push_back(std::move(on));
  }
  return grid;
}

absl::Status CloneGrid::Add(const Point& point, std::vector<CloneSweeps>* found) const {
  for (size_t terms = 0; terms < num_terms_; ++terms) {
    if (absl::Status s = Add(point, terms, found); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CloneGrid::Add(const Point& point, size_t of_terms,
                            std::vector<CloneSweeps>* found) const {
  CloneSweeps sweeps;
  sweeps.terms = of_terms;
  for (const std::unique_ptr<OnGpu>& on : gpus_) {
    SweepTerms terms;
    const double budget = static_cast<double>(on->gpu.budget_bytes);
    const double beyond = std::max(0.0, static_cast<double>(on->peak_bytes) - budget);
    terms.target_bytes = static_cast<int64_t>(point.share * budget + point.part * beyond);
    if (point.is_placed) terms.region_bytes = on->gpu.budget_bytes;
    terms.time_power = point.time_power;
    auto sweep = SweepStep(*on->steps[of_terms], terms, *stop_);
    if (!sweep.ok()) return sweep.status();
    if (!sweep->fits) return absl::OkStatus();
    sweeps.added_ns = std::max(sweeps.added_ns, sweep->added_ns);
    sweeps.by_gpu.push_back(*std::move(sweep));
  }
  const bool is_known =
      std::any_of(found->begin(), found->end(), [&sweeps](const CloneSweeps& known) {
        return known.added_ns == sweeps.added_ns &&
               std::equal(known.by_gpu.begin(), known.by_gpu.end(), sweeps.by_gpu.begin(),
                          [](const Sweep& a, const Sweep& b) {
                            return a.clones.size() == b.clones.size() &&
                                   a.reads.size() == b.reads.size();
                          });
      });
  if (!is_known) found->push_back(std::move(sweeps));
  return absl::OkStatus();
}

absl::Status CloneGrid::AddWithin(Fineness fineness, std::vector<CloneSweeps>* known) const {
  absl::Span<const double> powers = kTimePowers;
  if (fineness == Fineness::kFine) powers = kFinePowers;
  for (const double share : kShares) {
    for (const double power : powers) {
      for (const bool is_placed : {false, true}) {
        if (absl::Status s = Add({share, 0, power, is_placed}, known); !s.ok()) return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CloneSweeps>> CloneGrid::At(const Point& point) const {
  std::vector<CloneSweeps> found;
  if (absl::Status s = Add(point, &found); !s.ok()) return s;
  return found;
}

absl::StatusOr<std::optional<CloneGrid::Plan>> CloneGrid::PlanOf(const CloneSweeps& sweeps) const {
  Plan all;
  for (size_t i = 0; i < gpus_.size(); ++i) {
    auto plan = PlanClones(*gpus_[i]->steps[sweeps.terms], sweeps.by_gpu[i], *needs_,
                           ordered_->ranks, *stop_);
    if (!plan.ok()) return plan.status();
    if (plan->clones.empty() && !sweeps.by_gpu[i].clones.empty()) return std::nullopt;
    const auto first = static_cast<int32_t>(all.clones.clones.size());
    for (PlannedClone& clone : plan->clones) {
      for (PlannedClone::Input& input : clone.inputs) {
        input.from = CloneIndex(input.from.value() + first);
      }
      all.clones.clones.push_back(std::move(clone));
    }
  }
  all.controls = ordered_->base.controls;
  absl::Status status =
      PostponeOriginals(*facts_, *needs_, ordered_->ranks, &all.clones, &all.controls, *stop_);
  if (!status.ok()) return status;
  auto needed = FindNeeded(*facts_, all.clones, *stop_);
  if (!needed.ok()) return needed.status();
  // Clones on one GPU may have taken all readers of a trigger on another one.
  if (FindExtraWait(facts_->graph(), all.clones, *needed).node != kNoNode) return std::nullopt;
  return all;
}

}  // namespace spillway::core
