#include "rewrite_core/step_model.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/shown_name.h"
#include "rewrite_core/report/tensor_summary.h"
#include "rewrite_core/simulate/lower_bounds.h"

namespace spillway::core {
namespace {

v1::Warning MakeWarning(v1::WarningCode code, std::string message) {
  v1::Warning warning;
  warning.set_code(code);
  warning.set_message(std::move(message));
  return warning;
}

// "1 buffer", "2 buffers".
std::string Count(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// Whether a step that waits for no memory stays within the budgets.
bool Within(const SimulationResult& result, const SimulationOptions& budgets) {
  if (result.host_peak_bytes > budgets.host_budget_bytes) return false;
  for (size_t i = 0; i < result.devices.size(); ++i) {
    if (result.devices[i].peak_bytes > budgets.device_budget_bytes[i]) return false;
  }
  return true;
}

// Whether a step that waits for no memory takes at most a quarter of the budgets. Then it is taken
// to find its places, for speed: a chunk is less than twice as large as what is in it. (Of best fit
// in general a factor of the logarithm of sizes is known, by steps that are made for that.)
bool IsSmall(const BothModes& step, const SimulationOptions& budgets) {
  for (size_t i = 0; i < step.synchronous.devices.size(); ++i) {
    const int64_t peak =
        std::max(step.launch_ahead.devices[i].peak_bytes, step.synchronous.devices[i].peak_bytes);
    if (peak > budgets.device_budget_bytes[i] / 4) return false;
  }
  return true;
}

// Whether it was not the sum of bytes that was too much.
bool IsInPieces(const OutOfMemory& oom) {
  return oom.requested_bytes <= oom.budget_bytes - oom.in_use_bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const StepModel>> StepModel::Create(const Graph& graph,
                                                                   const Topology& topology,
                                                                   const Shapes& shapes,
                                                                   const v1::Step& step,
                                                                   const StopToken& stop) {
  std::unique_ptr<StepModel> model(new StepModel(graph, topology, shapes));
  if (absl::Status s = model->Analyse(step, stop); !s.ok()) return s;
  return std::unique_ptr<const StepModel>(std::move(model));
}

absl::Status StepModel::Analyse(const v1::Step& step, const StopToken& stop) {
  auto hardware = Hardware::FromOptions(step.hardware());
  if (!hardware.ok()) return hardware.status();
  hardware_ = *std::move(hardware);
  if (!step.profile().empty()) {
    auto profile = Profile::Read(step.profile(), graph_, stop);
    if (!profile.ok()) return profile.status();
    profile_ = *std::move(profile);
  }
  const Profile* profile = profile_ ? &*profile_ : nullptr;
  auto placement = Placement::Find(graph_, topology_, shapes_, stop);
  if (!placement.ok()) return placement.status();
  placement_ = *std::move(placement);
  auto buffers = Buffers::Find(graph_, topology_, shapes_, *placement_, profile, stop);
  if (!buffers.ok()) return buffers.status();
  buffers_ = *std::move(buffers);
  auto costs = Costs::Estimate(graph_, shapes_, *placement_, *buffers_, hardware_,
                               step.convolution_workspace_bytes(), profile, stop);
  if (!costs.ok()) return costs.status();
  costs_ = *std::move(costs);
  auto active = FindActiveNodes(graph_, topology_, shapes_, step, /*backward=*/nullptr, stop);
  if (!active.ok()) return active.status();
  active_ = *std::move(active);
  return absl::OkStatus();
}

absl::StatusOr<Workload> StepModel::Build(const SwapPlan* plan, WorkloadNotes* notes,
                                          const StopToken& stop) const {
  const StepFacts facts = {graph_,    topology_, shapes_,   *placement_,
                           *buffers_, *costs_,   hardware_, *active_};
  return BuildWorkload(facts, plan, notes, stop);
}

SimulationOptions StepModel::Unlimited() const {
  SimulationOptions options;
  options.launch_ns = ToNanoseconds(hardware_.launch_s);
  return options;
}

SimulationOptions StepModel::Budgets() const {
  SimulationOptions options = Unlimited();
  options.device_budget_bytes.assign(placement_->devices().size(), hardware_.device_budget_bytes());
  options.host_budget_bytes = hardware_.host_memory_bytes;
  return options;
}

std::string StepModel::NameOf(const Workload& workload, OpId op) const {
  if (op == kNoOp || workload.ops[op].node == kNoNode) return "";
  return ShownName(graph_.name(workload.ops[op].node));
}

v1::OutOfMemory StepModel::ToProto(const Workload& workload, const OutOfMemory& oom) const {
  v1::OutOfMemory out;
  out.set_host(oom.device < 0);
  if (oom.device >= 0) out.set_device(workload.devices[oom.device]);
  out.set_node(NameOf(workload, oom.op));
  out.set_requested_bytes(oom.requested_bytes);
  out.set_in_use_bytes(oom.in_use_bytes);
  out.set_budget_bytes(oom.budget_bytes);
  out.set_fragmented(IsInPieces(oom));
  return out;
}

absl::StatusOr<v1::Forecast> StepModel::Forecast(const Workload& workload, bool no_budget,
                                                 bool with_bounds, const StopToken& stop) const {
  // Where nobody ever waits for memory, budgets change nothing; and what fits into them needs no
  // play without. Bounds do.
  const SimulationOptions budgets = Budgets();
  absl::optional<BothModes> free, limited;
  const auto play = [&](const SimulationOptions& options, absl::optional<BothModes>* both) {
    auto played = SimulateBothModes(workload, options, stop);
    if (played.ok()) *both = *std::move(played);
    return played.status();
  };
  if (no_budget || with_bounds) {
    if (absl::Status s = play(Unlimited(), &free); !s.ok()) return s;
  }
  const bool is_within =
      free && Within(free->launch_ahead, budgets) && Within(free->synchronous, budgets);
  if (!no_budget && !is_within) {
    if (absl::Status s = play(budgets, &limited); !s.ok()) return s;
    if (!limited->fits() && !free) {
      if (absl::Status s = play(Unlimited(), &free); !s.ok()) return s;
    }
  }
  // Where the bytes suffice, there may still be no place for them: not where they are few.
  absl::optional<BothModes> placed;
  if (!no_budget && (!limited || limited->fits()) &&
      !IsSmall(limited ? *limited : *free, budgets)) {
    SimulationOptions options = budgets;
    options.placed = true;
    if (absl::Status s = play(options, &placed); !s.ok()) return s;
    if (!placed->fits() && !free) {
      if (absl::Status s = play(Unlimited(), &free); !s.ok()) return s;
    }
  }
  const BothModes& step = placed ? *placed : limited ? *limited : *free;
  // Without end, if it does not fit: what it would take.
  const BothModes& use = step.fits() ? step : *free;

  v1::Forecast forecast;
  // With unlimited memory there is nothing to know.
  SetFit(step.fits(),
         no_budget ? std::vector<v1::FitUnknown>()
                   : DescribeUnknown(graph_, workload.unknown, /*gpu=*/absl::nullopt),
         &forecast);
  for (const SimulationResult* result : {&step.synchronous, &step.launch_ahead}) {
    if (!result->fits()) {
      *forecast.mutable_out_of_memory() = ToProto(workload, *result->out_of_memory);
    }
  }
  if (step.launch_ahead.fits()) forecast.set_step_time_ns(step.launch_ahead.step_time_ns);
  if (step.synchronous.fits()) {
    forecast.set_synchronous_step_time_ns(step.synchronous.step_time_ns);
  }
  forecast.set_host_peak_bytes(
      std::max(use.launch_ahead.host_peak_bytes, use.synchronous.host_peak_bytes));
  for (size_t i = 0; i < workload.devices.size(); ++i) {
    const DeviceUse& ahead = use.launch_ahead.devices[i];
    const DeviceUse& sync = use.synchronous.devices[i];
    const DeviceUse& worse = sync.peak_bytes > ahead.peak_bytes ? sync : ahead;
    v1::DeviceForecast* device = forecast.add_devices();
    device->set_device(workload.devices[i]);
    device->set_resident_bytes(ahead.resident_bytes);
    device->set_peak_bytes(worse.peak_bytes);
    device->set_peak_node(NameOf(workload, worse.peak_op));
    device->set_compute_ns(ahead.compute_ns);
    device->set_copy_out_ns(ahead.copy_out_ns);
    device->set_copy_in_ns(ahead.copy_in_ns);
    device->set_stall_ns(ahead.stall_ns);
    device->set_copy_out_bytes(ahead.copy_out_bytes);
    device->set_copy_in_bytes(ahead.copy_in_bytes);
  }
  if (with_bounds && !no_budget) {
    absl::Status status = AddBounds(workload, free->launch_ahead.order, stop, &forecast);
    if (!status.ok()) return status;
  }
  return forecast;
}

absl::StatusOr<PlanOutcome> StepModel::Play(const SwapPlan& plan, const PlayTerms& terms,
                                            const StopToken& stop) const {
  auto workload = Build(&plan, /*notes=*/nullptr, stop);
  if (!workload.ok()) return workload.status();
  SimulationOptions options = Unlimited();
  const size_t num_gpus = std::max<size_t>(placement_->devices().size(), 1);
  const bool all = terms.gpu == kAllGpus;
  const int32_t gpu = all ? 0 : terms.gpu;
  options.device_budget_bytes.assign(num_gpus, all ? terms.budget_bytes : kUnlimited);
  options.device_budget_bytes[gpu] = terms.budget_bytes;
  options.host_budget_bytes =
      hardware_.host_memory_bytes / (all ? 1 : static_cast<int64_t>(num_gpus));
  auto played = SimulateIfWorth(*workload, options, terms.worth_ns, stop);
  if (!played.ok()) return played.status();
  if (played->fits() && !IsSmall(*played, options)) {
    // Where the bytes suffice, there may still be no place for them.
    options.placed = true;
    auto placed = SimulateIfWorth(*workload, options, kUnlimited, stop);
    if (!placed.ok()) return placed.status();
    played = std::move(placed);
  }

  PlanOutcome outcome;
  outcome.fits = played->fits();
  outcome.unknown = workload->unknown;
  outcome.is_partial = played->is_partial && played->launch_ahead.fits();
  for (const SimulationResult* result : {&played->launch_ahead, &played->synchronous}) {
    if (result->devices.empty()) continue;  // Not played.
    const DeviceUse& use = result->devices[gpu];
    outcome.peak_bytes = std::max(outcome.peak_bytes, use.peak_bytes);
    outcome.resident_bytes = use.resident_bytes;
    if (result->fits()) {
      (result == &played->launch_ahead ? outcome.step_time_ns : outcome.synchronous_step_time_ns) =
          result->step_time_ns;
      continue;
    }
    const OutOfMemory& oom = *result->out_of_memory;
    outcome.node = oom.op == kNoOp ? kNoNode : workload->ops[oom.op].node;
    outcome.requested_bytes = oom.requested_bytes;
    outcome.in_use_bytes = oom.in_use_bytes;
    outcome.on_host = oom.device < 0;
    outcome.is_in_pieces = IsInPieces(oom);
    outcome.gpu = std::max(oom.device, 0);
  }
  return outcome;
}

absl::Status StepModel::AddBounds(const Workload& workload, const std::vector<OpId>& order,
                                  const StopToken& stop, v1::Forecast* forecast) const {
  LowerBoundOptions options;
  options.device_budget_bytes = Budgets().device_budget_bytes;
  options.copy_out_bytes_per_s = hardware_.d2h_bytes_per_s;
  options.copy_in_bytes_per_s = hardware_.h2d_bytes_per_s;
  auto bounds = ComputeLowerBounds(workload, order, options, stop);
  if (!bounds.ok()) return bounds.status();
  for (size_t i = 0; i < bounds->size(); ++i) {
    const DeviceBounds& found = (*bounds)[i];
    v1::LowerBounds* out = forecast->mutable_devices(static_cast<int>(i))->mutable_bounds();
    out->set_memory_bytes(found.memory_bytes);
    out->set_memory_node(NameOf(workload, found.memory_op));
    out->set_copy_out_bytes(found.swap_out_bytes);
    out->set_copy_in_bytes(found.swap_in_bytes);
    out->set_step_time_ns(found.step_time_ns);
  }
  return absl::OkStatus();
}

absl::Status StepModel::DescribeMemory(const Workload& workload, bool in_budget,
                                       const StopToken& stop, v1::SimulateReport* report) const {
  // Not launched ahead: memory would be shown when it is given out, long before it is used.
  SimulationOptions options = in_budget ? Budgets() : Unlimited();
  options.mode = SimulationMode::kSynchronous;
  options.record_timeline = true;
  auto result = Simulate(workload, options, stop);
  if (!result.ok()) return result.status();
  StopPoller poll(stop);
  std::vector<std::vector<BufferId>> alive(workload.devices.size());
  for (BufferId id = 0; id < static_cast<BufferId>(workload.buffers.size()); ++id) {
    if (poll.Tick()) return stop.status("simulate");
    const WorkloadBuffer& buffer = workload.buffers[id];
    if (buffer.resident && buffer.device >= 0) alive[buffer.device].push_back(id);
  }
  for (size_t i = 0; i < workload.devices.size(); ++i) {
    const DeviceUse& use = result->devices[i];
    v1::DeviceMemory* memory = report->add_memory();
    memory->set_device(workload.devices[i]);
    for (const MemoryPoint& point : use.timeline) {
      const auto add = [memory, &point](int64_t bytes) {
        v1::MemorySample* sample = memory->add_timeline();
        sample->set_time_ns(point.time_ns);
        sample->set_bytes(bytes);
      };
      // What was there for no time shows, too: the peak may be that.
      if (point.high_bytes > point.bytes) add(point.high_bytes);
      add(point.bytes);
    }
    std::vector<BufferId>& ids = alive[i];
    ids.insert(ids.end(), use.at_peak.begin(), use.at_peak.end());
    std::sort(ids.begin(), ids.end(), [&workload](BufferId a, BufferId b) {
      const int64_t bytes_a = workload.buffers[a].bytes, bytes_b = workload.buffers[b].bytes;
      return bytes_a != bytes_b ? bytes_a > bytes_b : a < b;
    });
    for (BufferId id : ids) {
      if (poll.Tick()) return stop.status("simulate");
      const WorkloadBuffer& buffer = workload.buffers[id];
      v1::LiveTensor* live = memory->add_alive_at_peak();
      *live->mutable_tensor() = Summarize(graph_, shapes_, buffer.tensor);
      live->mutable_tensor()->set_size_bytes(buffer.bytes);
      live->set_resident(buffer.resident);
    }
  }
  return CountDistances(stop, report);
}

absl::Status StepModel::CountDistances(const StopToken& stop, v1::SimulateReport* report) const {
  struct Count {
    int64_t edges = 0;
    int64_t bytes = 0;
  };
  std::map<int32_t, Count> counts;
  StopPoller poll(stop);
  for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
    if (!active_->flags[id] || placement_->node(id) < 0) continue;
    // Readers are in order of ports; each tensor counts once in a distance.
    std::map<int32_t, int32_t> last_port;
    const Graph::Readers readers = graph_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("simulate");
      const auto [reader, index, port] = readers[i];
      if (port == kControl || !active_->flags[reader] || placement_->node(reader) < 0) continue;
      const int32_t distance = topology_.level(reader) - topology_.level(id);
      if (distance <= 0) continue;  // The back edge of a loop.
      Count& count = counts[distance];
      ++count.edges;
      const auto [it, is_first] = last_port.try_emplace(distance, port);
      if (!is_first && it->second == port) continue;
      it->second = port;
      const int64_t bytes = shapes_.size_bytes({id, port});
      if (bytes == kUnknownSize) continue;
      // Many tensors of nearly 2^63 bytes: the sum stays at the most that can be said.
      if (__builtin_add_overflow(count.bytes, bytes, &count.bytes)) count.bytes = kUnlimited;
    }
  }
  for (const auto& [distance, count] : counts) {
    v1::DistanceCount* out = report->add_distances();
    out->set_distance(distance);
    out->set_edge_count(count.edges);
    out->set_tensor_bytes(count.bytes);
  }
  return absl::OkStatus();
}

int64_t StepModel::num_active_nodes() const {
  return std::count(active_->flags.begin(), active_->flags.end(), true);
}

std::vector<std::string> StepModel::TargetNames() const {
  std::vector<std::string> names;
  for (NodeId id : active_->targets) names.push_back(ShownName(graph_.name(id)));
  return names;
}

std::vector<v1::Warning> StepModel::Warnings(const WorkloadNotes& notes) const {
  std::vector<v1::Warning> warnings;
  if (placement_->devices().empty()) {
    warnings.push_back(MakeWarning(v1::WARNING_CODE_NO_GPU,
                                   "no node of this step runs on a GPU: there is nothing to swap, "
                                   "and no time but that of the host"));
  }
  if (active_->source == TargetSource::kSinks) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_TARGETS_ARE_SINKS,
        "no targets were given and no weight updates found: the step is taken to run all nodes "
        "that nobody reads, initializers and savers among them; name what a step runs (targets)"));
  }
  if (notes.unknown_buffers > 0) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_UNKNOWN_SIZES,
        absl::StrCat("the size of ", Count(notes.unknown_buffers, "buffer"),
                     " on GPUs is unknown and counts as 0 bytes, so peaks are too "
                     "low; feeds, batch_size, a graph with _output_shapes or a profile may help")));
  }
  if (notes.unknown_costs > 0) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_UNKNOWN_COSTS,
        absl::StrCat("the cost of ", Count(notes.unknown_costs, "node"),
                     " is unknown (unknown sizes, function calls) and counts as the launch "
                     "alone, so times are too low; a profile helps")));
  }
  if (notes.loops > 0) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_LOOPS_ONCE,
        absl::StrCat("bodies of loops are played once (", Count(notes.loops, "loop variable"),
                     "), so times and peaks of the "
                     "loops are too low")));
  }
  if (notes.merges > 0) {
    warnings.push_back(
        MakeWarning(v1::WARNING_CODE_BOTH_BRANCHES,
                    absl::StrCat("both sides of ", Count(notes.merges, "conditional"),
                                 " are played, so times and peaks may "
                                 "be a little too high")));
  }
  return warnings;
}

}  // namespace spillway::core
