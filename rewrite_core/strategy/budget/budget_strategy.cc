#include "rewrite_core/strategy/budget/budget_strategy.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/budget_request.h"
#include "rewrite_core/strategy/budget/gpu_plans.h"
#include "rewrite_core/strategy/budget/objective.h"
#include "rewrite_core/strategy/common/device_fit.h"
#include "rewrite_core/strategy/common/gpu_budgets.h"
#include "rewrite_core/strategy/common/op_filter.h"
#include "rewrite_core/strategy/common/wanted_gpus.h"

namespace spillway::core {
namespace {

// A graph that needs at most 1/kFarFromBudget of the budget is assumed to fit in any order.
constexpr int64_t kFarFromBudget = 2;

std::pair<NodeId, int32_t> KeyOf(Tensor tensor) { return {tensor.node, tensor.port}; }

// Returns the verdict on every output with a data reader, in order of nodes. `has_gap`: buffers
// with a gap; `idle`: devices where no swapping is needed. Errors: those of `stop`.
absl::StatusOr<std::vector<TensorDecision>> DecideTensors(
    const StepFacts& facts, const Eligibility& eligibility, const SwapFilters& filters,
    const SwapPlan& plan, const std::set<BufferIndex>& has_gap, const std::set<DeviceId>& idle,
    const StopToken& stop) {
  const Graph& graph = facts.graph();
  std::set<std::pair<NodeId, int32_t>> swapped;
  for (const PlannedSwap& swap : plan.swaps) swapped.insert(KeyOf(swap.tensor));
  const auto reason_for = [&](Tensor tensor) {
    if (swapped.count(KeyOf(tensor)) > 0) return v1::REASON_SWAPPED;
    const v1::Reason reason = eligibility.ReasonFor(tensor);
    if (reason != v1::REASON_SWAPPED) return reason;
    const v1::Reason filtered = filters.outputs.ReasonFor(tensor.node);
    if (filtered != v1::REASON_SWAPPED) return filtered;
    if (!facts.active_nodes().flags[tensor.node]) return v1::REASON_INACTIVE;
    if (idle.count(graph.device_id(tensor.node)) > 0) return v1::REASON_NOT_NEEDED;
    return has_gap.count(facts.buffers().buffer_of(tensor)) > 0 ? v1::REASON_NOT_CHOSEN
                                                                : v1::REASON_NO_LATE_CONSUMER;
  };
  std::vector<TensorDecision> decisions;
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    // In order of ports, control edges first.
    const Graph::Readers readers = graph.readers(id);
    int32_t last = kControl;
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("strategy");
      const Tensor tensor{id, readers[i].port};
      if (tensor.port == kControl || tensor.port == last) continue;
      last = tensor.port;
      decisions.push_back({tensor, reason_for(tensor), facts.shapes().size_bytes(tensor),
                           facts.shapes().why_unknown(tensor)});
    }
  }
  return decisions;
}

// The warning MAY_RUN_OUT: `what` ("the plan for GPU ...") does not fit in `unfit` variations.
std::string MayRunOutText(absl::string_view what, int unfit) {
  return absl::StrCat(
      "TensorFlow may run out of memory: ", what, " does not fit in ", unfit, " of ",
      kNumVariations,
      " steps that were simulated with other orders of ready operations, other copy times, and "
      "variables where their initializers may leave them; plan for less of the memory "
      "(allocator_reserve), or train with TF_GPU_ALLOCATOR=cuda_malloc_async, which may leave "
      "memory in fewer pieces");
}

class BudgetRun {
 public:
  explicit BudgetRun(const StrategyInput& input)
      : request_(input), facts_(input.facts), report_(*result_.report.mutable_budget()) {}

  absl::StatusOr<StrategyResult> Run() {
    const Objective& objective = request_.objective;
    report_.set_planning_effort(request_.effort);
    report_.set_objective(objective.kind());
    if (objective.max_slowdown()) report_.set_max_slowdown(*objective.max_slowdown());
    result_.plan.cpu_device = request_.options.cpu_device();
    if (absl::Status s = CheckKnownBatch(facts_, ""); !s.ok()) return s;
    if (absl::Status s = MakeFilters(); !s.ok()) return s;
    gpus_ = FindWantedGpus(facts_, request_.eligibility);
    if (gpus_.size() == 1 && gpus_[0].is_many) return TooManyGpusError();
    if (absl::Status s = SimulateUnswapped(); !s.ok()) return s;
    if (!lacking_.empty()) {
      if (absl::Status s = Plan(); !s.ok()) return s;
    }
    if (request_.options.decision_detail() != v1::DECISION_DETAIL_NONE) {
      auto decisions = DecideTensors(facts_, request_.eligibility, *request_.filters, result_.plan,
                                     has_gap_, idle_, request_.stop);
      if (!decisions.ok()) return decisions.status();
      result_.decisions = *std::move(decisions);
    }
    for (v1::DeviceFit& fit : fits_) *result_.report.add_fits() = std::move(fit);
    if (result_.plan.empty() && result_.why_nothing.empty()) {
      result_.why_nothing = gpus_.empty() ? "no node runs on a GPU: there is nothing to swap"
                                          : NotNeededText(result_.report.fits(), facts_);
    }
    return std::move(result_);
  }

 private:
  absl::Status MakeFilters() {
    auto filters = SwapFilters::Create(facts_.graph(), request_.options.budget(), request_.stop);
    if (!filters.ok()) return filters.status();
    for (const OpFilter* filter : {&filters->outputs, &filters->inputs}) {
      if (absl::Status s = filter->CheckLeft(request_.stop); !s.ok()) return s;
    }
    request_.filters.emplace(*std::move(filters));
    return absl::OkStatus();
  }

  // Simulates the unswapped step, and finds the GPUs that it does not fit.
  absl::Status SimulateUnswapped() {
    StepTerms terms;
    terms.record_operations = true;
    auto unswapped = request_.simulator.Simulate(result_.plan, terms, request_.stop);
    if (!unswapped.ok()) return unswapped.status();
    request_.unswapped = *std::move(unswapped);
    for (size_t i = 0; i < gpus_.size(); ++i) {
      if (absl::Status s = SimulateUnswapped(i); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status SimulateUnswapped(size_t i) {
    const GpuIndex gpu = gpus_[i].index;
    const int64_t budget = request_.budget_bytes(gpu);
    fits_.push_back(FitOfUnswapped(request_.unswapped, gpu, budget, facts_));
    auto outcome =
        request_.simulator.Simulate(result_.plan, StepTerms::OneGpu(gpu, budget), request_.stop);
    if (!outcome.ok()) return outcome.status();
    if (!outcome->fits) {
      lacking_.push_back(i);
      return absl::OkStatus();
    }
    const v1::DeviceFit unplanned = fits_[i];
    fits_[i].set_not_needed(true);
    absl::Status s = AddPlanned(result_.plan, *outcome, gpu, facts_, &request_.simulator,
                                request_.stop, &fits_[i]);
    if (!s.ok()) return s;
    auto unfit = CountUnfitUnswapped(i);
    if (!unfit.ok()) return unfit.status();
    if (request_.objective.saves_memory() || *unfit > 0) {
      unswapped_fits_.emplace(i, Unswapped{fits_[i], *unfit});
      fits_[i] = unplanned;
      lacking_.push_back(i);
      return absl::OkStatus();
    }
    for (DeviceId id(0); id < request_.facts.graph().num_devices(); ++id) {
      if (gpus_[i].devices[id]) idle_.insert(id);
    }
    return absl::OkStatus();
  }

  // Returns in how many variations the unswapped graph, which fits, does not fit. If it is far
  // below the budget, it fits in all.
  absl::StatusOr<int> CountUnfitUnswapped(size_t i) {
    const bool is_far =
        fits_[i].need_bytes() <= request_.budget_bytes(gpus_[i].index) / kFarFromBudget;
    if (!request_.has_reserve() || request_.objective.saves_memory() || is_far) return 0;
    const GpuIndex gpu = gpus_[i].index;
    std::vector<VariedStep> steps = request_.VariedSteps(request_.budget_bytes(gpu));
    return request_.CountUnfit(result_.plan, gpu, kNumVariations, &steps);
  }

  absl::Status Plan() {
    GpuPlans plan(gpus_, lacking_, &request_, &fits_, &report_);
    const absl::Status planned = plan.Find();
    has_gap_ = plan.has_gap();
    if (MayStay() && (GetErrorReason(planned) == v1::ERROR_REASON_DOES_NOT_FIT ||
                      (planned.ok() && (plan.plan().empty() || !IsSteadier())))) {
      LeaveUnswapped();
      return absl::OkStatus();
    }
    if (!planned.ok()) return planned;
    result_.plan = plan.plan();
    for (const v1::BudgetDevice& device : report_.devices()) {
      Warn("the plan", device.device(), device.unfit_variation_count());
    }
    return planned;
  }

  // For plans made although the graph fits: whether they are for less memory, or fit in more
  // variations.
  bool IsSteadier() const {
    if (request_.objective.saves_memory()) return true;
    int unswapped = 0, planned = 0;
    for (const auto& [i, of] : unswapped_fits_) unswapped += of.unfit;
    for (const v1::BudgetDevice& device : report_.devices()) {
      planned += device.unfit_variation_count();
    }
    return planned < unswapped;
  }

  void Warn(absl::string_view what, absl::string_view device, int unfit) {
    if (unfit == 0) return;
    v1::Warning& warning = *result_.report.add_warnings();
    warning.set_code(v1::WARNING_CODE_MAY_RUN_OUT);
    const std::string subject =
        device.empty() ? std::string(what) : absl::StrCat(what, " for GPU ", Quoted(device));
    warning.set_message(MayRunOutText(subject, unfit));
  }

  // Whether the graph may stay unswapped: it fits, and was planned only for less memory or more
  // variations.
  bool MayStay() const { return !gpus_.empty() && unswapped_fits_.size() == gpus_.size(); }
  void LeaveUnswapped() {
    for (const auto& [i, of] : unswapped_fits_) fits_[i] = of.fit;
    if (!request_.objective.saves_memory()) {
      report_.clear_devices();
      for (const auto& [i, of] : unswapped_fits_) Warn("the graph", of.fit.device(), of.unfit);
      return;
    }
    result_.why_nothing = absl::StrCat(
        "the unswapped graph fits, and no plan was found with which a step takes less "
        "memory and at most ",
        request_.objective.MaxSlowdownText());
  }

  BudgetRequest request_;
  const StepFacts& facts_;
  std::vector<WantedGpu> gpus_;
  std::vector<v1::DeviceFit> fits_;  // By GPU.
  std::vector<size_t> lacking_;      // Indices into both, of the GPUs that need a plan.
  struct Unswapped {
    v1::DeviceFit fit;
    int unfit = 0;  // In how many variations it does not fit.
  };
  std::map<size_t, Unswapped> unswapped_fits_;  // Of GPUs that are planned although they fit.
  std::set<DeviceId> idle_;                     // Those of GPUs that need no plan.
  std::set<BufferIndex> has_gap_;               // Buffers with a gap.
  StrategyResult result_;
  v1::BudgetReport& report_;  // Of result_.
};

}  // namespace

absl::Status CheckBudgetStrategy(const v1::RewriteOptions& options, const StopToken&) {
  const v1::PlanningEffort effort = options.budget().planning_effort();
  if (v1::PlanningEffort_IsValid(effort)) {
    absl::Status s = CheckObjective(options.budget());
    return s.ok() ? SwapFilters::Check(options.budget()) : s;
  }
  return InvalidError(
      v1::ERROR_REASON_UNKNOWN_OPTION,
      absl::StrCat("planning_effort is ", static_cast<int>(effort),
                   ", which this server does not know; it is LOW, MEDIUM or HIGH"),
      {{"option", "planning_effort"}, {"value", absl::StrCat(static_cast<int>(effort))}});
}

absl::StatusOr<StrategyResult> PlanBudget(const StrategyInput& input) {
  return BudgetRun(input).Run();
}

}  // namespace spillway::core
