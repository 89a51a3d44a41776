#include "client_lib/text/forecast_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client_lib/text/machine_text.h"
#include "client_lib/text/memory_table.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/rewrite_figures.h"

namespace spillway::text {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// The size of the chart of memory over time.
constexpr int kBarRows = 24;
constexpr int kBarWidth = 60;

// GPUs side by side; further ones go below.
constexpr int kMaxColumns = 4;
// The maximum number of GPUs that are listed with a memory size of their own.
constexpr int kShownMemories = 4;

const char* kNotKnown = "-";

constexpr char kNoGpu[] = "no node of this step runs on a GPU";

// For a graph that was returned unchanged.
const char* kAsItIs = "as it is";

// The execution model of the reported times.
const char* kLaunchedAhead = "of steps launched ahead, as TensorFlow runs them";

// Whether the step fits as far as is known.
bool MayFit(const v1::Forecast& forecast) { return forecast.fit() != v1::FIT_DOES_NOT_FIT; }

// "yes", "no" or "unknown".
const char* FitText(const v1::Forecast& forecast) {
  switch (forecast.fit()) {
    case v1::FIT_FITS:
      return "yes";
    case v1::FIT_DOES_NOT_FIT:
      return "no";
    default:
      return "unknown";
  }
}

// A step that fits under only one of the two execution models has a time, but does not fit.
bool HasStep(const v1::Forecast& forecast) {
  return MayFit(forecast) && forecast.has_step_time_ns();
}

std::string StepTime(const v1::Forecast& forecast) {
  return HasStep(forecast) ? core::DurationText(absl::Nanoseconds(forecast.step_time_ns()))
                           : kNotKnown;
}

// "81%": the share of the step that a part takes.
std::string Share(int64_t part, int64_t whole) {
  return whole > 0 ? absl::StrFormat("%.0f%%", 100.0 * part / whole) : kNotKnown;
}

// "14.86 GiB per GPU", "14.86 GiB per GPU (/gpu:1: 12.00 GiB)".
std::string MemoriesText(const v1::Hardware& hardware) {
  std::string others;
  for (int i = 0; i < hardware.gpu_memories_size(); ++i) {
    const v1::GpuMemory& memory = hardware.gpu_memories(i);
    absl::StrAppend(&others, i == 0 ? " (" : ", ");
    if (i == kShownMemories) {
      absl::StrAppend(&others, "...");
      break;
    }
    absl::StrAppend(&others, memory.device(), ": ", core::BytesText(memory.gpu_memory_bytes()));
  }
  return absl::StrCat(core::BytesText(hardware.gpu_memory_bytes()), " per GPU", others,
                      others.empty() ? "" : ")");
}

// A graph whose nodes have no device runs on one GPU.
std::string GpuText(const std::string& device) { return device.empty() ? "the GPU" : device; }

// "13.37 GiB per GPU": the budget of a step.
std::string BudgetText(const v1::HardwareReport& report) {
  const auto& others = report.hardware().gpu_memories();
  if (others.empty())
    return absl::StrCat(core::BytesText(report.device_budget_bytes()), " per GPU");
  return absl::StrCat("what each GPU has: ", MemoriesText(report.hardware()));
}

std::string PresetText(const v1::Hardware& hardware) {
  return hardware.preset().empty() ? "custom" : hardware.preset();
}

// Behind the memory of GPUs: who said it, and what is left free of it.
std::string MemoryRemarks(const v1::Hardware& hardware) {
  return absl::StrCat(
      hardware.gpu_memory_source() == v1::MEMORY_SOURCE_NVIDIA_SMI ? " by nvidia-smi" : "",
      hardware.allocator_reserve() > 0
          ? absl::StrFormat(" less %.3g%%", 100 * hardware.allocator_reserve())
          : "");
}

std::string LinkText(const v1::Hardware& hardware) {
  return absl::StrFormat("%.3g GB/s out and %.3g GB/s in", hardware.d2h_bytes_per_s() / 1e9,
                         hardware.h2d_bytes_per_s() / 1e9);
}

std::string HardwareText(const v1::HardwareReport& report) {
  const v1::Hardware& hardware = report.hardware();
  return absl::StrCat(
      PresetText(hardware), ", ", MemoriesText(hardware), MemoryRemarks(hardware), ", ",
      hardware.internal_fragmentation_fraction() > 0
          ? absl::StrCat("internal_fragmentation_fraction ",
                         hardware.internal_fragmentation_fraction(), ", ")
          : "",
      core::BytesText(hardware.host_memory_bytes()), " of host memory, ", LinkText(hardware));
}

// Without what a table of memory beside it says.
std::string ShortHardwareText(const v1::Hardware& hardware) {
  return absl::StrCat(PresetText(hardware), ", ", core::BytesText(hardware.gpu_memory_bytes()),
                      " per GPU", MemoryRemarks(hardware), ", ", LinkText(hardware));
}

// "all that a, b and c need".
template <typename Names>
std::string TargetsText(const Names& targets) {
  constexpr int kShown = 3;
  std::string text = "all that ";
  if (targets.size() > kShown) {
    absl::StrAppend(&text, targets[0], " and ", targets.size() - 1, " others need");
    return text;
  }
  for (int i = 0; i < targets.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : i + 1 < targets.size() ? ", " : " and ", targets[i]);
  }
  return absl::StrCat(text, targets.size() == 1 ? " needs" : " need");
}

std::string StepText(const v1::SimulateReport& report) {
  return absl::StrCat(FormatCount(report.node_count(), "node"), ": ",
                      TargetsText(report.targets()));
}

template <typename Report>
void AddWarningsOf(const Report& report, Style style, Rows* facts) {
  const auto add = [&](bool about_the_plan) {
    for (const v1::Warning& warning : report.warnings()) {
      if ((warning.code() == v1::WARNING_CODE_LITTLE_SWAPPED) != about_the_plan) continue;
      facts->push_back({"warning", style.WithOptions(warning.message())});
    }
  };
  add(/*about_the_plan=*/true);  // First: there may be room for one alone.
  if (const std::string assumed = AssumedText(report.hardware()); !assumed.empty()) {
    facts->push_back({"warning", assumed});
  }
  add(/*about_the_plan=*/false);
}

// What was simulated in place of the graph's calls.
std::string InliningText(const v1::Inlining& inlining) {
  std::string text;
  if (inlining.inlined_call_count() > 0) {
    absl::StrAppend(&text, FormatCount(inlining.inlined_call_count(), "call"),
                    " of functions inlined, ", FormatCount(inlining.added_node_count(), "node"),
                    " more");
  }
  if (inlining.kept_call_count() > 0) {
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    FormatCount(inlining.kept_call_count(), "call"), " of functions not inlined");
  }
  return text;
}

// Why it is unknown whether a step fits, and which options to give.
void AddUnknown(const char* label, const v1::Forecast& forecast, Rows* facts) {
  for (const v1::FitUnknown& cause : forecast.fit_unknown()) {
    facts->push_back({label, cause.message()});
    label = "";
  }
}

// The known share of the step, if not all.
void AddKnownShare(const char* label, const v1::Forecast& forecast, Rows* facts) {
  const v1::KnownShare& share = forecast.known_share();
  if (share.unknown_tensor_count() == 0 && share.bounded_tensor_count() == 0 &&
      share.unknown_node_count() == 0) {
    return;
  }
  std::string text =
      absl::StrCat("the size of ", share.tensor_count() - share.unknown_tensor_count(), " of ",
                   FormatCount(share.tensor_count(), "tensor"), " on GPUs");
  if (share.bounded_tensor_count() > 0) {
    absl::StrAppend(&text, " (", share.bounded_tensor_count(), " by an upper bound)");
  }
  absl::StrAppend(&text, ", the cost of ", share.node_count() - share.unknown_node_count(), " of ",
                  FormatCount(share.node_count(), "node"), " that compute");
  facts->push_back({label, text});
}

// By how much the step exceeds a budget, in one sentence without a full stop.
std::string ExcessText(const v1::Forecast& forecast) {
  const v1::OutOfMemory& oom = forecast.out_of_memory();
  int64_t peak = forecast.host_peak_bytes();
  if (!oom.host()) {
    for (const v1::DeviceForecast& device : forecast.devices()) {
      if (device.device() == oom.device()) peak = device.peak_bytes();
    }
  }
  const std::string budget = core::BytesText(oom.budget_bytes());
  const std::string excess = core::BytesText(peak - oom.budget_bytes());
  // The peak may be lower if waiting for another budget changed the order.
  const bool is_known = peak > oom.budget_bytes();
  if (oom.host()) {
    if (!is_known) return "the copies would need more pinned host memory than there is";
    return absl::StrCat("the copies would need ", core::BytesText(peak), " of pinned host memory, ",
                        excess, " more than there is");
  }
  const std::string gpu = GpuText(oom.device());
  if (!is_known && oom.fragmented()) {
    return absl::StrCat("what is free of the ", budget, " of ", gpu, " is fragmented");
  }
  if (!is_known) return absl::StrCat(gpu, " would need more than its ", budget);
  return absl::StrCat(gpu, " would need ", core::BytesText(peak), ", ", excess, " more than its ",
                      budget);
}

// Where memory ran out.
std::string OutOfMemoryText(const v1::OutOfMemory& oom) {
  return absl::StrCat(oom.node(), " asks for ", core::BytesText(oom.requested_bytes()), ", where ",
                      core::BytesText(oom.in_use_bytes()), " of ",
                      core::BytesText(oom.budget_bytes()),
                      oom.fragmented() ? " are in use, and the rest is fragmented" : " are in use");
}

// One GPU in one forecast.
struct Column {
  std::string head;
  const v1::Forecast* forecast;
  const v1::DeviceForecast* device;
};

// Adds one row for each figure of a GPU, with one column for each of `columns`.
void AddDeviceRows(const std::vector<Column>& columns, Rows* rows) {
  const auto add = [&](const char* what, const auto& cell) {
    rows->push_back({what});
    for (const Column& column : columns) {
      rows->back().push_back(column.device == nullptr ? kNotKnown
                                                      : cell(*column.forecast, *column.device));
    }
  };
  using F = v1::Forecast;
  using D = v1::DeviceForecast;
  add("peak memory", [](const F&, const D& d) { return core::BytesText(d.peak_bytes()); });
  add("  resident", [](const F&, const D& d) { return core::BytesText(d.resident_bytes()); });
  add("copied out", [](const F&, const D& d) { return core::BytesText(d.copy_out_bytes()); });
  add("copied in", [](const F&, const D& d) { return core::BytesText(d.copy_in_bytes()); });
  if (std::none_of(columns.begin(), columns.end(),
                   [](const Column& c) { return HasStep(*c.forecast); })) {
    return;
  }
  rows->push_back({"of the step's time"});
  const auto add_share = [&](const char* what, const auto& part) {
    add(what, [&](const F& f, const D& d) {
      return HasStep(f) ? Share(part(d), f.step_time_ns()) : kNotKnown;
    });
  };
  add_share("  computing", [](const D& d) { return d.compute_ns(); });
  add_share("  waiting", [](const D& d) { return d.stall_ns(); });
  add_share("  copying out", [](const D& d) { return d.copy_out_ns(); });
  add_share("  copying in", [](const D& d) { return d.copy_in_ns(); });
}

// The GPUs side by side.
std::string GpuTables(const v1::Forecast& forecast, Style style) {
  std::string text;
  for (int first = 0; first < forecast.devices_size(); first += kMaxColumns) {
    std::vector<Column> columns;
    Rows rows = {{"each step"}};
    for (int i = first; i < std::min(first + kMaxColumns, forecast.devices_size()); ++i) {
      const v1::DeviceForecast& device = forecast.devices(i);
      columns.push_back({device.device().empty() ? "GPU" : device.device(), &forecast, &device});
      rows[0].push_back(columns.back().head);
    }
    AddDeviceRows(columns, &rows);
    absl::StrAppend(&text, FormatTable(rows, style));
  }
  return text;
}

Rows StepFacts(const v1::Forecast& forecast) {
  Rows facts = {
      {"host memory", absl::StrCat(core::BytesText(forecast.host_peak_bytes()), " at most")}};
  if (!MayFit(forecast)) facts.push_back({"ran out", OutOfMemoryText(forecast.out_of_memory())});
  AddUnknown("unknown", forecast, &facts);
  AddKnownShare("known", forecast, &facts);
  if (MayFit(forecast) && forecast.has_synchronous_step_time_ns()) {
    facts.push_back(
        {"synchronous",
         absl::StrCat(core::DurationText(absl::Nanoseconds(forecast.synchronous_step_time_ns())),
                      ", if no op were launched ahead of the GPU")});
  }
  return facts;
}

// The potential of swapping: lower bounds are no promises. Lists only what matters: the GPU with
// the greatest need if the step fits, otherwise those that lack memory. Empty if host memory is the
// limit.
void AddSwapping(const v1::SimulateReport& report, Rows* facts) {
  const v1::Forecast& forecast = report.forecast();
  if (forecast.out_of_memory().host()) return;
  const v1::DeviceForecast* most = nullptr;
  for (const v1::DeviceForecast& device : forecast.devices()) {
    if (!device.has_bounds()) return;
    const v1::LowerBounds& bounds = device.bounds();
    if (most == nullptr || bounds.memory_bytes() > most->bounds().memory_bytes()) most = &device;
    if (MayFit(forecast) || device.peak_bytes() <= device.budget_bytes()) continue;
    const std::string where =
        forecast.devices_size() > 1 ? absl::StrCat("on ", device.device(), ": ") : "";
    const char* label = facts->back()[0] == "swapping" ? "" : "swapping";
    if (bounds.memory_bytes() > device.budget_bytes()) {
      facts->push_back({label, absl::StrCat(where, "cannot make it fit: with what is resident, ",
                                            bounds.memory_node(), " alone needs ",
                                            core::BytesText(bounds.memory_bytes()))});
      continue;
    }
    facts->push_back(
        {label,
         absl::StrCat(where, "might make it fit: any plan copies at least ",
                      core::BytesText(bounds.copy_out_bytes()), " out and ",
                      core::BytesText(bounds.copy_in_bytes()), " in, and a step takes at least ",
                      core::DurationText(absl::Nanoseconds(bounds.step_time_ns())),
                      "; none can do with less than ", core::BytesText(bounds.memory_bytes()), " (",
                      bounds.memory_node(), ")")});
  }
  if (!MayFit(forecast) || most == nullptr) return;
  facts->push_back({"swapping", absl::StrCat("no plan can do with less than ",
                                             core::BytesText(most->bounds().memory_bytes()),
                                             forecast.devices_size() > 1 ? " on " : "",
                                             forecast.devices_size() > 1 ? most->device() : "",
                                             " (", most->bounds().memory_node(), ")")});
}

// The same in short, of the GPU that ran out.
void AddShortSwapping(const v1::Forecast& forecast, Rows* facts) {
  if (forecast.out_of_memory().host()) return;
  for (const v1::DeviceForecast& device : forecast.devices()) {
    const v1::LowerBounds& bounds = device.bounds();
    if (!device.has_bounds() || device.device() != forecast.out_of_memory().device()) continue;
    facts->push_back(
        {"swapping",
         bounds.memory_bytes() > device.budget_bytes()
             ? absl::StrCat("cannot make it fit: ", bounds.memory_node(), " alone needs ",
                            core::BytesText(bounds.memory_bytes()))
             : absl::StrCat("might make it fit: a step would copy at least ",
                            core::BytesText(bounds.copy_out_bytes()), " out and take at least ",
                            core::DurationText(absl::Nanoseconds(bounds.step_time_ns())))});
  }
}

// The first line of a simulation.
std::string Headline(const v1::SimulateReport& report) {
  const v1::Forecast& forecast = report.forecast();
  const std::string time = absl::StrCat("a step takes ", StepTime(forecast));
  if (forecast.devices().empty()) return kNoGpu;
  if (!MayFit(forecast)) return absl::StrCat("does not fit: ", ExcessText(forecast));
  if (!forecast.devices(0).has_bounds()) return absl::StrCat("with unlimited memory, ", time);
  const std::string budget = BudgetText(report.hardware());
  if (forecast.fit() == v1::FIT_FITS) return absl::StrCat("fits into ", budget, "; ", time);
  return absl::StrCat("unknown whether it fits into ", budget, ": what is known of it does; ",
                      time);
}

// At the top of a report, at the left margin.
std::string HeadlineText(const std::string& headline, Style style) {
  std::string text = Paragraph(headline, 0, style);
  text.pop_back();  // Without its line end, so that only the heading is bold.
  return absl::StrCat(style.Heading(text), "\n");
}

int64_t PeakOf(const v1::DeviceMemory& memory) {
  int64_t peak = 0;
  for (const v1::MemorySample& sample : memory.timeline()) peak = std::max(peak, sample.bytes());
  return peak;
}

// The execution model shown; the timeline ends with the last change.
std::string SimulatedText(const v1::SimulatedStep& simulated) {
  return absl::StrCat(
      simulated.execution() == v1::EXECUTION_SYNCHRONOUS
          ? "synchronous: memory is taken when an op runs"
          : "launched ahead, as TensorFlow runs it: memory is taken when a kernel is "
            "launched",
      "; the step takes ", core::DurationText(absl::Nanoseconds(simulated.step_time_ns())),
      simulated.unlimited_memory() ? ", with unlimited memory" : "");
}

// The timeline of one GPU as bars, one for each part of the step: the maximum bytes in it.
std::string Bars(const v1::DeviceMemory& memory) {
  if (memory.timeline().empty()) return "";
  const int64_t peak = std::max<int64_t>(PeakOf(memory), 1);
  const int64_t end = std::max<int64_t>(memory.timeline().rbegin()->time_ns(), 1);
  std::string text;
  int next = 0;
  int64_t bytes = 0;
  for (int row = 0; row < kBarRows; ++row) {
    // In floating point: nanoseconds times rows may overflow.
    const double until = static_cast<double>(end) * (row + 1) / kBarRows;
    int64_t most = bytes;
    while (next < memory.timeline_size() &&
           (memory.timeline(next).time_ns() < until || row == kBarRows - 1)) {
      bytes = memory.timeline(next++).bytes();
      most = std::max(most, bytes);
    }
    const auto width = static_cast<size_t>(static_cast<double>(most) / peak * kBarWidth);
    absl::StrAppendFormat(&text, "  %10s  %-*s %10s\n",
                          core::DurationText(absl::Nanoseconds(static_cast<int64_t>(until))),
                          kBarWidth, std::string(width, '#'), core::BytesText(most));
  }
  return text;
}

// Distances in powers of two: "1", "2", "3 - 4", "5 - 8", ...
std::string DistanceTable(const v1::SimulateReport& report, Style style) {
  Rows rows = {{"distance in levels", "edges", "bytes"}};
  int64_t from = 0, to = 0, edges = 0, bytes = 0;
  const auto flush = [&] {
    if (edges == 0) return;
    rows.push_back({from == to ? absl::StrCat(to) : absl::StrCat(from, " - ", to),
                    absl::StrCat(edges), core::BytesText(bytes)});
    edges = bytes = 0;
  };
  for (const v1::DistanceCount& count : report.distances()) {
    while (count.distance() > to) {
      flush();
      from = to + 1;
      to = to == 0 ? 1 : to * 2;
    }
    edges += count.edge_count();
    bytes += count.tensor_bytes();
  }
  flush();
  return rows.size() > 1 ? FormatTable(rows, style) : "";
}

// Of full speed, rounded as it is printed: the larger sizes beyond are paid for with time.
constexpr double kNearFullSpeedPercent = 95;

const char* WhatVaries(bool size_is_batch) { return size_is_batch ? "batch" : "size"; }
const char* RateUnit(bool size_is_batch) { return size_is_batch ? "examples/s" : "steps/s"; }

std::string PeakText(const v1::Forecast& forecast) {
  if (forecast.devices().empty()) return kNotKnown;
  int64_t peak = 0;
  for (const v1::DeviceForecast& device : forecast.devices()) {
    peak = std::max(peak, device.peak_bytes());
  }
  return core::BytesText(peak);
}

// Examples per second if the size counts them, else steps.
std::string RateText(bool size_is_batch, const v1::ExploredSize& size) {
  if (!size.has_steps_per_s()) return kNotKnown;
  return absl::StrFormat("%.1f", size_is_batch ? size.sizes_per_s() : size.steps_per_s());
}

std::string SwappedRateText(bool size_is_batch, const v1::ExploredSize& size) {
  if (!size.has_swapped_steps_per_s()) return kNotKnown;
  return absl::StrFormat("%.1f",
                         size_is_batch ? size.swapped_sizes_per_s() : size.swapped_steps_per_s());
}

// The share that remains of the speed with unlimited memory.
std::string FullSpeedShare(const v1::ExploredSize& size) {
  if (!size.has_swapped_sizes_per_s() || !(size.full_speed_sizes_per_s() > 0)) return kNotKnown;
  return absl::StrFormat(
      "%.0f%%", std::min(100.0, 100 * size.swapped_sizes_per_s() / size.full_speed_sizes_per_s()));
}

// An upper bound of that share for any plan. (The bound leaves out launch times.)
std::string BoundShare(const v1::ExploredSize& size) {
  if (!size.has_bound_sizes_per_s() || !(size.full_speed_sizes_per_s() > 0)) return kNotKnown;
  const double share = size.bound_sizes_per_s() / size.full_speed_sizes_per_s();
  return absl::StrFormat("%.0f%%", 100 * std::min(share, 1.0));
}

// Whether swapping was asked for.
template <typename Sizes>
bool HasSwapping(const Sizes& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const v1::ExploredSize& size) {
    return size.has_swapped() || size.has_full_speed_sizes_per_s();
  });
}

// The speed at a size: of its step as it is if that fits, else of the step with swapping.
struct Speed {
  double sizes_per_s = 0;
  bool swapped = false;
};

std::optional<Speed> SpeedOf(const v1::ExploredSize& size) {
  if (size.unswapped().fit() == v1::FIT_FITS && size.has_sizes_per_s()) {
    return Speed{size.sizes_per_s(), false};
  }
  if (size.has_swapped_sizes_per_s()) return Speed{size.swapped_sizes_per_s(), true};
  if (size.has_sizes_per_s()) return Speed{size.sizes_per_s(), false};  // Unknown whether it fits.
  return std::nullopt;
}

// "batch 256: 228.3 examples/s, 95% of full speed, with swapping".
std::string SizeText(const v1::ExploredSize& size, bool swapped, bool size_is_batch) {
  std::string text =
      absl::StrCat(WhatVaries(size_is_batch), " ", size.size(), ": ",
                   swapped ? SwappedRateText(size_is_batch, size) : RateText(size_is_batch, size),
                   " ", RateUnit(size_is_batch));
  if (swapped) absl::StrAppend(&text, ", ", FullSpeedShare(size), " of full speed, with swapping");
  return text;
}

bool IsNearFullSpeed(const v1::ExploredSize& size, const Speed& speed) {
  return !speed.swapped || (size.full_speed_sizes_per_s() > 0 &&
                            std::round(100 * speed.sizes_per_s / size.full_speed_sizes_per_s()) >=
                                kNearFullSpeedPercent);
}

const v1::ExploredSize* FindSize(const v1::ExploreReport& report, int64_t size) {
  const auto it = std::find_if(report.sizes().begin(), report.sizes().end(),
                               [size](const v1::ExploredSize& s) { return s.size() == size; });
  return it == report.sizes().end() ? nullptr : &*it;
}

bool IsSmaller(const v1::ExploredSize& a, const v1::ExploredSize& b) { return a.size() < b.size(); }

// What people ask: how large a size may be, which is the fastest, and which is large and fast.
void AddBest(const v1::ExploreReport& report, Rows* facts) {
  const v1::ExploredSize *fastest = nullptr, *near_full_speed = nullptr;
  double most = 0;
  for (const v1::ExploredSize& size : report.sizes()) {
    const std::optional<Speed> speed = SpeedOf(size);
    if (!speed.has_value()) continue;
    if (speed->sizes_per_s > most) {
      most = speed->sizes_per_s;
      fastest = &size;
    }
    if (IsNearFullSpeed(size, *speed) &&
        (near_full_speed == nullptr || IsSmaller(*near_full_speed, size))) {
      near_full_speed = &size;
    }
  }
  const auto add = [&](const char* label, const v1::ExploredSize* size, bool swapped,
                       bool unknown = false) {
    if (size == nullptr) return;
    facts->push_back({label, absl::StrCat(SizeText(*size, swapped, report.size_is_batch()),
                                          unknown ? ", unknown whether it fits" : "")});
  };
  const auto add_at_its_speed = [&](const char* label, const v1::ExploredSize* size,
                                    bool unknown = false) {
    add(label, size, size != nullptr && SpeedOf(*size).value_or(Speed()).swapped, unknown);
  };
  add("unswapped", FindSize(report, report.largest_fitting_size()), /*swapped=*/false,
      report.largest_fit() == v1::FIT_UNKNOWN);
  const v1::ExploredSize* largest = FindSize(report, report.largest_fitting_size_swapped());
  add_at_its_speed("largest", largest, report.largest_fit_swapped() == v1::FIT_UNKNOWN);
  add_at_its_speed("fastest", fastest);
  if (report.has_largest_fitting_size_swapped() && near_full_speed != largest) {
    add_at_its_speed(">= 95%", near_full_speed);
  }
}

// What to do for the speed that the plan of another size gives; empty if none does.
std::string OtherPlansText(const v1::ExploreReport& report) {
  int64_t count = 0;
  const v1::ExploredSize* last = nullptr;  // The largest, which is nearest to full memory.
  for (const v1::ExploredSize& size : report.sizes()) {
    if (!size.has_plan_of_size()) continue;
    ++count;
    if (last == nullptr || IsSmaller(*last, size)) last = &size;
  }
  if (last == nullptr) return "";
  const char* const what = WhatVaries(report.size_is_batch());
  return absl::StrCat(what, " ", last->size(), " is as fast with the plan of ", what, " ",
                      last->plan_of_size(), ": rewrite at that with --save-plan, and apply it",
                      count > 1 ? absl::StrCat(" (", count - 1, " more: --json)") : "");
}

// Whether, and how large.
std::string ExplorationHeadline(const v1::ExploreReport& report) {
  const std::string what = WhatVaries(report.size_is_batch());
  if (report.has_largest_fitting_size_swapped()) {
    return absl::StrCat(what, " ", report.largest_fitting_size_swapped(),
                        report.largest_fit_swapped() == v1::FIT_UNKNOWN
                            ? " may be the largest that fits into "
                            : " is the largest that fits into ",
                        BudgetText(report.hardware()));
  }
  if (report.has_largest_fitting_size()) {
    return absl::StrCat(what, " ", report.largest_fitting_size(),
                        report.largest_fit() == v1::FIT_FITS
                            ? " is the largest that fits unswapped into "
                            : " may be the largest that fits unswapped into ",
                        BudgetText(report.hardware()));
  }
  const auto least = std::min_element(report.sizes().begin(), report.sizes().end(), IsSmaller);
  if (least == report.sizes().end()) return "no size was tried";
  if (MayFit(least->unswapped())) return "with unlimited memory";
  return absl::StrCat(
      "not even ", what, " ", least->size(),
      HasSwapping(report.sizes()) ? " fits, with swapping or without: " : " fits unswapped: ",
      ExcessText(least->unswapped()));
}

}  // namespace

void AddWarnings(const v1::RewriteReport& report, Style style, Rows* facts) {
  if (const core::RewriteFigures figures = core::FiguresOf(report);
      figures.swapped_tensors > 0 && report.has_forecast_after() &&
      std::none_of(figures.gpus.begin(), figures.gpus.end(), [](const core::GpuFigures& gpu) {
        return gpu.peak_after_bytes.value_or(0) < gpu.peak_before_bytes;
      })) {
    facts->push_back({"warning", "the peak is not lower than before: these swaps gain nothing"});
  }
  if (report.stopped_early()) {
    facts->push_back({"warning", "the search was ended: this is its best plan so far"});
  }
  AddWarningsOf(report, style, facts);
}

std::string FormatBeforeAndAfter(const v1::RewriteReport& report, Style style) {
  if (!report.has_forecast_before()) return "";
  const v1::Forecast& before = report.forecast_before();
  const v1::Forecast& after = report.forecast_after();
  const bool both = report.has_forecast_after();
  Rows rows = {{"forecast", both ? "before" : kAsItIs}};
  if (both) rows[0].push_back("after");
  const auto add = [&](const char* what, const auto& cell) {
    rows.push_back({what, cell(before)});
    if (both) rows.back().push_back(cell(after));
  };
  using F = v1::Forecast;
  add("fits", [](const F& f) { return std::string(FitText(f)); });
  add("step", [](const F& f) { return StepTime(f); });
  add("host memory", [](const F& f) { return core::BytesText(f.host_peak_bytes()); });
  for (int i = 0; i < before.devices_size(); ++i) {
    const v1::DeviceForecast& device = before.devices(i);
    if (!device.device().empty()) rows.push_back({device.device()});
    std::vector<Column> columns = {{"", &before, &device}};
    if (both)
      columns.push_back({"", &after, i < after.devices_size() ? &after.devices(i) : nullptr});
    AddDeviceRows(columns, &rows);
  }
  return FormatTable(rows, style);
}

std::vector<std::vector<std::string>> ForecastFacts(const v1::RewriteReport& report) {
  if (!report.has_forecast_before()) return {};
  Rows facts = {{"machine", HardwareText(report.hardware())}, {"times", kLaunchedAhead}};
  const auto add = [&facts, &report](const char* label, const v1::Forecast& forecast) {
    if (MayFit(forecast)) {
      AddUnknown(label, forecast, &facts);
      if (&forecast == &report.forecast_before()) AddKnownShare("known", forecast, &facts);
      return;
    }
    facts.push_back({label, absl::StrCat("does not fit: ", ExcessText(forecast))});
    facts.push_back({"", OutOfMemoryText(forecast.out_of_memory())});
  };
  add(report.has_forecast_after() ? "before" : kAsItIs, report.forecast_before());
  if (report.has_forecast_after()) add("after", report.forecast_after());
  return facts;
}

std::vector<std::vector<std::string>> ShortForecastFacts(const v1::RewriteReport& report) {
  if (!report.has_forecast_before()) return {};
  const v1::Forecast& returned =
      report.has_forecast_after() ? report.forecast_after() : report.forecast_before();
  Rows facts;
  if (!MayFit(returned)) {
    facts.push_back({"fits", absl::StrCat("no: ", ExcessText(returned))});
  } else if (returned.fit_unknown_size() > 0) {
    facts.push_back({"fits", absl::StrCat("unknown: ", returned.fit_unknown(0).message())});
  }
  facts.push_back({"machine", ShortHardwareText(report.hardware().hardware())});
  return facts;
}

std::string FormatForecast(const v1::Forecast& forecast, Style style) {
  const std::string time = absl::StrCat("; a step takes ", StepTime(forecast));
  const std::string headline =
      forecast.devices().empty()       ? kNoGpu
      : !MayFit(forecast)              ? absl::StrCat("does not fit: ", ExcessText(forecast))
      : forecast.fit() == v1::FIT_FITS ? absl::StrCat("fits", time)
                                       : absl::StrCat("unknown whether it fits", time);
  return absl::StrCat(HeadlineText(headline, style), GpuTables(forecast, style),
                      FormatFacts(StepFacts(forecast), style));
}

std::string FormatSimulation(const v1::SimulateReport& report, Style style) {
  const v1::Forecast& forecast = report.forecast();
  const int64_t host_bytes = report.hardware().hardware().host_memory_bytes();
  std::vector<MemoryRow> gpus;
  for (const v1::DeviceForecast& device : forecast.devices()) {
    gpus.push_back({device.device(), {device.peak_bytes(), std::nullopt}});
    if (device.has_bounds()) gpus.back().bytes[1] = device.budget_bytes();
  }
  Rows facts;
  if (!MayFit(forecast)) facts.push_back({"ran out", OutOfMemoryText(forecast.out_of_memory())});
  AddUnknown("unknown", forecast, &facts);
  AddKnownShare("known", forecast, &facts);
  if (!MayFit(forecast)) AddShortSwapping(forecast, &facts);
  facts.push_back({"machine", ShortHardwareText(report.hardware().hardware())});
  AddWarningsOf(report, style, &facts);
  const std::string table =
      gpus.empty() ? ""
                   : FormatMemoryTable({"peak memory", "of a step", "limit"}, gpus,
                                       {forecast.host_peak_bytes(), host_bytes}, style);
  return absl::StrCat(HeadlineText(Headline(report), style), table, FormatFacts(facts, style));
}

std::string FormatSimulationDetails(const v1::SimulateReport& report, Style style) {
  const v1::Forecast& forecast = report.forecast();
  Rows facts = StepFacts(forecast);
  AddSwapping(report, &facts);
  facts.push_back({"machine", HardwareText(report.hardware())});
  facts.push_back({"step", StepText(report)});
  if (report.has_inlining()) facts.push_back({"calls", InliningText(report.inlining())});
  AddWarningsOf(report, style, &facts);
  return absl::StrCat(HeadlineText(Headline(report), style), GpuTables(forecast, style),
                      FormatFacts(facts, style));
}

std::string FormatMemory(const v1::SimulateReport& report, int top, Style style) {
  std::string text;
  for (int d = 0; d < report.memory_size(); ++d) {
    const v1::DeviceMemory& memory = report.memory(d);
    const v1::DeviceForecast& device = d < report.forecast().devices_size()
                                           ? report.forecast().devices(d)
                                           : v1::DeviceForecast::default_instance();
    // With unlimited memory; the forecast's may differ.
    const int64_t peak = PeakOf(memory);
    Rows facts = {
        {"peak", absl::StrCat(core::BytesText(peak), peak == device.peak_bytes() ? " at " : "",
                              peak == device.peak_bytes() ? device.peak_node() : "")},
        {"resident", absl::StrCat(core::BytesText(device.resident_bytes()),
                                  ": variables, optimizer slots, constants")},
    };
    if (report.has_simulated()) facts.push_back({"shown", SimulatedText(report.simulated())});
    absl::StrAppend(&text, d > 0 ? "\n" : "",
                    style.Heading(absl::StrCat("memory of ", GpuText(memory.device()))), "\n",
                    FormatFacts(facts, style), "\n", Bars(memory), "\n");
    Rows rows = {{"live at the peak", "type", "shape", "size"}};
    for (int i = 0; i < std::min(top, memory.live_at_peak_size()); ++i) {
      const v1::LiveTensor& live = memory.live_at_peak(i);
      rows.push_back({absl::StrCat(live.tensor().tensor(), live.resident() ? " (resident)" : ""),
                      live.tensor().dtype().empty() ? kNotKnown : live.tensor().dtype(),
                      live.tensor().has_shape() ? live.tensor().shape() : kNotKnown,
                      live.tensor().has_size_bytes() ? core::BytesText(live.tensor().size_bytes())
                                                     : kNotKnown});
    }
    if (rows.size() > 1) absl::StrAppend(&text, FormatTable(rows, style));
    if (top > 0 && memory.live_at_peak_size() > top) {
      absl::StrAppend(&text, "  ... ", memory.live_at_peak_size() - top, " more\n");
    }
  }
  if (report.memory().empty()) text = HeadlineText(kNoGpu, style);
  const std::string distances = DistanceTable(report, style);
  if (!distances.empty()) absl::StrAppend(&text, "\n", distances);
  Rows facts = {{"step", StepText(report)}};
  AddWarningsOf(report, style, &facts);
  return absl::StrCat(text, "\n", FormatFacts(facts, style));
}

std::string FormatSizes(std::vector<v1::ExploredSize> sizes, bool size_is_batch, Style style) {
  std::sort(sizes.begin(), sizes.end(), IsSmaller);
  const bool swapping = HasSwapping(sizes);
  const char* const unit = RateUnit(size_is_batch);
  Rows rows = {{WhatVaries(size_is_batch), "fits", "peak memory"}};
  // With swapping there is no room for the step time, which the rate implies.
  if (!swapping) rows[0].push_back("step");
  rows[0].push_back(unit);
  if (swapping) {
    rows[0].insert(rows[0].end(), {"swapped", "peak memory", unit, "full speed", "bound"});
  }
  for (const v1::ExploredSize& size : sizes) {
    const v1::Forecast& forecast = size.unswapped();
    std::vector<std::string> row = {absl::StrCat(size.size()), FitText(forecast),
                                    PeakText(forecast)};
    if (!swapping) row.push_back(StepTime(forecast));
    row.push_back(RateText(size_is_batch, size));
    if (swapping) {
      row.push_back(forecast.fit() == v1::FIT_FITS ? "not needed"
                    : size.has_swapped()           ? FitText(size.swapped())
                                                   : "no");
      row.push_back(size.has_swapped() ? PeakText(size.swapped()) : kNotKnown);
      row.push_back(SwappedRateText(size_is_batch, size));
      row.push_back(FullSpeedShare(size));
      row.push_back(BoundShare(size));
    }
    rows.push_back(std::move(row));
  }
  return FormatTable(rows, style);
}

std::string FormatExploration(const v1::ExploreReport& report, Style style) {
  Rows facts;
  AddBest(report, &facts);
  if (std::string text = OtherPlansText(report); !text.empty()) facts.push_back({"plans", text});
  facts.push_back({"machine", HardwareText(report.hardware())});
  facts.push_back({"times", kLaunchedAhead});
  facts.push_back({"step", TargetsText(report.targets())});
  if (const v1::ExploredSize* size = FindSize(report, report.largest_fitting_size())) {
    AddUnknown("unknown", size->unswapped(), &facts);
    AddKnownShare("known", size->unswapped(), &facts);
  }
  AddWarningsOf(report, style, &facts);
  return absl::StrCat(
      FormatSizes({report.sizes().begin(), report.sizes().end()}, report.size_is_batch(), style),
      HeadlineText(ExplorationHeadline(report), style), FormatFacts(facts, style));
}

}  // namespace spillway::text
