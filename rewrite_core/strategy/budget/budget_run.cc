#include "rewrite_core/strategy/budget/budget_run.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/budget/objective.h"
#include "rewrite_core/strategy/common/device_fit.h"
#include "rewrite_core/strategy/common/fit_failure.h"
#include "rewrite_core/strategy/common/gpu_budgets.h"
#include "rewrite_core/strategy/common/op_filter.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {
namespace {

// A graph that needs at most 1/kFarFromBudget of the budget is assumed to fit in any order.
constexpr int64_t kFarFromBudget = 2;

using TensorSet = std::set<std::pair<NodeId, int32_t>>;

// Returns the verdict on every output with a data reader, in order of nodes. `gaps`: buffers with a
// gap; `idle`: devices that need no plan. Errors: those of `stop`.
absl::StatusOr<std::vector<TensorDecision>> DecideTensors(
    const StepFacts& facts, const Eligibility& eligibility, const SwapFilters& filters,
    const StrategyResult& result, const std::set<BufferIndex>& gaps, const std::set<DeviceId>& idle,
    const StopToken& stop) {
  const Graph& graph = facts.graph();
  TensorSet swapped, remade;
  for (const PlannedSwap& swap : result.plan.swaps) {
    swapped.emplace(swap.tensor.node, swap.tensor.port);
  }
  for (const PlannedClone& clone : result.clones.clones) {
    for (const InputPosition& consumer : clone.consumers) {
      const Tensor read = graph.inputs(consumer.node)[consumer.index];
      remade.emplace(read.node, read.port);
    }
  }
  const auto reason_for = [&](Tensor tensor) {
    if (swapped.count({tensor.node, tensor.port}) > 0) return v1::REASON_SWAPPED;
    if (remade.count({tensor.node, tensor.port}) > 0) return v1::REASON_RECOMPUTED;
    const v1::Reason reason = eligibility.ReasonFor(tensor);
    if (reason != v1::REASON_SWAPPED) return reason;
    const v1::Reason filtered = filters.outputs.ReasonFor(tensor.node);
    if (filtered != v1::REASON_SWAPPED) return filtered;
    if (!facts.active_nodes().Computes(tensor.node)) return v1::REASON_INACTIVE;
    if (idle.count(graph.device_id(tensor.node)) > 0) return v1::REASON_NOT_NEEDED;
    return gaps.count(facts.buffers().buffer_of(tensor)) > 0 ? v1::REASON_NOT_CHOSEN
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

}  // namespace

void BudgetRun::StartFrom(const SwapPlan& base, int64_t full_speed_ns, FedInputs fed_inputs) {
  request_.base = base;
  request_.fed_inputs = fed_inputs;
  request_.full_speed_ns = full_speed_ns;
  request_.is_one_of_several = true;
}

absl::Status BudgetRun::MakeFilters() {
  auto filters =
      SwapFilters::Create(request_.facts.graph(), request_.options.budget(), request_.stop);
  if (!filters.ok()) return filters.status();
  for (const OpFilter* filter : {&filters->outputs, &filters->inputs}) {
    if (absl::Status s = filter->CheckLeft(request_.stop); !s.ok()) return s;
  }
  request_.filters.emplace(*std::move(filters));
  return absl::OkStatus();
}

absl::Status BudgetRun::Simulate() {
  const Objective& objective = request_.objective;
  v1::BudgetReport& report = *result_.report.mutable_budget();
  report.set_planning_effort(request_.effort);
  report.set_objective(objective.kind());
  if (objective.max_slowdown()) report.set_max_slowdown(*objective.max_slowdown());
  result_.plan = request_.base;
  if (absl::Status s = CheckKnownBatch(request_.facts, ""); !s.ok()) return s;
  if (absl::Status s = MakeFilters(); !s.ok()) return s;
  gpus_ = FindWantedGpus(request_.facts, request_.eligibility);
  if (gpus_.size() == 1 && gpus_[0].is_many) return TooManyGpusError();
  StepTerms terms;
  terms.record_operations = true;
  auto unswapped = request_.simulator.Simulate(request_.base, terms, request_.stop);
  if (!unswapped.ok()) return unswapped.status();
  request_.unswapped = *std::move(unswapped);
  if (request_.full_speed_ns == 0) request_.full_speed_ns = request_.unswapped.step_time_ns();
  for (size_t i = 0; i < gpus_.size(); ++i) {
    if (absl::Status s = SimulateOn(i); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status BudgetRun::SimulateOn(size_t i) {
  const GpuIndex gpu = gpus_[i].index;
  const int64_t budget = request_.budget_bytes(gpu);
  fits_.push_back(FitOfUnswapped(request_.unswapped, gpu, budget, request_.facts));
  auto outcome =
      request_.simulator.Simulate(request_.base, StepTerms::OneGpu(gpu, budget), request_.stop);
  if (!outcome.ok()) return outcome.status();
  if (!outcome->fits) {
    lacking_.push_back(i);
    return absl::OkStatus();
  }
  const v1::DeviceFit unplanned = fits_[i];
  fits_[i].set_not_needed(true);
  absl::Status s = AddPlanned(request_.base, *outcome, gpu, request_.facts, &request_.simulator,
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

// Returns in how many variations the unswapped graph, which fits, does not fit, counting to
// kMaxUnfit + 1; kDoesNotFitSizes if it does not fit in all of the memory; 0 if its need is far
// below the budget.
absl::StatusOr<int> BudgetRun::CountUnfitUnswapped(size_t i) {
  const GpuIndex gpu = gpus_[i].index;
  const bool is_far = !request_.is_one_of_several &&
                      fits_[i].need_bytes() <= request_.budget_bytes(gpu) / kFarFromBudget;
  if (!request_.has_reserve() || request_.objective.saves_memory() || is_far) return 0;
  std::vector<VariedStep> steps = request_.VariedSteps(request_.budget_bytes(gpu));
  return request_.CountUnfit(request_.base, gpu, kMaxUnfit + 1, &steps,
                             {request_.facts.HardwareOf(gpu).gpu_memory_bytes});
}

int BudgetRun::unfit_variations() const {
  int unfit = 0;
  for (const auto& [i, of] : unswapped_fits_) unfit += of.unfit;
  return unfit;
}

bool BudgetRun::fits_most_variations() const {
  return std::all_of(unswapped_fits_.begin(), unswapped_fits_.end(),
                     [](const auto& of) { return of.second.unfit <= kMaxUnfit; });
}

absl::StatusOr<std::vector<ControlEdge>> BudgetRun::FindChain() {
  std::vector<ControlEdge> chain;
  auto ranks =
      RankByLaunch(request_.facts, request_.unswapped, request_.base.controls, request_.stop);
  if (!ranks.ok()) return ranks.status();
  auto needs = Needs::Find(request_.facts, request_.stop);
  if (!needs.ok()) return needs.status();
  for (const auto& [i, of] : unswapped_fits_) {
    if (of.unfit == 0) continue;
    const GpuIndex gpu = gpus_[i].index;
    auto edges = request_.ChainOf(request_.base, gpu, request_.budget_bytes(gpu), *needs, *ranks);
    if (!edges.ok()) return edges;
    chain.insert(chain.end(), edges->begin(), edges->end());
  }
  return chain;
}

absl::Status BudgetRun::KeepOrder() {
  const int unfit = unfit_variations();
  if (unfit == 0) return absl::OkStatus();
  auto chain = FindChain();
  if (!chain.ok() || chain->empty()) return chain.status();
  const int64_t time_ns = UnplannedNs();
  const auto before = std::tuple(request_.base, fits_, lacking_, unswapped_fits_, idle_);
  std::vector<ControlEdge>& controls = request_.base.controls;
  controls.insert(controls.end(), chain->begin(), chain->end());
  fits_.clear();
  lacking_.clear();
  unswapped_fits_.clear();
  for (size_t i = 0; i < gpus_.size(); ++i) {
    if (absl::Status s = SimulateOn(i); !s.ok()) return s;
  }
  const bool is_better =
      fits_unplanned() && unfit_variations() < unfit && UnplannedNs() <= MaxRobustNs(time_ns);
  if (!is_better) std::tie(request_.base, fits_, lacking_, unswapped_fits_, idle_) = before;
  result_.plan = request_.base;
  return absl::OkStatus();
}

// The time of the unplanned step, which fits.
int64_t BudgetRun::UnplannedNs() const {
  int64_t time_ns = 0;
  for (size_t i = 0; i < fits_.size(); ++i) {
    const auto planned = unswapped_fits_.find(i);
    const v1::DeviceFit& fit = planned != unswapped_fits_.end() ? planned->second.fit : fits_[i];
    time_ns = std::max(time_ns, fit.step_time_ns());
  }
  return time_ns;
}

absl::StatusOr<bool> BudgetRun::FitsElsewhere() {
  for (const WantedGpu& gpu : gpus_) {
    for (int64_t bytes : request_.OtherBudgets(gpu.index)) {
      auto outcome = request_.simulator.Simulate(request_.base, StepTerms::OneGpu(gpu.index, bytes),
                                                 request_.stop);
      if (!outcome.ok()) return outcome.status();
      if (!outcome->fits) return false;
    }
  }
  if (gpus_.size() < 2 || gpus_.size() < request_.facts.placement().devices().size()) return true;
  FitFailure failure;
  return SimulateTogether(request_.base, request_.facts, &request_.simulator, request_.stop,
                          &failure);
}

absl::Status BudgetRun::Order() {
  if (!plans_) {
    plans_.emplace(gpus_, lacking_, &request_, &fits_, result_.report.mutable_budget());
  }
  return plans_->Order();
}

int64_t BudgetRun::BoundNs() const {
  int64_t bound_ns = 0;
  for (size_t i : lacking_) {
    const DeviceBounds& bounds = plans_->bounds()[gpus_[i].index];
    if (bounds.memory_bytes > request_.budget_bytes(gpus_[i].index)) return kUnlimited;
    bound_ns = std::max(bound_ns, bounds.step_time_ns);
  }
  return bound_ns;
}

absl::Status BudgetRun::PlanSwaps(int64_t worth_ns) {
  request_.worth_ns = worth_ns;
  result_.report.clear_warnings();
  const absl::Status planned = plans_->Find();
  // Whether the graph may stay unswapped: it fits, and was planned only for less memory or more
  // variations.
  const bool may_stay =
      !gpus_.empty() && unswapped_fits_.size() == gpus_.size() && fits_most_variations();
  if (may_stay && (GetErrorReason(planned) == v1::ERROR_REASON_DOES_NOT_FIT ||
                   (planned.ok() && (plans_->plan().empty() || !IsMoreRobust())))) {
    AcceptUnplanned();
    return absl::OkStatus();
  }
  if (!planned.ok()) return planned;
  result_.plan = plans_->plan();
  int unfit = 0;
  for (const v1::BudgetDevice& device : result_.report.budget().devices()) {
    unfit = std::max(unfit, device.unfit_variation_count());
  }
  Warn(unfit);
  return absl::OkStatus();
}

// For plans made although the graph fits: whether they are for less memory, or fit in more
// variations.
bool BudgetRun::IsMoreRobust() const {
  if (request_.objective.saves_memory()) return true;
  int planned = 0;
  for (const v1::BudgetDevice& device : result_.report.budget().devices()) {
    planned += device.unfit_variation_count();
  }
  return planned < unfit_variations();
}

void BudgetRun::AcceptUnplanned() {
  int unfit = 0;
  for (const auto& [i, of] : unswapped_fits_) {
    fits_[i] = of.fit;
    unfit = std::max(unfit, of.unfit);
  }
  if (!request_.objective.saves_memory()) {
    result_.report.mutable_budget()->clear_devices();
    Warn(unfit);
    return;
  }
  result_.why_nothing = absl::StrCat(
      "the unswapped graph fits, and no plan was found with which a step takes less "
      "memory and at most ",
      request_.objective.MaxSlowdownText());
}

// For the GPU with the fewest that fit. The text is one line of every summary: the report has the
// figures of each GPU.
void BudgetRun::Warn(int unfit) {
  if (unfit == 0) return;
  v1::Warning& warning = *result_.report.add_warnings();
  warning.set_code(v1::WARNING_CODE_MAY_RUN_OUT);
  warning.set_message(absl::StrCat("fits in ", kNumVariations - unfit, " of ", kNumVariations,
                                   " variations: TensorFlow may run out of memory; raise "
                                   "allocator_reserve"));
}

bool BudgetRun::may_run_out() const {
  const auto& warnings = result_.report.warnings();
  return std::any_of(warnings.begin(), warnings.end(), [](const v1::Warning& warning) {
    return warning.code() == v1::WARNING_CODE_MAY_RUN_OUT;
  });
}

int64_t BudgetRun::StepTimeNs() const {
  int64_t time_ns = 0;
  for (const v1::DeviceFit& fit : fits_) time_ns = std::max(time_ns, fit.step_time_ns());
  return time_ns;
}

int64_t BudgetRun::PeakBytes() const {
  int64_t peak_bytes = 0;
  for (size_t i : lacking_) peak_bytes = std::max(peak_bytes, fits_[i].peak_bytes());
  return peak_bytes;
}

void BudgetRun::TakeCloned(ClonePlan clones, BudgetRun* other) {
  for (size_t i : lacking_) {
    v1::DeviceFit fit = std::move(other->fits_[i]);
    fit.clear_not_needed();
    fit.set_unswapped_peak_bytes(fits_[i].unswapped_peak_bytes());
    fit.set_full_speed_step_time_ns(fits_[i].full_speed_step_time_ns());
    fits_[i] = std::move(fit);
  }
  result_.clones = std::move(clones);
  result_.plan = std::move(other->result_.plan);
  result_.report = std::move(other->result_.report);
  result_.why_nothing.clear();
  // Clones alone have no search, but are tried in the same sizes and variations.
  google::protobuf::RepeatedPtrField<v1::BudgetDevice> searched;
  searched.Swap(result_.report.mutable_budget()->mutable_devices());
  int next = 0;
  for (size_t i : lacking_) {
    const bool is_searched = next < searched.size() && other->lacking_[next] == i;
    v1::BudgetDevice& device = *result_.report.mutable_budget()->add_devices();
    device = is_searched ? std::move(searched[next++]) : other->TriedUnplanned(i);
    device.clear_step_time_bound_ns();  // It holds only for swaps beside these clones.
  }
}

// The report of a GPU whose step is taken unplanned.
v1::BudgetDevice BudgetRun::TriedUnplanned(size_t i) const {
  v1::BudgetDevice device;
  const GpuIndex gpu = gpus_[i].index;
  device.set_device(request_.facts.placement().devices()[gpu]);
  for (int64_t bytes : request_.OtherBudgets(gpu)) device.add_other_budget_bytes(bytes);
  if (request_.has_reserve() && !request_.objective.saves_memory()) {
    device.set_variation_count(kNumVariations);
    const auto unfit = unswapped_fits_.find(i);
    if (unfit != unswapped_fits_.end()) device.set_unfit_variation_count(unfit->second.unfit);
  }
  return device;
}

absl::StatusOr<StrategyResult> BudgetRun::Finish() {
  if (request_.options.decision_detail() != v1::DECISION_DETAIL_NONE) {
    auto gaps = plans_ ? plans_->FindGaps() : std::set<BufferIndex>();
    if (!gaps.ok()) return gaps.status();
    auto decisions = DecideTensors(request_.facts, request_.eligibility, *request_.filters, result_,
                                   *gaps, idle_, request_.stop);
    if (!decisions.ok()) return decisions.status();
    result_.decisions = *std::move(decisions);
  }
  int next = 0;
  for (v1::BudgetDevice& device : *result_.report.mutable_budget()->mutable_devices()) {
    const auto simulations = steps_.simulations(gpus_[lacking_[next++]].index.value());
    device.set_plan_count(simulations.count);
    device.set_fitting_plan_count(simulations.fitting);
  }
  for (v1::DeviceFit& fit : fits_) *result_.report.add_fits() = std::move(fit);
  if (result_.plan.empty() && result_.clones.clones.empty() && result_.why_nothing.empty()) {
    result_.why_nothing = gpus_.empty() ? "no node runs on a GPU: there is nothing to swap"
                                        : NotNeededText(result_.report.fits(), request_.facts);
  }
  return std::move(result_);
}

}  // namespace spillway::core
