#include "rewrite_core/report/simulated_step.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/base/shown_name.h"
#include "rewrite_core/report/tensor_summary.h"

namespace spillway::core {
namespace {

bool IsCopy(const WorkloadOp& op) {
  return op.kind == OpKind::kCopyOut || op.kind == OpKind::kCopyIn;
}

v1::Engine EngineOf(OpKind kind) {
  switch (kind) {
    case OpKind::kCompute:
      return v1::ENGINE_COMPUTE;
    case OpKind::kHost:
      return v1::ENGINE_HOST;
    case OpKind::kCopyOut:
      return v1::ENGINE_COPY_OUT;
    case OpKind::kCopyIn:
      return v1::ENGINE_COPY_IN;
  }
  return v1::ENGINE_UNSPECIFIED;
}

absl::Status CountDistances(const StepFacts& facts, const StopToken& stop,
                            v1::SimulateReport* report) {
  const Graph& graph = facts.graph();
  const Placement& placement = facts.placement();
  const ActiveNodes& active = facts.active_nodes();
  struct Count {
    int64_t edges = 0;
    int64_t bytes = 0;
  };
  std::map<int32_t, Count> counts;
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (!active.Computes(id) || placement.node(id) < 0) continue;
    // Readers are in order of ports; each tensor counts once in a distance.
    std::map<int32_t, int32_t> last_port;
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll.Tick()) return stop.status("simulate");
      const auto [reader, index, port] = readers[i];
      if (port == kControl || !active.Computes(reader) || placement.node(reader) < 0) continue;
      if (facts.conditionals().IsDead(Tensor{id, port})) continue;
      const int32_t distance = facts.topology().level(reader) - facts.topology().level(id);
      if (distance <= 0) continue;  // The back edge of a loop.
      Count& count = counts[distance];
      ++count.edges;
      const auto [it, is_first] = last_port.try_emplace(distance, port);
      if (!is_first && it->second == port) continue;
      it->second = port;
      const int64_t bytes = facts.shapes().size_bytes({id, port});
      if (bytes == kUnknownSize) continue;
      count.bytes = SaturatingAdd(count.bytes, bytes);
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

// Describes the timeline of one GPU, its peak, and the buffers live then: `ids`, sorted by size.
absl::Status AddMemory(const StepFacts& facts, const StepResult& result, const DeviceUse& use,
                       std::vector<BufferId> ids, const StopToken& stop, v1::DeviceMemory* memory) {
  memory->set_resident_bytes(use.resident_bytes);
  const auto add = [memory](int64_t time_ns, int64_t bytes) {
    v1::MemorySample* sample = memory->add_timeline();
    sample->set_time_ns(time_ns);
    sample->set_bytes(bytes);
    if (bytes <= memory->peak_bytes()) return;
    memory->set_peak_bytes(bytes);
    memory->set_peak_ns(time_ns);
  };
  StopPoller poll(stop);
  for (const MemoryPoint& point : use.timeline) {
    if (poll.Tick()) return stop.status("simulate");
    // Includes changes that last no time, because the peak may be one of them.
    if (point.high_bytes > point.bytes) add(point.time_ns, point.high_bytes);
    add(point.time_ns, point.bytes);
  }
  const std::vector<WorkloadBuffer>& buffers = result.buffers;
  const auto is_larger = [&buffers](BufferId a, BufferId b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  };
  if (!PolledSort(ids.begin(), ids.end(), is_larger, &poll)) return stop.status("simulate");
  for (BufferId id : ids) {
    if (poll.Tick()) return stop.status("simulate");
    v1::LiveTensor* tensor = memory->add_live_at_peak();
    *tensor->mutable_tensor() = Summarize(facts.graph(), facts.shapes(), buffers[id].tensor);
    tensor->mutable_tensor()->set_size_bytes(buffers[id].bytes);
    tensor->set_resident(buffers[id].resident);
  }
  return absl::OkStatus();
}

absl::Status AddMemories(const StepFacts& facts, const StepResult& result,
                         const SimulationResult& run, const StopToken& stop,
                         v1::SimulateReport* report) {
  StopPoller poll(stop);
  const std::vector<WorkloadBuffer>& buffers = result.buffers;
  std::vector<std::vector<BufferId>> live(run.devices.size());
  for (BufferId id(0); id < static_cast<int32_t>(buffers.size()); ++id) {
    if (poll.Tick()) return stop.status("simulate");
    if (buffers[id].resident && buffers[id].device >= 0) live[buffers[id].device].push_back(id);
  }
  for (size_t i = 0; i < live.size(); ++i) {
    const DeviceUse& use = run.devices[i];
    live[i].insert(live[i].end(), use.at_peak.begin(), use.at_peak.end());
    v1::DeviceMemory* memory = report->add_memory();
    memory->set_device(facts.placement().devices()[i]);
    absl::Status status = AddMemory(facts, result, use, std::move(live[i]), stop, memory);
    if (!status.ok()) return status;
  }
  return CountDistances(facts, stop, report);
}

// `run` is a run of `workload`.
absl::Status AddTrace(const StepFacts& facts, const Workload& workload, const SimulationResult& run,
                      const StopToken& stop, v1::StepTrace* trace) {
  StopPoller poll(stop);
  std::vector<OpId> ran;
  std::vector<OpId> writer(workload.buffers.size(), kNoOp);  // The copy to the host that writes
                                                             // each buffer.
  for (OpId id(0); id < static_cast<int32_t>(workload.ops.size()); ++id) {
    if (poll.Tick()) return stop.status("simulate");
    const OpTimes& times = run.times[id];
    if (times.given_ns == OpTimes::kNeverRun) continue;
    const WorkloadOp& op = workload.ops[id];
    if (!IsCopy(op) && times.end_ns == times.start_ns) continue;
    ran.push_back(id);
    if (op.kind != OpKind::kCopyOut) continue;
    for (BufferId written : workload.writes[id]) writer[written] = id;
  }
  const auto is_earlier = [&run](OpId a, OpId b) {
    return run.times[a].start_ns < run.times[b].start_ns;
  };
  if (!PolledSort(ran.begin(), ran.end(), is_earlier, &poll)) return stop.status("simulate");
  std::vector<int32_t> place(workload.ops.size(), -1);  // The index in the trace.
  for (OpId id : ran) {
    if (poll.Tick()) return stop.status("simulate");
    const WorkloadOp& op = workload.ops[id];
    const OpTimes& times = run.times[id];
    place[id] = trace->spans_size();
    v1::TraceSpan* span = trace->add_spans();
    if (op.node != kNoNode) span->set_node(ShownName(facts.graph().name(op.node)));
    span->set_engine(EngineOf(op.kind));
    if (op.kind != OpKind::kHost) span->set_device(op.device);
    span->set_start_ns(times.start_ns);
    span->set_duration_ns(times.end_ns - times.start_ns);
    span->set_given_ns(times.given_ns);
    span->set_waited_ns(times.given_ns - times.asked_ns);
    if (!IsCopy(op)) continue;
    const BufferId read = workload.reads[id][0];
    span->set_bytes(workload.buffers[read].bytes);
    // A copy to the host ends before its data is copied back.
    if (op.kind != OpKind::kCopyIn || writer[read] == kNoOp) continue;
    if (place[writer[read]] >= 0) span->set_copied_out(place[writer[read]]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DescribeSimulation(const v1::SimulateOptions& options, ForecastBudget budget,
                                StepSimulator* simulator, const StopToken& stop,
                                v1::SimulateReport* report) {
  const StepFacts& facts = simulator->facts();
  StepTerms terms;
  if (budget == ForecastBudget::kHardware) terms = StepTerms::AllGpus(facts.Budgets());
  terms.always_synchronous = true;
  terms.record_memory = options.memory();
  terms.record_operations = options.trace();
  const auto result = simulator->Simulate(SwapPlan(), terms, stop);
  if (!result.ok()) return result.status();
  const bool is_synchronous = options.execution() == v1::EXECUTION_SYNCHRONOUS;
  const SimulationResult& run = is_synchronous ? result->synchronous : result->launch_ahead;
  v1::SimulatedStep* step = report->mutable_simulated();
  step->set_execution(is_synchronous ? v1::EXECUTION_SYNCHRONOUS : v1::EXECUTION_LAUNCHED_AHEAD);
  step->set_unlimited_memory(budget == ForecastBudget::kNone);
  step->set_step_time_ns(run.step_time_ns);
  if (options.memory()) {
    absl::Status status = AddMemories(facts, *result, run, stop, report);
    if (!status.ok()) return status;
  }
  if (!options.trace()) return absl::OkStatus();
  return AddTrace(facts, simulator->unswapped(), run, stop, report->mutable_trace());
}

}  // namespace spillway::core
