#include "rewrite_core/report/forecast_report.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/kernel_temporaries.h"
#include "rewrite_core/analysis/memory/host_variables.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/shown_name.h"

namespace spillway::core {
namespace {

v1::Warning MakeWarning(v1::WarningCode code, std::string message) {
  v1::Warning warning;
  warning.set_code(code);
  warning.set_message(std::move(message));
  return warning;
}

std::string NameOf(const StepFacts& facts, NodeId node) {
  return node == kNoNode ? "" : ShownName(facts.graph().name(node));
}

StepTerms TermsOf(ForecastBudget budget, const StepFacts& facts) {
  if (budget == ForecastBudget::kNone) return StepTerms();
  return StepTerms::AllGpus(facts.Budgets());
}

v1::OutOfMemory ToProto(const StepFacts& facts, const OutOfMemory& oom) {
  v1::OutOfMemory out;
  out.set_host(oom.device == kHostPlace);
  if (oom.device != kHostPlace) out.set_device(facts.placement().devices()[oom.device]);
  out.set_node(NameOf(facts, oom.node));
  out.set_requested_bytes(oom.requested_bytes);
  out.set_in_use_bytes(oom.in_use_bytes);
  out.set_budget_bytes(oom.budget_bytes);
  out.set_fragmented(oom.fragmented);
  return out;
}

void AddDevice(const StepFacts& facts, GpuIndex gpu, const DeviceUse& ahead, const DeviceUse& sync,
               v1::Forecast* forecast) {
  const DeviceUse& worse = sync.peak_bytes > ahead.peak_bytes ? sync : ahead;
  v1::DeviceForecast* device = forecast->add_devices();
  device->set_device(facts.placement().devices()[gpu]);
  device->set_resident_bytes(ahead.resident_bytes);
  device->set_peak_bytes(worse.peak_bytes);
  device->set_peak_node(NameOf(facts, worse.peak_node));
  device->set_compute_ns(ahead.compute_ns);
  device->set_copy_out_ns(ahead.copy_out_ns);
  device->set_copy_in_ns(ahead.copy_in_ns);
  device->set_stall_ns(ahead.stall_ns);
  device->set_copy_out_bytes(ahead.copy_out_bytes);
  device->set_copy_in_bytes(ahead.copy_in_bytes);
}

// Counts buffers on GPUs that the step allocates and whose size is an upper bound.
int64_t CountBoundedBuffers(const StepFacts& facts) {
  int64_t count = 0;
  for (const Buffers::Buffer& buffer : facts.buffers().buffers()) {
    count += buffer.place >= 0 && facts.active_nodes().Computes(buffer.first.node) &&
             facts.buffers().is_bound(buffer.first);
  }
  return count;
}

// The assumed values of unknown predicates, for conditionals with sides that differ; or "".
std::string WorseSides(const StepFacts& facts) {
  constexpr int kShown = 3;
  std::string text;
  int count = 0;
  for (const Conditionals::Choice& choice : facts.conditionals().choices()) {
    if (choice.bytes[0] == 0 && choice.bytes[1] == 0) continue;
    if (++count > kShown) continue;
    absl::StrAppend(&text, count == 1 ? "" : ", ", "'", NameOf(facts, choice.predicate.node),
                    "' is assumed ", choice.value ? "true" : "false", " (",
                    BytesText(choice.bytes[choice.value]), " are allocated on that side, ",
                    BytesText(choice.bytes[!choice.value]), " on the other)");
  }
  if (count == 0) return "";
  if (count > kShown) absl::StrAppend(&text, " and ", CountText(count - kShown, "other"));
  return absl::StrCat(
      "the value of ", CountText(count, "predicate"),
      " of conditionals is not known, and the side that allocates more memory is assumed: ", text,
      "; give the value that is fed, among the feeds");
}

// For the unchanged graph.
absl::StatusOr<v1::KnownShare> FindKnownShare(const StepFacts& facts, const StopToken& stop) {
  v1::KnownShare share;
  int64_t tensors = 0, unknown = 0, bounded = 0, nodes = 0, unknown_nodes = 0, noops = 0;
  const Buffers& buffers = facts.buffers();
  StopPoller poll(stop);
  for (NodeId id(0); id < facts.graph().num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("simulate");
    if (!facts.active_nodes().flags[id]) continue;
    if (facts.active_nodes().only_orders[id]) {
      noops += facts.placement().node(id) != kHostPlace;
      continue;
    }
    for (int32_t port = 0; port < buffers.num_outputs(id); ++port) {
      if (poll.Tick()) return stop.status("simulate");
      const Tensor tensor{id, port};
      if (buffers.place(tensor) < 0 || buffers.storage(tensor) == Storage::kNone) continue;
      ++tensors;
      unknown += buffers.bytes(tensor) == kUnknownSize;
      bounded += buffers.is_bound(tensor);
    }
    if (facts.placement().node(id) == kHostPlace || !buffers.LaunchesKernel(id)) continue;
    ++nodes;
    unknown_nodes += !facts.costs()[id].is_known;
  }
  share.set_noop_node_count(noops);
  share.set_tensor_count(tensors);
  share.set_unknown_tensor_count(unknown);
  share.set_bounded_tensor_count(bounded);
  share.set_node_count(nodes);
  share.set_unknown_node_count(unknown_nodes);
  return share;
}

void AddAssumptions(const StepFacts& facts, v1::Forecast* forecast) {
  if (facts.placement().devices().empty()) return;
  if (CountsTemporaries(facts.step())) {
    const Hardware& hardware = facts.hardware();
    forecast->add_assumes(
        absl::StrCat("kernels take as much memory as those of TensorFlow 2.15 on a GPU of "
                     "compute capability ",
                     hardware.compute_capability,
                     hardware.compute_capability < 8 ? ""
                     : hardware.tf32                 ? " with TF32"
                                                     : " without TF32",
                     ": otherwise give compute_capability or tf32"));
  }
  if (!WorkspaceLimits(facts.step()).empty()) {
    forecast->add_assumes(
        "cuDNN's workspaces are optional, as autotuning is on and op determinism off: otherwise "
        "give convolution_workspace_bytes");
  }
  forecast->add_assumes(
      "the GPU's memory is one piece (allow_growth is off), and XLA compiles nothing: keep it so");
  if (forecast->host_ns() > 0) {
    forecast->add_assumes(absl::StrCat(
        "operations on CPUs that read and write 1 MiB or more run one after another, at ",
        facts.hardware().host_mem_bytes_per_s / 1e9,
        " GB/s, and input pipelines run ahead of the step and take no time: otherwise give "
        "host_mem_bytes_per_s or a profile"));
  }
  if (facts.step().grappler() == v1::GRAPPLER_AS_IS) return;
  forecast->add_assumes(
      "TensorFlow's graph optimizer is on, which turns operations with only control outputs into "
      "NoOps and shapes that no feed can change into constants, and the program fetches only the "
      "targets: otherwise give grappler = AS_IS, or add all that is fetched to the targets");
  if (facts.layout().empty()) return;
  forecast->add_assumes(
      absl::StrCat("TensorFlow's layout optimizer is on, which runs ",
                   CountText(facts.layout().CountConverted(), "operation"),
                   " in another layout than the graph says (NHWC, NCHW), between transposes: "
                   "otherwise give grappler = AS_IS"));
}

// The unknown parts of the step with `plan`, including copies of unknown size.
UnknownMemory UnknownWith(const SwapPlan& plan, const StepSimulator& simulator) {
  const Buffers& buffers = simulator.facts().buffers();
  UnknownMemory unknown = simulator.notes().unknown;
  for (const PlannedSwap& swap : plan.swaps) {
    if (buffers.bytes(swap.tensor) != kUnknownSize || buffers.place(swap.tensor) < 0) continue;
    for (size_t i = 0; i < swap.swap_ins.size(); ++i) {
      unknown.Add(v1::FIT_UNKNOWN_CAUSE_SIZES, buffers.place(swap.tensor), swap.tensor.node);
    }
  }
  return unknown;
}

// Differences up to step time / this are ignored: a trial took 423 ms with a limit of 256 MiB and
// 422 without workspaces.
constexpr int64_t kNoDifference = 200;

// Chooses the limit of cuDNN's workspaces: the one preferred, unless with a smaller one more
// convolutions get their workspaces.
void AddWorkspaces(const StepFacts& facts, const SimulationResult& ahead, v1::Forecast* forecast) {
  const std::vector<int64_t> limits = WorkspaceLimits(facts.step());
  std::vector<int64_t> slowed_ns(limits.size(), 0);
  bool any = false;
  for (const DeviceUse& device : ahead.devices) {
    for (size_t i = 0; i < device.slowed_ns.size(); ++i) {
      slowed_ns[i] = std::max(slowed_ns[i], device.slowed_ns[i]);  // GPUs work side by side.
      any = true;
    }
  }
  if (!any) return;
  const int64_t least_ns = *std::min_element(slowed_ns.begin(), slowed_ns.end());
  const auto chosen = std::find_if(slowed_ns.begin(), slowed_ns.end(), [&](int64_t ns) {
    return ns <= least_ns + ahead.step_time_ns / kNoDifference;
  });
  forecast->set_convolution_workspace_limit_bytes(limits[chosen - slowed_ns.begin()]);
  forecast->set_without_workspace_ns(*chosen);
}

// Of a step that fits the budgets: peaks and time with all of the GPUs' memory, and the rest for
// workspaces. `within`, the step in its budgets, is used if it does not fit all of the memory,
// which is possible since memory is placed.
absl::Status AddInAllMemory(const SwapPlan& plan, const StepResult& within,
                            StepSimulator* simulator, const StopToken& stop,
                            v1::Forecast* forecast) {
  const StepFacts& facts = simulator->facts();
  const auto num_gpus = static_cast<int32_t>(within.launch_ahead.devices.size());
  std::vector<int64_t> memories;
  for (GpuIndex gpu(0); gpu < num_gpus; ++gpu) {
    forecast->mutable_devices(gpu)->set_peak_in_all_memory_bytes(within.peak_bytes(gpu));
    forecast->set_step_time_in_all_memory_ns(within.step_time_ns());
    memories.push_back(facts.HardwareOf(gpu).gpu_memory_bytes);
  }
  if (within.is_unlimited) {  // More memory changes nothing.
    AddWorkspaces(facts, within.launch_ahead, forecast);
    return absl::OkStatus();
  }
  StepTerms terms = StepTerms::AllGpus(std::move(memories));
  terms.always_synchronous = terms.count_slowed = true;
  const auto all = simulator->Simulate(plan, terms, stop);
  if (!all.ok()) return all.status();
  AddWorkspaces(facts, all->fits ? all->launch_ahead : within.launch_ahead, forecast);
  for (GpuIndex gpu(0); gpu < num_gpus && all->fits; ++gpu) {
    v1::DeviceForecast* device = forecast->mutable_devices(gpu);
    device->set_peak_in_all_memory_bytes(
        std::max(device->peak_in_all_memory_bytes(), all->peak_bytes(gpu)));
    forecast->set_step_time_in_all_memory_ns(all->step_time_ns());
  }
  return absl::OkStatus();
}

// Of the step with `plan`. `step`: the same, or empty once the simulator has become that step.
absl::StatusOr<v1::Forecast> Forecast(const SwapPlan& plan, const SwapPlan& step,
                                      ForecastBudget budget, StepSimulator* simulator,
                                      const StopToken& stop) {
  const StepFacts& facts = simulator->facts();
  StepTerms terms = TermsOf(budget, facts);
  terms.always_synchronous = true;
  terms.unlimited_if_unfit = true;
  terms.count_slowed = true;
  auto result = simulator->Simulate(step, terms, stop);
  if (!result.ok()) return result.status();

  v1::Forecast forecast;
  // With unlimited memory nothing needs to be known.
  SetFit(result->fits,
         budget == ForecastBudget::kNone
             ? std::vector<v1::FitUnknown>()
             : DescribeUnknown(facts.graph(), UnknownWith(plan, *simulator), absl::nullopt),
         &forecast);
  if (const OutOfMemory* oom = result->failure()) {
    *forecast.mutable_out_of_memory() = ToProto(facts, *oom);
  }
  if (result->launch_ahead.fits()) forecast.set_step_time_ns(result->step_time_ns());
  if (result->synchronous.fits()) {
    forecast.set_synchronous_step_time_ns(result->synchronous_step_time_ns());
  }
  // If it does not fit: the memory that it would need.
  const SimulationResult& ahead =
      result->fits ? result->launch_ahead : result->unlimited->launch_ahead;
  const SimulationResult& sync =
      result->fits ? result->synchronous : result->unlimited->synchronous;
  forecast.set_host_peak_bytes(std::max(ahead.host_peak_bytes, sync.host_peak_bytes));
  forecast.set_host_ns(ahead.host_ns);
  AddAssumptions(facts, &forecast);
  for (GpuIndex gpu(0); gpu < static_cast<int32_t>(ahead.devices.size()); ++gpu) {
    AddDevice(facts, gpu, ahead.devices[gpu], sync.devices[gpu], &forecast);
    if (budget == ForecastBudget::kNone) continue;
    forecast.mutable_devices(gpu)->set_budget_bytes(facts.BudgetOf(gpu));
  }
  if (!result->fits) return forecast;
  if (budget == ForecastBudget::kNone) {
    AddWorkspaces(facts, ahead, &forecast);
    return forecast;
  }
  if (absl::Status s = AddInAllMemory(step, *result, simulator, stop, &forecast); !s.ok()) return s;
  return forecast;
}

// The part that does not depend on the plan.
absl::StatusOr<v1::Forecast> WhateverThePlan(const StepFacts& facts, const StopToken& stop) {
  v1::Forecast forecast;
  auto share = FindKnownShare(facts, stop);
  if (!share.ok()) return share.status();
  *forecast.mutable_known_share() = *std::move(share);
  const auto host = HostVariableBytes(facts.graph(), facts.placement(), facts.buffers(), stop);
  if (!host.ok()) return host.status();
  if (*host != kUnknownSize) forecast.set_host_variable_bytes(*host);
  return forecast;
}

}  // namespace

absl::StatusOr<v1::Forecast> MakeForecast(const SwapPlan& plan, ForecastBudget budget,
                                          StepSimulator* simulator, const StopToken& stop) {
  auto forecast = Forecast(plan, plan, budget, simulator, stop);
  if (!forecast.ok()) return forecast;
  auto known = WhateverThePlan(simulator->facts(), stop);
  if (!known.ok()) return known.status();
  forecast->MergeFrom(*known);
  return forecast;
}

absl::Status AddLowerBounds(StepSimulator* simulator, const StopToken& stop,
                            v1::Forecast* forecast) {
  auto bounds = simulator->LowerBounds(stop);
  if (!bounds.ok()) return bounds.status();
  const Workload& workload = simulator->unswapped();
  for (size_t i = 0; i < bounds->size(); ++i) {
    const DeviceBounds& found = (*bounds)[i];
    v1::LowerBounds* out = forecast->mutable_devices(static_cast<int>(i))->mutable_bounds();
    out->set_memory_bytes(found.memory_bytes);
    if (found.memory_op != kNoOp) {
      out->set_memory_node(NameOf(simulator->facts(), workload.ops[found.memory_op].node));
    }
    out->set_copy_out_bytes(found.swap_out_bytes);
    out->set_copy_in_bytes(found.swap_in_bytes);
    out->set_step_time_ns(found.step_time_ns);
  }
  return absl::OkStatus();
}

absl::Status ReportForecasts(const SwapPlan& plan, StepSimulator* simulator, const StopToken& stop,
                             v1::RewriteReport* report) {
  auto known = WhateverThePlan(simulator->facts(), stop);
  if (!known.ok()) return known.status();
  auto temporaries = LargestTemporaries(simulator->facts(), stop);
  if (!temporaries.ok()) return temporaries.status();
  simulator->EndPlanning();  // Frees the costs.
  const SwapPlan none;
  auto before = Forecast(none, none, ForecastBudget::kHardware, simulator, stop);
  if (!before.ok()) return before.status();
  before->MergeFrom(*known);
  if (absl::Status s = AddLowerBounds(simulator, stop, &*before); !s.ok()) return s;
  if (!plan.empty()) {
    if (absl::Status s = simulator->Become(plan, stop); !s.ok()) return s;
    auto after = Forecast(plan, none, ForecastBudget::kHardware, simulator, stop);
    if (!after.ok()) return after.status();
    after->MergeFrom(*known);
    *report->mutable_forecast_after() = *std::move(after);
  }
  *report->mutable_forecast_before() = *std::move(before);
  *report->mutable_temporaries() = {temporaries->begin(), temporaries->end()};
  *report->mutable_hardware() = simulator->facts().ReportHardware();
  for (std::string& name : TargetNames(simulator->facts())) report->add_targets(std::move(name));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Temporary>> LargestTemporaries(const StepFacts& facts,
                                                              const StopToken& stop) {
  constexpr size_t kShown = 5;
  std::vector<v1::Temporary> shown;
  if (!CountsTemporaries(facts.step())) return shown;
  const KernelTemporaries kernels(facts.graph(), facts.shapes().bounds(), facts.hardware(),
                                  facts.layout());
  std::vector<std::pair<int64_t, NodeId>> largest;
  StopPoller poll(stop);
  for (NodeId id(0); id < facts.graph().num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("simulate");
    if (!facts.active_nodes().Computes(id) || facts.placement().node(id) == kHostPlace ||
        !facts.buffers().LaunchesKernel(id)) {
      continue;
    }
    // The measured workspace counts instead.
    if (facts.profile() != nullptr && facts.profile()->workspace_bytes(id) != kNotMeasured)
      continue;
    if (const int64_t bytes = kernels.Of(id).bytes; bytes > 0) largest.push_back({-bytes, id});
  }
  const size_t count = std::min(kShown, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + count, largest.end());
  for (size_t i = 0; i < count; ++i) {
    const NodeId id = largest[i].second;
    v1::Temporary& temporary = shown.emplace_back();
    temporary.set_node(NameOf(facts, id));
    temporary.set_op(ShownName(facts.graph().op(id)));
    temporary.set_bytes(-largest[i].first);
    temporary.set_reason(kernels.Reason(id, kernels.Of(id)));
  }
  return shown;
}

std::vector<std::string> TargetNames(const StepFacts& facts) {
  std::vector<std::string> names;
  for (NodeId id : facts.active_nodes().targets) names.push_back(NameOf(facts, id));
  return names;
}

int64_t CountActiveNodes(const StepFacts& facts) {
  const NodeFlags& flags = facts.active_nodes().flags;
  return std::count(flags.begin(), flags.end(), true);
}

std::vector<v1::Warning> ForecastWarnings(const StepSimulator& simulator) {
  const StepFacts& facts = simulator.facts();
  const WorkloadNotes& notes = simulator.notes();
  std::vector<v1::Warning> warnings;
  if (facts.placement().devices().empty()) {
    warnings.push_back(MakeWarning(v1::WARNING_CODE_NO_GPU,
                                   "no node of this step runs on a GPU: there is nothing to swap, "
                                   "and times are those of the host"));
  }
  if (facts.active_nodes().source == TargetSource::kSinks) {
    warnings.push_back(
        MakeWarning(v1::WARNING_CODE_TARGETS_ARE_SINKS,
                    "no weight updates were found, unlike in a training graph, and no "
                    "targets were given: the step is assumed to run all nodes whose "
                    "outputs are unused, including initializers and savers; give "
                    "the training graph, or name the targets of a step (targets)"));
  }
  if (facts.shapes().ignores_batch_size()) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_BATCH_SIZE_UNUSED,
        absl::StrCat("batch_size is ", facts.step().batch_size(),
                     ", but the graph fixes another batch for all its inputs: sizes "
                     "are the graph's own; leave batch_size out, or take a graph with an open "
                     "batch")));
  }
  if (notes.unknown_buffers > 0) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_UNKNOWN_SIZES,
        absl::StrCat("the size of ", CountText(notes.unknown_buffers, "buffer"),
                     " on GPUs is unknown and counts as 0 bytes, so peaks are too "
                     "low; feeds, batch_size, a graph with _output_shapes or a profile may help")));
  }
  if (const int64_t bounded = CountBoundedBuffers(facts); bounded > 0) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_UPPER_BOUNDS,
        absl::StrCat("the size of ", CountText(bounded, "buffer"),
                     " on GPUs depends on values (Unique, Where and the like) and counts as its "
                     "upper bound, so peaks, times and bounds may be too high; a profile of a real "
                     "run has the sizes")));
  }
  if (notes.unknown_costs > 0) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_UNKNOWN_COSTS,
        absl::StrCat("the cost of ", CountText(notes.unknown_costs, "node"),
                     " is unknown (unknown sizes, function calls) and counts as the launch "
                     "alone, so times are too low; a profile helps")));
  }
  if (notes.loops > 0) {
    warnings.push_back(MakeWarning(
        v1::WARNING_CODE_LOOPS_ONCE,
        absl::StrCat("bodies of loops with unknown iteration counts are simulated once (",
                     CountText(notes.loops, "loop variable"),
                     "), so times of these loops, and peaks if they keep something, are too low; "
                     "give them in loop_counts")));
  }
  if (notes.merges > 0) {
    warnings.push_back(
        MakeWarning(v1::WARNING_CODE_BOTH_BRANCHES,
                    absl::StrCat("both sides of ", CountText(notes.merges, "conditional"),
                                 " are simulated, so times and peaks may "
                                 "be a little too high")));
  }
  if (std::string sides = WorseSides(facts); !sides.empty()) {
    warnings.push_back(MakeWarning(v1::WARNING_CODE_WORSE_SIDE, std::move(sides)));
  }
  return warnings;
}

}  // namespace spillway::core
