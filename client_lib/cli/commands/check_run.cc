#include "client_lib/cli/commands/check_run.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client_lib/cli/commands/check_trace.h"
#include "client_lib/cli/commands/per_graph.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

using Swaps = google::protobuf::RepeatedPtrField<v1::FoundSwap>;

absl::string_view ProducerOf(const v1::FoundSwap& swap) {
  return absl::string_view(swap.tensor()).substr(0, swap.tensor().rfind(':'));
}

// Nodes that the partitioner adds between devices: `node/_12`.
bool IsAdded(absl::string_view name) {
  const size_t mark = name.rfind("/_");
  if (mark == absl::string_view::npos || mark + 2 == name.size()) return false;
  const absl::string_view number = name.substr(mark + 2);
  return std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
}

// The core's names of swap nodes: `lms/swapout_...` in any scope.
bool IsNamedLikeSwap(absl::string_view name) {
  for (const absl::string_view part : {"lms/swapout_", "lms/swapin_"}) {
    const size_t found = name.find(part);
    if (found != absl::string_view::npos && (found == 0 || name[found - 1] == '/')) return true;
  }
  return false;
}

// Finds the swap nodes that ran and the bytes that they moved. Names must match exactly: the
// partitioner adds other nodes that begin with them.
class Ran {
 public:
  Ran(const CheckTrace& trace, v1::RunCheck* check) : trace_(trace), check_(check) {}

  void Add(const Swaps& swaps) {
    int64_t outs = 0, ins = 0, bytes_out = 0, bytes_in = 0, planned_ins = 0, planned_out_bytes = 0,
            planned_in_bytes = 0, unknown = 0;
    for (const v1::FoundSwap& swap : swaps) {
      const absl::optional<int64_t> out = Moved(swap.swap_out(), {ProducerOf(swap)});
      outs += out.has_value();
      bytes_out += out.value_or(0);
      unknown += !swap.has_size_bytes();
      planned_out_bytes += swap.size_bytes();
      for (const v1::FoundSwapIn& back : swap.swap_ins()) {
        std::vector<absl::string_view> readers;
        for (const v1::InputRef& reader : back.consumers()) readers.push_back(reader.node());
        const absl::optional<int64_t> in = Moved(back.name(), readers);
        ins += in.has_value();
        bytes_in += in.value_or(0);
        ++planned_ins;
        planned_in_bytes += swap.size_bytes();
      }
    }
    Set(swaps.size(), outs, check_->mutable_swap_outs());
    Set(planned_ins, ins, check_->mutable_swap_ins());
    Set(planned_out_bytes, bytes_out, check_->mutable_copy_out_bytes());
    Set(planned_in_bytes, bytes_in, check_->mutable_copy_in_bytes());
    check_->set_unknown_size_count(unknown);
  }

 private:
  static void Set(int64_t planned, int64_t seen, v1::CheckedFigure* figure) {
    figure->set_planned(planned);
    figure->set_seen(seen);
  }

  // Returns the bytes moved between the node and the others; nullopt if the node did not run.
  absl::optional<int64_t> Moved(const std::string& name,
                                const std::vector<absl::string_view>& others) {
    const auto node = trace_.nodes.find(name);
    if (node == trace_.nodes.end()) {
      check_->add_missing(name);
      return absl::nullopt;
    }
    for (const absl::string_view other : others) {
      const auto at = trace_.nodes.find(other);
      if (at == trace_.nodes.end() || at->second.device == node->second.device) continue;
      return node->second.output_bytes.value_or(0);
    }
    check_->add_unmoved(name);
    return 0;
  }

  const CheckTrace& trace_;
  v1::RunCheck* const check_;
};

// Returns the last part of a device's name in lower case, `gpu:0` for `/job:worker/device:GPU:0`;
// empty if the name contains no device.
std::string PlaceOf(absl::string_view device) {
  const std::string small = absl::AsciiStrToLower(device);
  for (const absl::string_view kind : {"gpu:", "cpu:"}) {
    const size_t found = small.rfind(std::string(kind));
    if (found == std::string::npos) continue;
    const absl::string_view number = absl::string_view(small).substr(found + kind.size());
    if (!number.empty() && std::all_of(number.begin(), number.end(), absl::ascii_isdigit)) {
      return small.substr(found);
    }
  }
  return "";
}

// Returns where most producers of the device's swapped tensors ran, or a place by its name if none
// ran.
std::string SeenAs(const std::string& device, const Swaps& swaps, const CheckTrace& trace) {
  std::map<absl::string_view, int> places;
  for (const v1::FoundSwap& swap : swaps) {
    const auto producer = trace.nodes.find(ProducerOf(swap));
    if (producer == trace.nodes.end()) continue;
    // Skips GPUs that the device's name excludes.
    const std::string place = PlaceOf(producer->second.device);
    if (!PlaceOf(device).empty() && absl::StartsWith(place, "gpu") && place != PlaceOf(device)) {
      continue;
    }
    ++places[producer->second.device];
  }
  const auto most =
      std::max_element(places.begin(), places.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != places.end()) return std::string(most->first);
  const std::string wanted = PlaceOf(device);
  std::vector<absl::string_view> gpus;
  for (const absl::string_view name : trace.devices) {
    if (!wanted.empty() && PlaceOf(name) == wanted) return std::string(name);
    if (absl::StartsWith(PlaceOf(name), "gpu")) gpus.push_back(name);
  }
  // TensorFlow places nodes without a device on the first GPU, or on the CPU if there is none.
  if (!device.empty() || trace.devices.empty()) return "";
  return std::string(gpus.empty() ? trace.devices[0] : gpus[0]);
}

template <typename Map>
void SetSeen(const Map& peaks, const std::string& device, v1::CheckedFigure* figure) {
  const auto found = peaks.find(device);
  if (found != peaks.end()) figure->set_seen(found->second);
}

void AddDevices(const v1::Forecast& forecast, const Swaps& swaps, const CheckTrace& trace,
                v1::RunCheck* check) {
  for (const v1::DeviceForecast& device : forecast.devices()) {
    v1::CheckedDevice& checked = *check->add_devices();
    checked.set_device(device.device());
    checked.set_seen_as(SeenAs(device.device(), swaps, trace));
    checked.mutable_step_peak_bytes()->set_planned(device.peak_bytes() - device.resident_bytes());
    checked.mutable_in_use_peak_bytes()->set_planned(device.peak_bytes());
    SetSeen(trace.allocated_peak_bytes, checked.seen_as(), checked.mutable_step_peak_bytes());
    SetSeen(trace.in_use_peak_bytes, checked.seen_as(), checked.mutable_in_use_peak_bytes());
  }
}

absl::Status CheckSameGraph(const Swaps& swaps, const CheckTrace& trace) {
  for (const v1::FoundSwap& swap : swaps) {
    if (trace.nodes.contains(swap.swap_out()) || trace.nodes.contains(ProducerOf(swap))) {
      return absl::OkStatus();
    }
  }
  if (swaps.empty()) return absl::OkStatus();
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("RUN_METADATA is of another graph: neither ", core::Quoted(swaps[0].tensor()),
                   " nor any other tensor that this graph swaps is in it; give the RunMetadata of "
                   "a training step"),
      {{"option", "RUN_METADATA"}});
}

// Rewords the core's errors about a profile: here the profile is the RunMetadata of a run.
absl::Status AsOfRun(const absl::Status& status) {
  constexpr absl::string_view kProfile = "profile ";
  const absl::string_view said = status.message();
  const auto info = ErrorInfoOf(status);
  const auto option = info.metadata().find("option");
  if (option == info.metadata().end() || option->second != "profile" ||
      !absl::StartsWith(said, kProfile)) {
    return status;
  }
  const absl::string_view what = said.substr(kProfile.size(), said.rfind("; ") - kProfile.size());
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat("RUN_METADATA ", what,
                                         "; give the RunMetadata of a training step of this graph"),
                            {{"option", "RUN_METADATA"}});
}

void AddUnplanned(const Swaps& swaps, const CheckTrace& trace, v1::RunCheck* check) {
  std::set<absl::string_view> planned;
  for (const v1::FoundSwap& swap : swaps) {
    planned.insert(swap.swap_out());
    for (const v1::FoundSwapIn& back : swap.swap_ins()) planned.insert(back.name());
  }
  std::set<absl::string_view> found;  // Sorted, because the trace's nodes are not.
  for (const auto& [name, node] : trace.nodes) {
    if (IsNamedLikeSwap(name) && !IsAdded(name) && planned.count(name) == 0) found.insert(name);
  }
  for (const absl::string_view name : found) check->add_unplanned(std::string(name));
}

// Returns the graph before the rewrite, or `graph_def` itself if Spillway did not rewrite it.
absl::StatusOr<std::string> Original(const Client& client, absl::string_view graph_def,
                                     const CallOptions& call) {
  const absl::StatusOr<v1::RewriteResponse> stripped = client.Strip(graph_def, call);
  if (absl::IsFailedPrecondition(stripped.status())) return std::string(graph_def);
  if (!stripped.ok()) return stripped.status();
  return stripped->graph_def().empty() ? std::string(graph_def) : stripped->graph_def();
}

}  // namespace

absl::StatusOr<CheckedRun> CheckRun(const Client& client, absl::string_view graph_def,
                                    absl::string_view original, v1::SimulateOptions options,
                                    absl::string_view run_metadata, const CallOptions& call) {
  const absl::Time deadline = absl::Now() + call.timeout;
  const absl::StatusOr<CheckTrace> trace = ReadCheckTrace(run_metadata);
  if (!trace.ok()) return trace.status();
  CheckedRun run;
  if (original.empty()) {
    absl::StatusOr<std::string> found = Original(client, graph_def, Until(deadline, call));
    if (!found.ok()) return found.status();
    run.original = *std::move(found);
  } else {
    run.original = std::string(original);
  }
  v1::GraphDiff diff;
  if (run.original != graph_def) {
    absl::StatusOr<v1::GraphDiff> found =
        client.Diff(run.original, graph_def, Until(deadline, call));
    if (!found.ok()) return found.status();
    diff = *std::move(found);
  }
  const Swaps& swaps = diff.swaps();
  if (absl::Status status = CheckSameGraph(swaps, *trace); !status.ok()) return status;

  const absl::StatusOr<v1::SimulateReport> simulated =
      client.Simulate(graph_def, options, Until(deadline, call));
  if (!simulated.ok()) return simulated.status();
  options.mutable_step()->set_profile(run_metadata.data(), run_metadata.size());
  const absl::StatusOr<v1::SimulateReport> corrected =
      client.Simulate(graph_def, options, Until(deadline, call));
  if (!corrected.ok()) return AsOfRun(corrected.status());

  Ran(*trace, &run.check).Add(swaps);
  v1::CheckedFigure& step_time = *run.check.mutable_step_time_ns();
  if (simulated->forecast().has_step_time_ns()) {
    step_time.set_planned(simulated->forecast().step_time_ns());
  }
  if (trace->step_ns.has_value()) step_time.set_seen(*trace->step_ns);
  if (corrected->forecast().has_step_time_ns()) {
    run.check.set_corrected_step_time_ns(corrected->forecast().step_time_ns());
  }
  AddDevices(simulated->forecast(), swaps, *trace, &run.check);
  AddUnplanned(swaps, *trace, &run.check);
  *run.check.mutable_hardware() = simulated->hardware();
  return run;
}

}  // namespace spillway::cli
