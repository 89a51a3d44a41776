#include "rewrite_core/strategy/level/level_strategy.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/strategy/common/counted_simulator.h"
#include "rewrite_core/strategy/common/device_fit.h"
#include "rewrite_core/strategy/common/gpu_budgets.h"
#include "rewrite_core/strategy/common/search_budget.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"
#include "rewrite_core/strategy/level/level_candidates.h"
#include "rewrite_core/strategy/level/level_filters.h"
#include "rewrite_core/strategy/level/level_order.h"
#include "rewrite_core/strategy/level/level_pacing.h"
#include "rewrite_core/strategy/level/level_parameters.h"
#include "rewrite_core/strategy/level/level_planner.h"
#include "rewrite_core/strategy/level/level_tuning.h"
#include "rewrite_core/strategy/level/serialization.h"

namespace spillway::core {
namespace {

// Counts data edges as TFLMS v2 does: distinct pairs of producer and consumer.
absl::StatusOr<int64_t> CountEdges(const Graph& graph, const StopToken& stop) {
  int64_t count = 0;
  std::vector<NodeId> consumers;
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    consumers.clear();
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      if (readers[i].port != kControl) consumers.push_back(readers[i].node);
    }
    if (!PolledSort(consumers.begin(), consumers.end(), std::less<>(), &poll)) {
      return stop.status("strategy");
    }
    count += std::unique(consumers.begin(), consumers.end()) - consumers.begin();
  }
  return count;
}

class Strategy {
 public:
  // `paces`: whether plans get order edges and gates. `budget`: for the whole request.
  Strategy(const StrategyInput& input, bool paces, SearchBudget* budget)
      : facts_(input.facts),
        graph_(input.facts.graph()),
        eligibility_(input.eligibility),
        options_(input.options),
        parameters_(input.options.level()),
        stop_(input.stop),
        paces_(paces),
        budget_(budget),
        simulator_(input.simulator, input.facts.graph().num_nodes(), budget,
                   "name some of the GPUs with devices, give swapout_threshold, swapin_ahead and "
                   "swapin_groupby, or raise the limit"),
        report_(*result_.report.mutable_level()) {}

  absl::StatusOr<StrategyResult> Run() {
    if (parameters_.is_auto()) {
      absl::Status s =
          CheckKnownBatch(facts_, ", or set swapout_threshold, swapin_ahead and swapin_groupby");
      if (!s.ok()) return s;
    } else if (paces_) {
      if (absl::Status s = CheckKnownBatch(facts_, ", or leave out pace"); !s.ok()) return s;
    }
    auto filters = LevelFilters::Create(facts_, options_.level(), stop_);
    if (!filters.ok()) return filters.status();
    auto levels = LevelOrder::Build(graph_, facts_.topology(), facts_.control_flow(), {}, stop_);
    if (!levels.ok()) return levels.status();
    const v1::DecisionDetail detail = options_.decision_detail();
    auto candidates = Find(*filters, *levels, detail);
    if (!candidates.ok()) return candidates.status();
    result_.plan.cpu_device = options_.cpu_device();
    if (absl::Status s = ReportGraph(*filters, *levels); !s.ok()) return s;

    const std::vector<WantedGpu> gpus = FindWantedGpus(facts_, eligibility_);
    if (gpus.size() == 1 && gpus[0].is_many && (parameters_.is_auto() || Serializes() || paces_)) {
      return TooManyGpusError();
    }
    if (paces_) {
      if (absl::Status s = FindPacing(gpus); !s.ok()) return s;
    }
    for (size_t attempt = 0;; ++attempt) {
      share_ = kBudgetShares[attempt];
      result_.plan.controls = order_edges();
      for (const WantedGpu& gpu : gpus) {
        if (absl::Status s = PlanGpu(gpu, *filters, *levels, *candidates); !s.ok()) return s;
      }
      auto fits = FitsTogether(gpus.size());
      if (!fits.ok()) return fits.status();
      if (*fits) break;
      if (attempt + 1 == std::size(kBudgetShares)) return FitsApartAlone();
      StartAgain();
    }
    if (!SortSwaps(&result_.plan.swaps, stop_)) return stop_.status("strategy");
    if (detail != v1::DECISION_DETAIL_NONE) Decide(candidates->decisions());
    if (result_.plan.empty()) result_.why_nothing = WhyNothing();
    return std::move(result_);
  }

 private:
  bool Serializes() const {
    return !options_.level().serialization().empty() ||
           options_.level().serialization_by_size() > 0;
  }

  const std::vector<ControlEdge>& order_edges() const {
    static const auto* const kNone = new std::vector<ControlEdge>();
    return pacing_ == nullptr ? *kNone : pacing_->order_edges();
  }

  // Computes the pacing for the GPUs that need swapping; the others are planned without it.
  absl::Status FindPacing(const std::vector<WantedGpu>& gpus) {
    SwapPlan base;
    base.cpu_device = result_.plan.cpu_device;
    std::vector<GpuIndex> lacking;
    for (const WantedGpu& gpu : gpus) {
      if (parameters_.is_auto()) {
        const StepTerms terms = StepTerms::OneGpu(gpu.index, facts_.BudgetOf(gpu.index));
        auto outcome = simulator_.Simulate(base, terms, stop_);
        if (!outcome.ok()) return outcome.status();
        if (outcome->fits) continue;
      }
      lacking.push_back(gpu.index);
    }
    if (lacking.empty()) return absl::OkStatus();
    auto pacing = LevelPacing::Create(
        facts_, base, lacking,
        Serializes() ? LevelPacing::Serialization::kOn : LevelPacing::Serialization::kOff,
        &simulator_, stop_);
    if (!pacing.ok()) return pacing.status();
    pacing_ = *std::move(pacing);
    report_.set_paced(true);
    return absl::OkStatus();
  }

  // Each GPU is tuned while the others have unlimited memory. Together they may wait for each
  // other, and hold memory for longer.
  absl::StatusOr<bool> FitsTogether(size_t num_gpus) {
    if (!parameters_.is_auto() || num_gpus < 2 || num_gpus < facts_.placement().devices().size() ||
        result_.plan.empty()) {
      return true;
    }
    return SimulateTogether(result_.plan, facts_, &simulator_, stop_, &together_);
  }

  // Discards the results of the last attempt.
  void StartAgain() {
    result_.plan.swaps.clear();
    result_.plan.controls.clear();
    result_.report.clear_fits();
    report_.clear_devices();
    report_.clear_serialized_level_count();
    report_.clear_serialization_edge_count();
    idle_devices_.clear();
  }

  absl::Status FitsApartAlone() {
    return NotTogetherError(together_, unswapped_peak_bytes_, facts_, &simulator_, stop_);
  }

  std::string WhyNothing() const {
    if (report_.devices().empty()) return "no node runs on a GPU: there is nothing to swap";
    const auto& fits = result_.report.fits();
    const bool are_tuned = fits.size() == report_.devices_size();
    const std::string text = are_tuned ? NotNeededText(fits, facts_) : "";
    return text.empty() ? "no tensor qualifies: the decisions say why" : text;
  }

  static std::pair<NodeId, int32_t> Key(Tensor tensor) { return {tensor.node, tensor.port}; }

  absl::StatusOr<LevelCandidates> Find(const LevelFilters& filters, const LevelOrder& levels,
                                       v1::DecisionDetail detail) const {
    // At a distance of 1 there is no time between producer and consumer.
    const int32_t least = std::max(parameters_.setting.threshold, 1);
    return LevelCandidates::Find(facts_, eligibility_, filters, levels, least, detail, stop_);
  }

  absl::Status ReportGraph(const LevelFilters& filters, const LevelOrder& levels) {
    v1::LevelReport& report = report_;
    report.set_level_count(levels.num_levels());
    int64_t unleveled = 0, inactive = 0;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      unleveled += levels.level(id) == kNoLevel;
      inactive += filters.is_inactive(id);
    }
    report.set_unleveled_op_count(unleveled);
    report.set_inactive_op_count(inactive);
    auto edges = CountEdges(graph_, stop_);
    if (!edges.ok()) return edges.status();
    report.set_edge_count(*edges);
    return absl::OkStatus();
  }

  absl::Status PlanGpu(const WantedGpu& gpu, const LevelFilters& filters, const LevelOrder& levels,
                       const LevelCandidates& candidates) {
    auto serialization = SerializeLevels(facts_, options_, filters, levels, gpu.devices, stop_);
    if (!serialization.ok()) return serialization.status();
    std::vector<ControlEdge>& added = serialization->edges;
    result_.plan.controls.insert(result_.plan.controls.end(), added.begin(), added.end());
    v1::LevelReport& report = report_;
    report.set_serialized_level_count(report.serialized_level_count() + serialization->level_count);
    report.set_serialization_edge_count(report.serialization_edge_count() +
                                        static_cast<int64_t>(added.size()));
    added.insert(added.end(), order_edges().begin(), order_edges().end());
    if (added.empty()) return PlanSwaps(gpu, {}, filters, levels, candidates);
    auto rebuilt =
        LevelOrder::Build(graph_, facts_.topology(), facts_.control_flow(), added, stop_);
    if (!rebuilt.ok()) return rebuilt.status();
    report.set_level_count(std::max(report.level_count(), rebuilt->num_levels()));
    auto found = Find(filters, *rebuilt, v1::DECISION_DETAIL_NONE);
    if (!found.ok()) return found.status();
    return PlanSwaps(gpu, std::move(added), filters, *rebuilt, *found);
  }

  absl::Status PlanSwaps(const WantedGpu& gpu, std::vector<ControlEdge> controls,
                         const LevelFilters& filters, const LevelOrder& levels,
                         const LevelCandidates& candidates) {
    LevelPlanner planner(facts_, filters, levels, candidates, gpu, budget_, pacing_.get());
    v1::LevelDevice& device = *report_.add_devices();
    device.set_device(gpu.name);
    LevelSetting setting = parameters_.setting;
    std::vector<PlannedSwap> swaps;
    bool not_needed = false;
    if (parameters_.is_auto()) {
      SwapPlan base;
      base.controls = controls;
      base.cpu_device = result_.plan.cpu_device;
      const int64_t whole = facts_.BudgetOf(gpu.index);
      const bool is_retry = share_ < 1;
      const int64_t usable =
          is_retry ? static_cast<int64_t>(share_ * static_cast<double>(whole)) : whole;
      auto tuned =
          TuneLevel(setting, base, gpu.index, usable, facts_, &planner, &simulator_, stop_);
      // It fits the whole budget, which the caller specified.
      if (is_retry && GetErrorReason(tuned.status()) == v1::ERROR_REASON_DOES_NOT_FIT) {
        return FitsApartAlone();
      }
      if (!tuned.ok()) return tuned.status();
      setting = tuned->setting;
      swaps = std::move(tuned->swaps);
      *device.mutable_tuning() = std::move(tuned->report);
      tuned->fit.set_budget_bytes(whole);
      not_needed = tuned->fit.not_needed();
      if (!order_edges().empty()) ReportUnswapped(gpu.index, &tuned->fit);
      unswapped_peak_bytes_ = std::max(unswapped_peak_bytes_, tuned->fit.unswapped_peak_bytes());
      *result_.report.add_fits() = std::move(tuned->fit);
    } else {
      auto planned = planner.Plan(setting);
      if (!planned.ok()) return planned.status();
      swaps = *std::move(planned);
    }
    if (!not_needed) {
      ReportSetting(setting, &device);
    } else {
      for (DeviceId id(0); id < graph_.num_devices(); ++id) {
        if (gpu.devices[id]) idle_devices_.insert(id);
      }
    }
    std::move(swaps.begin(), swaps.end(), std::back_inserter(result_.plan.swaps));
    return absl::OkStatus();
  }

  // Restores the figures of the unswapped step: the tuner saw the one with the order edges.
  void ReportUnswapped(GpuIndex gpu, v1::DeviceFit* fit) const {
    const StepResult& unswapped = pacing_->unswapped();
    fit->set_unswapped_peak_bytes(unswapped.peak_bytes(gpu));
    fit->set_full_speed_step_time_ns(unswapped.step_time_ns());
    if (pacing_->Paces(gpu)) fit->set_not_needed(false);  // The order edges are needed.
  }

  // Sets the verdicts on all tensors, now that the settings are known.
  void Decide(const std::vector<TensorDecision>& found) {
    result_.decisions = found;
    size_t next = 0;
    const std::vector<PlannedSwap>& swaps = result_.plan.swaps;
    for (TensorDecision& decision : result_.decisions) {
      while (next < swaps.size() && Key(swaps[next].tensor) < Key(decision.tensor)) ++next;
      if (next < swaps.size() && Key(swaps[next].tensor) == Key(decision.tensor)) {
        decision.reason = v1::REASON_SWAPPED;
      } else if (decision.reason == v1::REASON_SWAPPED) {
        decision.reason = idle_devices_.count(graph_.device_id(decision.tensor.node)) > 0
                              ? v1::REASON_NOT_NEEDED
                              : v1::REASON_NO_LATE_CONSUMER;
      }
    }
  }

  const StepFacts& facts_;
  const Graph& graph_;
  const Eligibility& eligibility_;
  const v1::RewriteOptions& options_;
  const LevelParameters parameters_;
  const StopToken& stop_;
  const bool paces_;
  SearchBudget* const budget_;  // For all GPUs.
  CountedSimulator simulator_;
  std::unique_ptr<const LevelPacing> pacing_;  // Null without pacing.
  double share_ = 1;                           // Of the budget.
  int64_t unswapped_peak_bytes_ = 0;           // The highest of a GPU.
  FitFailure together_;                        // Why the last plans do not fit together.
  std::set<DeviceId> idle_devices_;            // Those of GPUs that need no swapping.
  StrategyResult result_;
  v1::LevelReport& report_;  // In result_.
};

// Whether the steps of the tuned result `a` are shorter than those of `b`.
bool IsFaster(const v1::RewriteReport& a, const v1::RewriteReport& b) {
  const auto times = [](const v1::RewriteReport& report) {
    std::pair<int64_t, int64_t> most = {0, 0};
    for (const v1::DeviceFit& fit : report.fits()) {
      most.first = std::max(most.first, fit.step_time_ns());
      most.second = std::max(most.second, fit.synchronous_step_time_ns());
    }
    return most;
  };
  return times(a) < times(b);
}

bool NeedsSwaps(const v1::RewriteReport& report) {
  return std::any_of(report.fits().begin(), report.fits().end(),
                     [](const v1::DeviceFit& fit) { return !fit.not_needed(); });
}

}  // namespace

absl::Status CheckLevelStrategy(const v1::RewriteOptions& options, const StopToken&) {
  if (absl::Status s = CheckLevelOptions(options.level()); !s.ok()) return s;
  if (absl::Status s = CheckLevelFilters(options.level()); !s.ok()) return s;
  return CheckSerialization(options.level());
}

bool LevelNeedsSimulator(const v1::RewriteOptions& options) {
  return LevelParameters(options.level()).is_auto() || options.level().pace();
}

absl::StatusOr<StrategyResult> PlanLevel(const StrategyInput& input) {
  SearchBudget budget(input.limits.max_search_steps(), input.stop);
  const bool paces = input.options.level().pace();
  if (!paces || !LevelParameters(input.options.level()).is_auto()) {
    return Strategy(input, paces, &budget).Run();
  }
  const auto does_not_fit = [](const absl::StatusOr<StrategyResult>& result) {
    return GetErrorReason(result.status()) == v1::ERROR_REASON_DOES_NOT_FIT;
  };
  auto plain = Strategy(input, /*paces=*/false, &budget).Run();
  if (plain.ok() ? !NeedsSwaps(plain->report) : !does_not_fit(plain)) return plain;
  auto paced = Strategy(input, /*paces=*/true, &budget).Run();
  if (!paced.ok()) return does_not_fit(paced) ? std::move(plain) : std::move(paced);
  return plain.ok() && !IsFaster(paced->report, plain->report) ? std::move(plain)
                                                               : std::move(paced);
}

}  // namespace spillway::core
