#include "rewrite_core/simulate/step_simulator.h"

#include <algorithm>
#include <utility>

#include "rewrite_core/analysis/cost.h"

namespace spillway::core {
namespace {

// Whether a step that waits for no memory takes at most a quarter of the budgets. Then it is taken
// to find its places, for speed: a chunk is less than twice as large as what is in it. (Of best fit
// in general a factor of the logarithm of sizes is known, by steps that are made for that.)
bool IsSmall(const BothModes& step, const SimulationOptions& budgets) {
  for (size_t i = 0; i < step.launch_ahead.devices.size(); ++i) {
    const int64_t peak =
        std::max(step.launch_ahead.devices[i].peak_bytes, step.synchronous.devices[i].peak_bytes);
    if (peak > budgets.device_budget_bytes[i] / 4) return false;
  }
  return true;
}

}  // namespace

class StepSimulator::Impl {
 public:
  explicit Impl(const StepFacts& step_facts) : facts(step_facts) {}

  SimulationOptions Unlimited() const {
    SimulationOptions options;
    options.launch_ns = ToNanoseconds(facts.hardware().launch_s);
    return options;
  }
  SimulationOptions OptionsOf(const StepTerms& terms) const;
  absl::StatusOr<BothModes> Run(const Workload& workload, const SimulationOptions& options,
                                bool always_synchronous, int64_t cutoff_ns,
                                const StopToken& stop) const {
    return always_synchronous ? SimulateBothModes(workload, options, stop)
                              : SimulateIfWorth(workload, options, cutoff_ns, stop);
  }

  const StepFacts& facts;
  Workload unswapped;
  WorkloadNotes notes;
};

SimulationOptions StepSimulator::Impl::OptionsOf(const StepTerms& terms) const {
  SimulationOptions options = Unlimited();
  options.record_order = options.record_times = terms.record_operations;
  options.record_timeline = terms.record_memory;
  const size_t num_gpus = std::max<size_t>(facts.placement().devices().size(), 1);
  const int64_t host_bytes = facts.hardware().host_memory_bytes;
  options.device_budget_bytes.assign(num_gpus, kUnlimited);
  switch (terms.budgets) {
    case StepTerms::Budgets::kNone:
      break;
    case StepTerms::Budgets::kOneGpu:
      options.device_budget_bytes[terms.gpu] = terms.budget_bytes;
      options.host_budget_bytes = host_bytes / static_cast<int64_t>(num_gpus);
      break;
    case StepTerms::Budgets::kAllGpus:
      options.device_budget_bytes.assign(num_gpus, terms.budget_bytes);
      options.host_budget_bytes = host_bytes;
      break;
  }
  return options;
}

StepSimulator::StepSimulator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StepSimulator::~StepSimulator() = default;

const StepFacts& StepSimulator::facts() const { return impl_->facts; }
const Workload& StepSimulator::unswapped() const { return impl_->unswapped; }
const WorkloadNotes& StepSimulator::notes() const { return impl_->notes; }

absl::StatusOr<std::unique_ptr<StepSimulator>> StepSimulator::Create(const StepFacts& facts,
                                                                     const StopToken& stop) {
  if (absl::Status s = facts.Compute({Fact::kCosts, Fact::kActiveNodes}, stop); !s.ok()) return s;
  auto impl = std::make_unique<Impl>(facts);
  auto workload = BuildWorkload(facts, /*plan=*/nullptr, &impl->notes, stop);
  if (!workload.ok()) return workload.status();
  impl->unswapped = *std::move(workload);
  return std::unique_ptr<StepSimulator>(new StepSimulator(std::move(impl)));
}

absl::StatusOr<StepResult> StepSimulator::Simulate(const SwapPlan& plan, const StepTerms& terms,
                                                   const StopToken& stop) {
  auto workload = BuildWorkload(impl_->facts, &plan, /*notes=*/nullptr, stop);
  if (!workload.ok()) return workload.status();
  SimulationOptions options = impl_->OptionsOf(terms);
  auto both = impl_->Run(*workload, options, terms.always_synchronous, terms.cutoff_ns, stop);
  if (!both.ok()) return both.status();
  StepResult result;
  if (terms.place && both->fits() && !IsSmall(*both, options)) {
    options.placed = result.is_placed = true;
    both = impl_->Run(*workload, options, terms.always_synchronous, kUnlimited, stop);
    if (!both.ok()) return both.status();
  }
  result.fits = both->fits();
  result.is_partial = both->is_partial && both->launch_ahead.fits();
  result.has_synchronous = !both->is_partial;
  result.is_unlimited = result.fits && !both->launch_ahead.waited && !both->synchronous.waited;
  result.launch_ahead = std::move(both->launch_ahead);
  result.synchronous = std::move(both->synchronous);
  if (!result.fits && terms.unlimited_if_unfit) {
    auto unlimited = SimulateBothModes(*workload, impl_->Unlimited(), stop);
    if (!unlimited.ok()) return unlimited.status();
    result.unlimited = *std::move(unlimited);
  }
  if (terms.record_operations || terms.record_memory) {
    result.ops = std::move(workload->ops);
    result.buffers = std::move(workload->buffers);
  }
  return result;
}

absl::StatusOr<std::vector<DeviceBounds>> StepSimulator::LowerBounds(const StopToken& stop) {
  auto free = core::Simulate(impl_->unswapped, impl_->Unlimited(), stop);
  if (!free.ok()) return free.status();
  LowerBoundOptions options;
  options.device_budget_bytes.assign(impl_->unswapped.devices.size(),
                                     impl_->facts.hardware().device_budget_bytes());
  options.copy_out_bytes_per_s = impl_->facts.hardware().d2h_bytes_per_s;
  options.copy_in_bytes_per_s = impl_->facts.hardware().h2d_bytes_per_s;
  return ComputeLowerBounds(impl_->unswapped, free->order, options, stop);
}

}  // namespace spillway::core
