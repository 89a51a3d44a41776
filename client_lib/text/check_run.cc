#include "client_lib/text/check_run.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::text {
namespace {

using Swaps = google::protobuf::RepeatedPtrField<v1::TensorSwap>;

absl::string_view ProducerOf(const v1::TensorSwap& swap) {
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
    for (const v1::TensorSwap& swap : swaps) {
      const absl::optional<int64_t> out = Moved(swap.swap_out(), {ProducerOf(swap)});
      outs += out.has_value();
      bytes_out += out.value_or(0);
      unknown += !swap.has_size_bytes();
      planned_out_bytes += swap.size_bytes();
      for (const v1::SwapIn& back : swap.swap_ins()) {
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
    if (planned_out_bytes == 0 && unknown > 0) {
      check_->mutable_copy_out_bytes()->clear_planned();
      check_->mutable_copy_in_bytes()->clear_planned();
    }
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
// ran. Swaps that name no device may be of any.
std::string SeenAs(const std::string& device, const Swaps& swaps, const CheckTrace& trace) {
  std::map<absl::string_view, int> places;
  for (const v1::TensorSwap& swap : swaps) {
    const auto producer = trace.nodes.find(ProducerOf(swap));
    if (producer == trace.nodes.end()) continue;
    if (!swap.device().empty() && swap.device() != device) continue;
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
  // TensorFlow places nodes without a device on the first GPU, if any, otherwise on the CPU.
  if (!device.empty() || trace.devices.empty()) return "";
  return std::string(gpus.empty() ? trace.devices[0] : gpus[0]);
}

template <typename Map>
void SetSeen(const Map& peaks, const std::string& device, v1::CheckedFigure* figure) {
  const auto found = peaks.find(device);
  if (found != peaks.end()) figure->set_seen(found->second);
}

void AddDevice(const std::string& name, const v1::Forecast& forecast, const Swaps& swaps,
               const CheckTrace& trace, v1::RunCheck* check) {
  v1::CheckedDevice& checked = *check->add_devices();
  checked.set_device(name);
  checked.set_seen_as(SeenAs(name, swaps, trace));
  for (const v1::DeviceForecast& device : forecast.devices()) {
    if (device.device() != name) continue;
    checked.mutable_step_peak_bytes()->set_planned(device.peak_bytes() - device.resident_bytes());
    checked.mutable_in_use_peak_bytes()->set_planned(device.peak_bytes());
  }
  SetSeen(trace.allocated_peak_bytes, checked.seen_as(), checked.mutable_step_peak_bytes());
  SetSeen(trace.in_use_peak_bytes, checked.seen_as(), checked.mutable_in_use_peak_bytes());
}

// The GPUs of the plan, then those that only the forecast has.
void AddDevices(const v1::RewriteReport& report, const v1::Forecast& forecast,
                const CheckTrace& trace, v1::RunCheck* check) {
  std::set<std::string> added;
  const auto add = [&](const std::string& name) {
    if (added.insert(name).second) AddDevice(name, forecast, report.swaps(), trace, check);
  };
  for (const v1::DeviceReport& device : report.devices()) add(device.device());
  for (const v1::DeviceForecast& device : forecast.devices()) add(device.device());
}

absl::Status CheckSameGraph(const Swaps& swaps, const CheckTrace& trace) {
  for (const v1::TensorSwap& swap : swaps) {
    if (trace.nodes.contains(swap.swap_out()) || trace.nodes.contains(ProducerOf(swap))) {
      return absl::OkStatus();
    }
  }
  if (swaps.empty()) return absl::OkStatus();
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("run_metadata belongs to another graph: neither ",
                   core::Quoted(swaps[0].tensor()),
                   " nor any other tensor that this graph swaps is in it; give the RunMetadata of "
                   "a training step"),
      {{"option", "run_metadata"}});
}

void AddUnplanned(const Swaps& swaps, const CheckTrace& trace, v1::RunCheck* check) {
  std::set<absl::string_view> planned;
  for (const v1::TensorSwap& swap : swaps) {
    planned.insert(swap.swap_out());
    for (const v1::SwapIn& back : swap.swap_ins()) planned.insert(back.name());
  }
  std::set<absl::string_view> found;  // Sorted, because the trace's nodes are not.
  for (const auto& [name, node] : trace.nodes) {
    if (IsNamedLikeSwap(name) && !IsAdded(name) && planned.count(name) == 0) found.insert(name);
  }
  for (const absl::string_view name : found) check->add_unplanned(std::string(name));
}

}  // namespace

absl::StatusOr<v1::RunCheck> CheckRun(const v1::RewriteReport& report, const CheckTrace& trace) {
  if (absl::Status status = CheckSameGraph(report.swaps(), trace); !status.ok()) return status;
  const v1::Forecast& forecast =
      report.has_forecast_after() ? report.forecast_after() : report.forecast_before();
  v1::RunCheck check;
  Ran(trace, &check).Add(report.swaps());
  v1::CheckedFigure& step_time = *check.mutable_step_time_ns();
  if (forecast.has_step_time_ns()) step_time.set_planned(forecast.step_time_ns());
  if (trace.step_ns.has_value()) step_time.set_seen(*trace.step_ns);
  AddDevices(report, forecast, trace, &check);
  AddUnplanned(report.swaps(), trace, &check);
  *check.mutable_hardware() = report.hardware();
  return check;
}

}  // namespace spillway::text
