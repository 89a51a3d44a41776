#include "client_lib/text/forecast_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client_lib/text/forecast_parts.h"
#include "client_lib/text/machine_text.h"
#include "client_lib/text/memory_table.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/rewrite_figures.h"
#include "rewrite_core/base/saturating.h"

namespace spillway::text {
namespace {

// The size of the chart of memory over time.
constexpr int kBarRows = 24;
constexpr int kBarWidth = 60;

// GPUs side by side; further ones go below.
constexpr int kMaxColumns = 4;

// Variables on CPUs are printed from this size on: every graph has a small counter.
constexpr int64_t kToldBytes = 1 << 20;

constexpr char kNoGpu[] = "no node of this step runs on a GPU";

// For a graph that was returned unchanged.
const char* kAsItIs = "as it is";

// "81%": the share of the step that a part takes.
std::string Share(int64_t part, int64_t whole) {
  return whole > 0 ? absl::StrFormat("%.0f%%", 100.0 * part / whole) : kNotKnown;
}

std::string StepText(const v1::SimulateReport& report) {
  return absl::StrCat(FormatCount(report.node_count(), "node"), ": ",
                      TargetsText(report.targets()));
}

// The simulated replacement of the graph's calls.
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

// Where memory ran out.
std::string OutOfMemoryText(const v1::OutOfMemory& oom) {
  return absl::StrCat(oom.node(), " asks for ", core::BytesText(oom.requested_bytes()), " while ",
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
  const auto runs_ahead = [](const Column& c) {
    return c.device != nullptr && c.device->peak_in_all_memory_bytes() > c.device->peak_bytes();
  };
  if (std::any_of(columns.begin(), columns.end(), runs_ahead)) {
    add("  in all memory", [](const F&, const D& d) {
      const int64_t bytes = d.peak_in_all_memory_bytes();
      return bytes > 0 ? core::BytesText(bytes) : kNotKnown;
    });
  }
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
  if (forecast.host_variable_bytes() >= kToldBytes) {
    absl::StrAppend(&facts[0][1], ", beside ", core::BytesText(forecast.host_variable_bytes()),
                    " of variables on CPUs");
  }
  if (forecast.host_ns() > 0) {
    facts.push_back(
        {"on CPUs", absl::StrCat(core::DurationText(absl::Nanoseconds(forecast.host_ns())),
                                 " of operations, one after another")});
  }
  if (!MayFit(forecast)) facts.push_back({"ran out", OutOfMemoryText(forecast.out_of_memory())});
  AddUnknown("unknown", forecast, &facts);
  AddKnownShare("known", forecast, &facts);
  if (forecast.without_workspace_ns() > 0) {
    facts.push_back(
        {"workspaces",
         absl::StrCat(
             "some convolutions find no memory for a workspace of up to ",
             core::BytesText(forecast.convolution_workspace_limit_bytes()), ", and may take ",
             core::DurationText(absl::Nanoseconds(forecast.without_workspace_ns())), " more")});
  }
  // A row only if it adds information.
  const int64_t in_all_ns = forecast.step_time_in_all_memory_ns();
  if (in_all_ns > 0 && std::abs(in_all_ns - forecast.step_time_ns()) > in_all_ns / 100) {
    facts.push_back({"in all memory", absl::StrCat(core::DurationText(absl::Nanoseconds(in_all_ns)),
                                                   ", as TensorFlow uses the reserve, too")});
  }
  if (MayFit(forecast) && forecast.has_synchronous_step_time_ns()) {
    facts.push_back(
        {"synchronous",
         absl::StrCat(core::DurationText(absl::Nanoseconds(forecast.synchronous_step_time_ns())),
                      ", if no op were launched ahead of the GPU")});
  }
  return facts;
}

// The potential of swapping: lower bounds are no promises. Lists only relevant GPUs: the one with
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
      facts->push_back(
          {label, absl::StrCat(where, "cannot make it fit: with the resident tensors, ",
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
                      "; no plan can fit in less than ", core::BytesText(bounds.memory_bytes()),
                      " (", bounds.memory_node(), ")")});
  }
  if (!MayFit(forecast) || most == nullptr) return;
  facts->push_back({"swapping", absl::StrCat("no plan can fit in less than ",
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
  const std::string budget = GpuBudgetText(report.hardware());
  if (forecast.fit() == v1::FIT_FITS) return absl::StrCat("fits into ", budget, "; ", time);
  return absl::StrCat("unknown whether it fits into ", budget, ": the known part does; ", time);
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
  if (before.host_variable_bytes() >= kToldBytes) {
    add("  variables", [](const F& f) { return core::BytesText(f.host_variable_bytes()); });
  }
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
  AddTemporaries(report, &facts);
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
  return absl::StrCat(HeadlineText(Headline(report), style), MayRunOutLine(report, style), table,
                      FormatFacts(facts, style));
}

std::string FormatSimulationDetails(const v1::SimulateReport& report, Style style) {
  const v1::Forecast& forecast = report.forecast();
  Rows facts = StepFacts(forecast);
  AddSwapping(report, &facts);
  AddTemporaries(report, &facts);
  facts.push_back({"machine", HardwareText(report.hardware())});
  facts.push_back({"step", StepText(report)});
  if (report.has_inlining()) facts.push_back({"calls", InliningText(report.inlining())});
  AddWarningsOf(report, style, &facts);
  return absl::StrCat(HeadlineText(Headline(report), style), MayRunOutLine(report, style),
                      GpuTables(forecast, style), FormatFacts(facts, style));
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
    int64_t listed = 0;
    for (const v1::LiveTensor& live : memory.live_at_peak()) {
      listed = core::SaturatingAdd(listed, live.tensor().size_bytes());
    }
    if (!memory.live_at_peak().empty() && peak > listed) {
      facts.push_back(
          {"temporaries", absl::StrCat(core::BytesText(peak - listed),
                                       " of the peak: memory that kernels and libraries use "
                                       "beside the tensors")});
    }
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
  return absl::StrCat(MayRunOutLine(report, style), text, "\n", FormatFacts(facts, style));
}

}  // namespace spillway::text
