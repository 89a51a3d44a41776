#include "rewrite_core/strategy/level/level_strategy.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "rewrite_core/analysis/hardware.h"
#include "rewrite_core/analysis/placement.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/strategy/counted_simulator.h"
#include "rewrite_core/strategy/device_fit.h"
#include "rewrite_core/strategy/gpu_budgets.h"
#include "rewrite_core/strategy/level/level_candidates.h"
#include "rewrite_core/strategy/level/level_filters.h"
#include "rewrite_core/strategy/level/level_order.h"
#include "rewrite_core/strategy/level/level_parameters.h"
#include "rewrite_core/strategy/level/level_planner.h"
#include "rewrite_core/strategy/level/level_tuning.h"
#include "rewrite_core/strategy/level/serialization.h"
#include "rewrite_core/strategy/search_budget.h"
#include "rewrite_core/strategy/wanted_gpus.h"

namespace spillway::core {
namespace {

// Data edges as TFLMS v2 counts them: distinct pairs of producer and consumer.
absl::StatusOr<int64_t> CountEdges(const Graph& graph, const StopToken& stop) {
  int64_t count = 0;
  std::vector<NodeId> consumers;
  StopPoller poll(stop);
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    consumers.clear();
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      if (readers[i].port != kControl) consumers.push_back(readers[i].node);
    }
    std::sort(consumers.begin(), consumers.end());
    count += std::unique(consumers.begin(), consumers.end()) - consumers.begin();
  }
  return count;
}

class Strategy {
 public:
  explicit Strategy(const StrategyInput& input)
      : facts_(input.facts),
        graph_(input.facts.graph()),
        eligibility_(input.eligibility),
        options_(input.options),
        parameters_(input.options.level()),
        stop_(input.stop),
        budget_(input.limits.max_search_steps(), input.stop),
        simulator_(input.simulator, input.facts.graph().num_nodes(), &budget_,
                   "name some of the GPUs with devices, give swapout_threshold, swapin_ahead and "
                   "swapin_groupby, or raise the limit"),
        report_(*result_.report.mutable_level()) {}

  absl::StatusOr<StrategyResult> Run() {
    if (parameters_.is_auto()) {
      absl::Status s =
          CheckKnownBatch(facts_, ", or set swapout_threshold, swapin_ahead and swapin_groupby");
      if (!s.ok()) return s;
    }
    auto filters = LevelFilters::Create(facts_, options_.level(), stop_);
    if (!filters.ok()) return filters.status();
    auto levels = LevelOrder::Build(graph_, facts_.topology(), facts_.control_flow(), {}, stop_);
    if (!levels.ok()) return levels.status();
    const bool explain = options_.decision_detail() != v1::DECISION_DETAIL_NONE;
    auto candidates = Find(*filters, *levels, explain);
    if (!candidates.ok()) return candidates.status();
    result_.plan.cpu_device = options_.cpu_device();
    if (absl::Status s = ReportGraph(*filters, *levels); !s.ok()) return s;

    const std::vector<WantedGpu> gpus = FindWantedGpus(facts_, eligibility_);
    if (gpus.size() == 1 && gpus[0].is_many && (parameters_.is_auto() || Serializes())) {
      return TooManyGpusError();
    }
    for (size_t attempt = 0;; ++attempt) {
      share_ = kBudgetShares[attempt];
      for (const WantedGpu& gpu : gpus) {
        if (absl::Status s = PlanGpu(gpu, *filters, *levels, *candidates); !s.ok()) return s;
      }
      auto fits = FitsTogether(gpus.size());
      if (!fits.ok()) return fits.status();
      if (*fits) break;
      if (attempt + 1 == std::size(kBudgetShares)) return FitsApartAlone();
      StartAgain();
    }
    SortSwaps(&result_.plan.swaps);
    if (explain) Decide(candidates->decisions());
    if (result_.plan.empty()) result_.why_nothing = WhyNothing();
    return std::move(result_);
  }

 private:
  bool Serializes() const {
    return !options_.level().serialization().empty() ||
           options_.level().serialization_by_size() > 0;
  }

  // Each GPU is tuned while the others have memory without end. All at once they may wait for each
  // other, and hold memory for longer.
  absl::StatusOr<bool> FitsTogether(size_t num_gpus) {
    if (!parameters_.is_auto() || num_gpus < 2 || num_gpus < facts_.placement().devices().size() ||
        result_.plan.empty()) {
      return true;
    }
    return SimulateTogether(result_.plan, facts_, &simulator_, stop_, &together_);
  }

  // Without what the last attempt found.
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

  int64_t budget_bytes() const { return facts_.hardware().device_budget_bytes(); }

  std::string WhyNothing() const {
    if (report_.devices().empty()) return "no node runs on a GPU: there is nothing to swap";
    const auto& fits = result_.report.fits();
    const bool are_tuned = fits.size() == report_.devices_size();
    const std::string text = are_tuned ? NotNeededText(fits, facts_) : "";
    return text.empty() ? "no tensor qualifies: the decisions say why" : text;
  }

  static std::pair<NodeId, int32_t> Key(Tensor tensor) { return {tensor.node, tensor.port}; }

  absl::StatusOr<LevelCandidates> Find(const LevelFilters& filters, const LevelOrder& levels,
                                       bool explain) const {
    // With a distance of 1 there is no time between producer and consumer.
    const int32_t least = std::max(parameters_.setting.threshold, 1);
    return LevelCandidates::Find(facts_, eligibility_, filters, levels, least, explain, stop_);
  }

  absl::Status ReportGraph(const LevelFilters& filters, const LevelOrder& levels) {
    v1::LevelReport& report = report_;
    report.set_level_count(levels.num_levels());
    int64_t unleveled = 0, inactive = 0;
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
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
    if (serialization->edges.empty()) return PlanSwaps(gpu, {}, filters, levels, candidates);
    v1::LevelReport& report = report_;
    report.set_serialized_level_count(report.serialized_level_count() + serialization->level_count);
    report.set_serialization_edge_count(report.serialization_edge_count() +
                                        static_cast<int64_t>(serialization->edges.size()));
    auto rebuilt = LevelOrder::Build(graph_, facts_.topology(), facts_.control_flow(),
                                     serialization->edges, stop_);
    if (!rebuilt.ok()) return rebuilt.status();
    report.set_level_count(std::max(report.level_count(), rebuilt->num_levels()));
    auto found = Find(filters, *rebuilt, /*explain=*/false);
    if (!found.ok()) return found.status();
    return PlanSwaps(gpu, std::move(serialization->edges), filters, *rebuilt, *found);
  }

  absl::Status PlanSwaps(const WantedGpu& gpu, std::vector<ControlEdge> controls,
                         const LevelFilters& filters, const LevelOrder& levels,
                         const LevelCandidates& candidates) {
    LevelPlanner planner(facts_, filters, levels, candidates, gpu.devices, &budget_);
    v1::LevelDevice& device = *report_.add_devices();
    device.set_device(gpu.name);
    LevelSetting setting = parameters_.setting;
    std::vector<PlannedSwap> swaps;
    bool not_needed = false;
    if (parameters_.is_auto()) {
      SwapPlan base;
      base.controls = controls;
      base.cpu_device = result_.plan.cpu_device;
      const int64_t whole = budget_bytes();
      const bool is_retry = share_ < 1;
      const int64_t usable =
          is_retry ? static_cast<int64_t>(share_ * static_cast<double>(whole)) : whole;
      auto tuned =
          TuneLevel(setting, base, gpu.index, usable, facts_, &planner, &simulator_, stop_);
      // It fits with all of the budget, which is the one that the caller knows.
      if (is_retry && GetErrorReason(tuned.status()) == v1::ERROR_REASON_DOES_NOT_FIT) {
        return FitsApartAlone();
      }
      if (!tuned.ok()) return tuned.status();
      setting = tuned->setting;
      swaps = std::move(tuned->swaps);
      *device.mutable_tuning() = std::move(tuned->report);
      tuned->fit.set_budget_bytes(whole);
      not_needed = tuned->fit.not_needed();
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
      for (size_t i = 0; i < gpu.devices.size(); ++i) {
        if (gpu.devices[i]) idle_devices_.insert(static_cast<int32_t>(i));
      }
    }
    SwapPlan& plan = result_.plan;
    plan.controls.insert(plan.controls.end(), controls.begin(), controls.end());
    std::move(swaps.begin(), swaps.end(), std::back_inserter(plan.swaps));
    return absl::OkStatus();
  }

  // The verdicts on all tensors, now that the settings are known.
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
  SearchBudget budget_;  // Of all GPUs.
  CountedSimulator simulator_;
  double share_ = 1;                  // Of the budget.
  int64_t unswapped_peak_bytes_ = 0;  // Of the GPU that takes most as the graph came.
  FitFailure together_;               // Of the last plans that do not fit together.
  std::set<int32_t> idle_devices_;    // Device ids of GPUs that need no swapping.
  StrategyResult result_;
  v1::LevelReport& report_;  // Of result_.
};

}  // namespace

absl::Status CheckLevelStrategy(const v1::RewriteOptions& options, const StopToken&) {
  if (absl::Status s = CheckLevelOptions(options.level()); !s.ok()) return s;
  if (absl::Status s = CheckLevelFilters(options.level()); !s.ok()) return s;
  return CheckSerialization(options.level());
}

bool LevelNeedsSimulator(const v1::RewriteOptions& options) {
  return LevelParameters(options.level()).is_auto();
}

absl::StatusOr<StrategyResult> PlanLevel(const StrategyInput& input) {
  return Strategy(input).Run();
}

}  // namespace spillway::core
