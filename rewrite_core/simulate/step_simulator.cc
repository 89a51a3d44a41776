#include "rewrite_core/simulate/step_simulator.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/simulate/plan_patch.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/simulation_run.h"
#include "rewrite_core/simulate/workload_trace.h"

namespace spillway::core {
namespace {

constexpr SimulationMode kAhead = SimulationMode::kLaunchAhead;
constexpr SimulationMode kSync = SimulationMode::kSynchronous;

// The runs of one workload that the two stages need, each made once. A run with placed memory that
// did not diverge is the same as one with counted memory, except for DeviceUse::slowed_ns; and one
// in which no allocation waited, as one without budgets.
class Runs {
 public:
  Runs(const PreparedWorkload& workload, const SimulationOptions& options,
       SimulationRun* simulation, const StopToken& stop)
      : workload_(workload), options_(options), simulation_(simulation), stop_(stop) {}

  // `place_first`: place memory in the first run, unless it is already known to differ.
  absl::Status Counted(SimulationMode mode, bool place_first);
  absl::Status Placed(SimulationMode mode);
  void GiveUpAfter(int64_t cutoff_ns) { options_.cutoff_ns = cutoff_ns; }
  const SimulationResult& counted(SimulationMode mode) const { return *of(mode).counted(); }

  struct OfMode {
    absl::optional<SimulationResult> as_counted;
    absl::optional<SimulationResult> as_placed;
    bool is_same = false;  // as_placed serves as as_counted, too.
    const SimulationResult* counted() const { return is_same ? &*as_placed : &*as_counted; }
    SimulationResult* placed() { return &*as_placed; }
  };
  OfMode& of(SimulationMode mode) { return modes_[static_cast<int>(mode)]; }
  const OfMode& of(SimulationMode mode) const { return modes_[static_cast<int>(mode)]; }

 private:
  absl::Status Run(SimulationMode mode, bool placed, absl::optional<SimulationResult>* result);

  const PreparedWorkload& workload_;
  SimulationOptions options_;
  SimulationRun* simulation_;
  const StopToken& stop_;
  OfMode modes_[2];
};

absl::Status Runs::Run(SimulationMode mode, bool placed, absl::optional<SimulationResult>* result) {
  options_.mode = mode;
  options_.placed = placed;
  auto run = simulation_->Run(workload_, options_, stop_);
  if (run.ok()) *result = *std::move(run);
  return run.status();
}

absl::Status Runs::Placed(SimulationMode mode) {
  OfMode& runs = of(mode);
  if (runs.as_placed) return absl::OkStatus();
  if (absl::Status s = Run(mode, /*placed=*/true, &runs.as_placed); !s.ok()) return s;
  runs.is_same = !simulation_->diverged();
  return absl::OkStatus();
}

absl::Status Runs::Counted(SimulationMode mode, bool place_first) {
  if (place_first) {
    if (absl::Status s = Placed(mode); !s.ok()) return s;
    if (of(mode).is_same) return absl::OkStatus();
  }
  return Run(mode, /*placed=*/false, &of(mode).as_counted);
}

// Fills in the operations and buffers of `result`: those of `workload`, then those that a plan
// added.
void Explain(const Workload& workload, absl::Span<const WorkloadOp> added_ops,
             absl::Span<const WorkloadBuffer> added_buffers, StepResult* result) {
  result->ops = workload.ops;
  result->ops.insert(result->ops.end(), added_ops.begin(), added_ops.end());
  result->buffers = workload.buffers;
  result->buffers.insert(result->buffers.end(), added_buffers.begin(), added_buffers.end());
}

// Fills in the memory map of the step that ran out.
void NamePieces(absl::Span<const WorkloadBuffer> buffers,
                absl::Span<const WorkloadBuffer> added_buffers, StepResult* result) {
  const SimulationResult& failed =
      result->launch_ahead.fits() ? result->synchronous : result->launch_ahead;
  result->piece_bytes = failed.piece_bytes;
  for (const PlacedPiece& placed : failed.pieces) {
    StepResult::Piece piece{placed.address, placed.bytes, {kNoNode, 0}};
    if (const size_t id = placed.buffer; placed.buffer >= 0) {
      piece.tensor =
          id < buffers.size() ? buffers[id].tensor : added_buffers[id - buffers.size()].tensor;
    }
    result->pieces.push_back(piece);
  }
}

// Whether a step with these peaks takes at most a quarter of the budgets. For speed, it is then
// assumed to be placeable: a chunk is less than twice as large as its buffer. (In general, best fit
// may need a factor logarithmic in the sizes, in steps constructed for that.)
bool IsSmall(const std::vector<int64_t>& peaks, const SimulationOptions& budgets) {
  for (size_t i = 0; i < peaks.size(); ++i) {
    if (peaks[i] > budgets.device_budget_bytes[i] / 4) return false;
  }
  return true;
}

}  // namespace

class StepSimulator::Impl {
 public:
  explicit Impl(const StepFacts& step_facts) : facts(step_facts) {}

  absl::Status Prepare(const StopToken& stop);
  SimulationOptions Unlimited() const {
    SimulationOptions options;
    options.launch_ns = prepared.launch_ns;
    options.max_fragmentation_bytes = facts.hardware().max_fragmentation_bytes();
    return options;
  }
  // Options for unlimited memory, with the variation of `terms`; and for all of `terms`.
  SimulationOptions UnlimitedOf(const StepTerms& terms) const;
  SimulationOptions OptionsOf(const StepTerms& terms) const;
  // Whether some GPU has a budget, and none has a larger one than on the machine.
  bool IsOfTheMachine(const SimulationOptions& options) const;
  absl::StatusOr<StepResult> Simulate(const PreparedWorkload& workload, const StepTerms& terms,
                                      bool is_unswapped, const StopToken& stop);
  // Simulates with counted and, if that fits, with placed memory. Sets the verdict of `result`.
  absl::Status Climb(const StepTerms& terms, const SimulationOptions& options, Runs* runs,
                     StepResult* result);
  absl::Status PlaceAlone(const StepTerms& terms, Runs* runs, StepResult* result);
  absl::Status AddUnlimited(const PreparedWorkload& workload, const StepTerms& terms,
                            bool with_order, const StopToken& stop, StepResult* result);
  void KeepOrder(const StepTerms& terms, StepResult* result);

  const StepFacts& facts;
  Workload unswapped;
  WorkloadNotes notes;
  WorkloadTrace trace;
  PreparedWorkload prepared;
  absl::optional<PlanPatch> patch;
  bool has_plan = false;  // `prepared` is of the step with a plan (Become).
  absl::optional<SimulationRun> simulation{absl::in_place};  // Re-created to free its memory.
  // The order of the unswapped step, launched ahead with unlimited memory and no variation, once it
  // is known.
  std::vector<OpId> order;
  // By GPU: the peak of the last step. The next is likely to be similar.
  std::vector<int64_t> last_peaks;
  // The most that the step without a plan may hold on the host: inputs, outputs of CPUs. The limit
  // of swaps is not below it, or no plan could fit, not even one without swaps.
  int64_t host_bytes_anyway = 0;
};

absl::Status StepSimulator::Impl::Prepare(const StopToken& stop) {
  auto workload = BuildTracedWorkload(facts, &notes, &trace, stop);
  if (!workload.ok()) return workload.status();
  unswapped = *std::move(workload);
  auto ready = PreparedWorkload::Prepare(unswapped, ToNanoseconds(facts.hardware().launch_s), stop,
                                         LayoutOf(facts, unswapped, trace));
  if (!ready.ok()) return ready.status();
  prepared = *std::move(ready);  // All bytes together are a number.
  for (const WorkloadBuffer& buffer : unswapped.buffers) {
    if (buffer.device == kHostPlace) host_bytes_anyway += buffer.bytes;
  }
  return absl::OkStatus();
}

SimulationOptions StepSimulator::Impl::UnlimitedOf(const StepTerms& terms) const {
  SimulationOptions options = Unlimited();
  options.ready_order = terms.variation.ready_order;
  options.ready_seed = terms.variation.seed;
  options.copy_percent = terms.variation.copy_percent;
  options.spread_percent = terms.variation.spread_percent;
  options.late_ns = terms.variation.late_ns;
  options.initializer_seed = terms.variation.initializer_seed;
  options.file_seed = terms.variation.file_seed;
  return options;
}

SimulationOptions StepSimulator::Impl::OptionsOf(const StepTerms& terms) const {
  SimulationOptions options = UnlimitedOf(terms);
  options.record_order = options.record_times = terms.record_operations;
  options.record_timeline = terms.record_memory;
  options.record_pieces = terms.record_pieces;
  const size_t num_gpus = std::max<size_t>(facts.placement().devices().size(), 1);
  const int64_t host_bytes = facts.hardware().host_memory_bytes;
  options.device_budget_bytes.assign(num_gpus, kUnlimited);
  switch (terms.budgets) {
    case StepTerms::Budgets::kNone:
      break;
    case StepTerms::Budgets::kOneGpu:
      options.device_budget_bytes[terms.gpu] = terms.budget_bytes;
      options.host_budget_bytes =
          std::max(host_bytes / static_cast<int64_t>(num_gpus), host_bytes_anyway);
      break;
    case StepTerms::Budgets::kAllGpus:
      options.device_budget_bytes = terms.gpu_budgets;
      options.device_budget_bytes.resize(num_gpus, terms.budget_bytes);
      options.host_budget_bytes = std::max(host_bytes, host_bytes_anyway);
      break;
  }
  if (!terms.count_slowed) return options;
  options.workspace_limits = WorkspaceLimits(facts.step());
  for (GpuIndex gpu(0); gpu < static_cast<int32_t>(facts.placement().devices().size()); ++gpu) {
    options.spare_bytes.push_back(std::max<int64_t>(
        facts.HardwareOf(gpu).gpu_memory_bytes - options.device_budget_bytes[gpu], 0));
  }
  return options;
}

absl::StatusOr<StepResult> StepSimulator::Impl::Simulate(const PreparedWorkload& workload,
                                                         const StepTerms& terms, bool is_unswapped,
                                                         const StopToken& stop) {
  SimulationOptions options = OptionsOf(terms);
  const bool wants_order = is_unswapped && order.empty() && terms.variation.is_none();
  options.record_order = options.record_order || wants_order;
  Runs runs(workload, options, &*simulation, stop);
  StepResult result;
  result.unknown = &notes.unknown;
  const absl::Status simulated = terms.placed_alone ? PlaceAlone(terms, &runs, &result)
                                                    : Climb(terms, options, &runs, &result);
  if (!simulated.ok()) return simulated;
  const auto take = [&](SimulationMode mode, SimulationResult* to) {
    Runs::OfMode& of = runs.of(mode);
    *to = std::move(result.is_placed || of.is_same ? *of.as_placed : *of.as_counted);
  };
  take(kAhead, &result.launch_ahead);
  if (result.has_synchronous) take(kSync, &result.synchronous);
  result.is_unlimited = result.fits && !result.launch_ahead.waited && !result.synchronous.waited;
  if (!result.fits && terms.unlimited_if_unfit) {
    if (absl::Status s = AddUnlimited(workload, terms, wants_order, stop, &result); !s.ok()) {
      return s;
    }
  }
  if (wants_order) KeepOrder(terms, &result);
  if (!is_unswapped && stop.tells_plans()) {
    // A plan for more memory than the machine has does not count.
    stop.ReportPlan(result.fits && IsOfTheMachine(options) ? result.step_time_ns() : 0);
  }
  return result;
}

bool StepSimulator::Impl::IsOfTheMachine(const SimulationOptions& options) const {
  const std::vector<int64_t> budgets = facts.Budgets();
  bool is_limited = false;
  for (size_t gpu = 0; gpu < std::min(budgets.size(), options.device_budget_bytes.size()); ++gpu) {
    if (options.device_budget_bytes[gpu] == kUnlimited) continue;  // Another GPU is simulated.
    if (options.device_budget_bytes[gpu] > budgets[gpu]) return false;
    is_limited = true;
  }
  return is_limited;
}

absl::Status StepSimulator::Impl::Climb(const StepTerms& terms, const SimulationOptions& options,
                                        Runs* runs, StepResult* result) {
  const bool place_first = terms.place && (last_peaks.empty() || !IsSmall(last_peaks, options));
  // Counted.
  if (absl::Status s = runs->Counted(kAhead, place_first); !s.ok()) return s;
  const SimulationResult& ahead = runs->counted(kAhead);
  const bool is_slow = ahead.step_time_ns > terms.cutoff_ns && !terms.always_synchronous;
  result->has_synchronous = terms.always_synchronous || (ahead.fits() && !is_slow);
  result->is_partial = ahead.fits() && is_slow;
  if (result->has_synchronous) {
    if (absl::Status s = runs->Counted(kSync, place_first && ahead.fits()); !s.ok()) return s;
  }
  result->fits = ahead.fits() && result->has_synchronous && runs->counted(kSync).fits();
  if (!result->fits) return absl::OkStatus();
  last_peaks.clear();
  for (size_t d = 0; d < ahead.devices.size(); ++d) {
    last_peaks.push_back(
        std::max(ahead.devices[d].peak_bytes, runs->counted(kSync).devices[d].peak_bytes));
  }
  // Placed.
  result->is_placed = terms.place && !IsSmall(last_peaks, options);
  if (!result->is_placed) return absl::OkStatus();
  if (absl::Status s = runs->Placed(kAhead); !s.ok()) return s;
  result->fits = runs->of(kAhead).placed()->fits();
  result->has_synchronous = terms.always_synchronous || result->fits;
  if (!result->has_synchronous) return absl::OkStatus();
  if (absl::Status s = runs->Placed(kSync); !s.ok()) return s;
  result->fits = result->fits && runs->of(kSync).placed()->fits();
  return absl::OkStatus();
}

absl::Status StepSimulator::Impl::PlaceAlone(const StepTerms& terms, Runs* runs,
                                             StepResult* result) {
  result->is_placed = true;
  if (!terms.always_synchronous) runs->GiveUpAfter(terms.cutoff_ns);
  if (absl::Status s = runs->Placed(kAhead); !s.ok()) return s;
  const SimulationResult& ahead = *runs->of(kAhead).placed();
  const bool is_slow = ahead.step_time_ns > terms.cutoff_ns && !terms.always_synchronous;
  result->has_synchronous = terms.always_synchronous || (ahead.fits() && !is_slow);
  result->is_partial = ahead.fits() && is_slow;
  if (!result->has_synchronous) return absl::OkStatus();
  if (absl::Status s = runs->Placed(kSync); !s.ok()) return s;
  result->fits = ahead.fits() && runs->of(kSync).placed()->fits();
  return absl::OkStatus();
}

// Keeps the order of operations launched ahead with unlimited memory, which lower bounds need: that
// of any run in which no allocation waited.
void StepSimulator::Impl::KeepOrder(const StepTerms& terms, StepResult* result) {
  const bool nobody_waited =
      result->launch_ahead.fits() && !result->launch_ahead.waited && !result->is_partial;
  if (result->unlimited) {
    order = std::move(result->unlimited->launch_ahead.order);
  } else if (nobody_waited) {
    order = result->launch_ahead.order;
  }
  if (terms.record_operations) return;
  result->launch_ahead.order.clear();
  result->synchronous.order.clear();
}

absl::Status StepSimulator::Impl::AddUnlimited(const PreparedWorkload& workload,
                                               const StepTerms& terms, bool with_order,
                                               const StopToken& stop, StepResult* result) {
  SimulationOptions options = UnlimitedOf(terms);
  options.record_order = with_order;
  BothModes both;
  for (SimulationMode mode : {kAhead, kSync}) {
    options.mode = mode;
    auto run = simulation->Run(workload, options, stop);
    if (!run.ok()) return run.status();
    (mode == kAhead ? both.launch_ahead : both.synchronous) = *std::move(run);
  }
  result->unlimited = std::move(both);
  return absl::OkStatus();
}

StepSimulator::StepSimulator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StepSimulator::~StepSimulator() = default;

const StepFacts& StepSimulator::facts() const { return impl_->facts; }
const Workload& StepSimulator::unswapped() const { return impl_->unswapped; }
const WorkloadNotes& StepSimulator::notes() const { return impl_->notes; }

absl::StatusOr<std::unique_ptr<StepSimulator>> StepSimulator::Create(const StepFacts& facts,
                                                                     const StopToken& stop) {
  if (absl::Status s = facts.Compute({Fact::kCosts, Fact::kGpuMemory, Fact::kActiveNodes}, stop);
      !s.ok())
    return s;
  auto impl = std::make_unique<Impl>(facts);
  if (absl::Status s = impl->Prepare(stop); !s.ok()) return s;
  return std::unique_ptr<StepSimulator>(new StepSimulator(std::move(impl)));
}

absl::StatusOr<StepResult> StepSimulator::Simulate(const SwapPlan& plan, const StepTerms& terms,
                                                   const StopToken& stop) {
  const bool records = terms.record_operations || terms.record_memory;
  Impl& impl = *impl_;
  if (plan.empty()) {
    auto result = impl.Simulate(impl.prepared, terms, /*is_unswapped=*/!impl.has_plan, stop);
    if (impl.has_plan) return result;
    if (result.ok() && records) Explain(impl.unswapped, {}, {}, &*result);
    if (result.ok()) NamePieces(impl.unswapped.buffers, {}, &*result);
    return result;
  }
  if (!impl.patch) impl.patch.emplace(impl.facts, impl.unswapped, impl.trace, &impl.prepared);
  auto patched = impl.patch->Apply(plan, stop);
  if (patched.ok() && *patched) {
    auto result = impl.Simulate(impl.prepared, terms, /*is_unswapped=*/false, stop);
    if (result.ok() && records) {
      Explain(impl.unswapped, impl.patch->added_ops(), impl.patch->added_buffers(), &*result);
    }
    if (result.ok()) NamePieces(impl.unswapped.buffers, impl.patch->added_buffers(), &*result);
    impl.patch->Undo();
    return result;
  }
  impl.patch->Undo();
  if (!patched.ok()) return patched.status();
  auto workload = BuildWorkload(impl.facts, &plan, /*notes=*/nullptr, stop);
  if (!workload.ok()) return workload.status();
  auto prepared = PreparedWorkload::Prepare(*workload, impl.prepared.launch_ns, stop);
  if (!prepared.ok()) return prepared.status();
  auto result = impl.Simulate(*prepared, terms, /*is_unswapped=*/false, stop);
  if (result.ok() && records) Explain(*workload, {}, {}, &*result);
  if (result.ok()) NamePieces(workload->buffers, {}, &*result);
  return result;
}

void StepSimulator::EndPlanning() {
  impl_->patch.reset();
  impl_->trace = WorkloadTrace();
  impl_->facts.ForgetCosts();
}

absl::Status StepSimulator::Become(const SwapPlan& plan, const StopToken& stop) {
  Impl& impl = *impl_;
  const int64_t launch_ns = impl.prepared.launch_ns;
  impl.unswapped = Workload();
  impl.prepared = PreparedWorkload();
  impl.simulation.emplace();
  impl.order = {};
  if (absl::Status s = impl.facts.Compute({Fact::kCosts}, stop); !s.ok()) return s;
  auto workload = BuildWorkload(impl.facts, &plan, /*notes=*/nullptr, stop);
  if (!workload.ok()) return workload.status();
  impl.facts.ForgetCosts();
  auto prepared = PreparedWorkload::Prepare(*workload, launch_ns, stop);
  if (!prepared.ok()) return prepared.status();
  impl.prepared = *std::move(prepared);
  impl.has_plan = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DeviceBounds>> StepSimulator::LowerBounds(
    const std::vector<NodeId>& nodes, const std::vector<bool>& may_run_again,
    const StopToken& stop) {
  // Operations of a plan may have other ids than those of the unswapped step.
  std::vector<OpId> order, ops;
  if (!nodes.empty()) ops.assign(impl_->facts.graph().num_nodes(), kNoOp);
  for (OpId id(0); id < static_cast<int32_t>(impl_->unswapped.ops.size()) && !ops.empty(); ++id) {
    const WorkloadOp& op = impl_->unswapped.ops[id];
    if (RunsNode(op)) ops[op.node] = id;
  }
  for (NodeId node : nodes) {
    // Added operations (a constant behind an edge between devices) have none.
    if (node != kNoNode && ops[node] != kNoOp) order.push_back(ops[node]);
  }
  if (order.empty() && impl_->order.empty()) {
    auto unlimited = impl_->simulation->Run(impl_->prepared, impl_->Unlimited(), stop);
    if (!unlimited.ok()) return unlimited.status();
    impl_->order = std::move(unlimited->order);
  }
  impl_->simulation.emplace();  // The bounds take about as much memory as it keeps.
  LowerBoundOptions options;
  options.device_budget_bytes = impl_->facts.Budgets();
  options.copy_out_bytes_per_s = impl_->facts.hardware().d2h_bytes_per_s;
  options.copy_in_bytes_per_s = impl_->facts.hardware().h2d_bytes_per_s;
  if (!may_run_again.empty()) {
    for (const WorkloadOp& op : impl_->unswapped.ops) {
      options.may_run_again.push_back(op.transposes || (RunsNode(op) && may_run_again[op.node]));
    }
  }
  return ComputeLowerBounds(impl_->unswapped, impl_->prepared, order.empty() ? impl_->order : order,
                            options, stop);
}

}  // namespace spillway::core
