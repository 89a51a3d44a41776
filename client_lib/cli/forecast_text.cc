#include "client_lib/cli/forecast_text.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client_lib/cli/text_table.h"

namespace spillway::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Of the picture of memory over time.
constexpr int kBarRows = 24;
constexpr int kBarWidth = 60;

const char* kNotKnown = "-";

std::string DeviceText(const std::string& device) {
  return device.empty() ? "(none given)" : device;
}

std::string TimeText(bool has, int64_t nanoseconds) {
  return has ? FormatMilliseconds(nanoseconds) : kNotKnown;
}

// "81%": how much of the step a part of it takes.
std::string Share(int64_t part, int64_t whole) {
  return whole > 0 ? absl::StrFormat("%.0f%%", 100.0 * part / whole) : kNotKnown;
}

std::string OutOfMemoryText(const v1::OutOfMemory& oom) {
  return absl::StrCat(oom.node(), " asks for ", FormatBytes(oom.requested_bytes()), " of ",
                      oom.host() ? "pinned host memory" : "memory",
                      oom.device().empty() ? "" : absl::StrCat(" on ", oom.device()), ", where ",
                      FormatBytes(oom.in_use_bytes()), " of ", FormatBytes(oom.budget_bytes()),
                      " are in use");
}

std::string HardwareText(const v1::Hardware& hardware) {
  return absl::StrCat(hardware.preset().empty() ? "own numbers" : hardware.preset(), ", ",
                      FormatBytes(hardware.gpu_memory_bytes()), " per GPU, ",
                      FormatBytes(hardware.host_memory_bytes()), " of host memory; links ",
                      absl::StrFormat("%.3g out, %.3g GB/s in", hardware.d2h_bytes_per_s() / 1e9,
                                      hardware.h2d_bytes_per_s() / 1e9));
}

template <typename Names>
std::string TargetsText(const Names& targets) {
  constexpr int kShown = 3;
  std::vector<std::string> shown;
  for (int i = 0; i < std::min(kShown, targets.size()); ++i) shown.push_back(targets[i]);
  std::string text = absl::StrJoin(shown, ", ");
  if (targets.size() > kShown) absl::StrAppend(&text, " and ", targets.size() - kShown, " more");
  return text;
}

template <typename Warnings>
void AddWarnings(const Warnings& warnings, Rows* facts) {
  for (const v1::Warning& warning : warnings) facts->push_back({"warning", warning.message()});
}

// One row for each figure, one column for each forecast.
std::string DeviceRows(const std::vector<const v1::Forecast*>& forecasts,
                       const std::vector<std::string>& heads, Style style) {
  std::string text;
  for (int gpu = 0; gpu < forecasts[0]->devices_size(); ++gpu) {
    Rows rows = {{DeviceText(forecasts[0]->devices(gpu).device())}};
    for (const std::string& head : heads) rows[0].push_back(head);
    const auto add = [&](const char* what, const auto& cell) {
      rows.push_back({what});
      for (const v1::Forecast* forecast : forecasts) {
        rows.back().push_back(gpu < forecast->devices_size()
                                  ? cell(*forecast, forecast->devices(gpu))
                                  : std::string(kNotKnown));
      }
    };
    using F = v1::Forecast;
    using D = v1::DeviceForecast;
    add("fits", [](const F& f, const D&) { return std::string(f.fits() ? "yes" : "no"); });
    add("step",
        [](const F& f, const D&) { return TimeText(f.has_step_time_ns(), f.step_time_ns()); });
    add("step, synchronous", [](const F& f, const D&) {
      return TimeText(f.has_synchronous_step_time_ns(), f.synchronous_step_time_ns());
    });
    add("peak memory", [](const F&, const D& d) { return FormatBytes(d.peak_bytes()); });
    add("  of it resident", [](const F&, const D& d) { return FormatBytes(d.resident_bytes()); });
    add("computing",
        [](const F& f, const D& d) { return Share(d.compute_ns(), f.step_time_ns()); });
    add("copying out",
        [](const F& f, const D& d) { return Share(d.copy_out_ns(), f.step_time_ns()); });
    add("copying in",
        [](const F& f, const D& d) { return Share(d.copy_in_ns(), f.step_time_ns()); });
    add("stalled", [](const F& f, const D& d) { return Share(d.stall_ns(), f.step_time_ns()); });
    add("copied out", [](const F&, const D& d) { return FormatBytes(d.copy_out_bytes()); });
    add("copied in", [](const F&, const D& d) { return FormatBytes(d.copy_in_bytes()); });
    absl::StrAppend(&text, FormatTable(rows, style));
  }
  return text;
}

void AddForecastFacts(const v1::Forecast& forecast, const char* word, Rows* facts) {
  if (!forecast.fits()) facts->push_back({word, OutOfMemoryText(forecast.out_of_memory())});
}

Rows BoundsFacts(const v1::Forecast& forecast) {
  Rows facts;
  for (const v1::DeviceForecast& device : forecast.devices()) {
    if (!device.has_bounds()) continue;
    const v1::LowerBounds& bounds = device.bounds();
    facts.push_back({facts.empty() ? "any plan" : "",
                     absl::StrCat("on ", DeviceText(device.device()), ": at least ",
                                  FormatBytes(bounds.memory_bytes()), " of memory (",
                                  bounds.memory_node(), "), ", FormatBytes(bounds.copy_out_bytes()),
                                  " out, ", FormatBytes(bounds.copy_in_bytes()), " in, ",
                                  FormatMilliseconds(bounds.step_time_ns()), " a step")});
  }
  return facts;
}

// The timeline of one GPU as bars, one for each part of the step: the most bytes in it.
std::string Bars(const v1::DeviceMemory& memory) {
  if (memory.timeline().empty()) return "";
  int64_t peak = 1;
  for (const v1::MemorySample& sample : memory.timeline()) peak = std::max(peak, sample.bytes());
  const int64_t end = std::max<int64_t>(memory.timeline().rbegin()->time_ns(), 1);
  std::string text;
  int next = 0;
  int64_t bytes = 0;
  for (int row = 0; row < kBarRows; ++row) {
    // In floating point: nanoseconds times rows may not fit.
    const double until = static_cast<double>(end) * (row + 1) / kBarRows;
    int64_t most = bytes;
    while (next < memory.timeline_size() &&
           (memory.timeline(next).time_ns() < until || row == kBarRows - 1)) {
      bytes = memory.timeline(next++).bytes();
      most = std::max(most, bytes);
    }
    const auto width = static_cast<size_t>(static_cast<double>(most) / peak * kBarWidth);
    absl::StrAppendFormat(&text, "  %10s  %-*s %10s\n",
                          FormatMilliseconds(static_cast<int64_t>(until)), kBarWidth,
                          std::string(width, '#'), FormatBytes(most));
  }
  return text;
}

// Distances in powers of two: "1", "2", "3 - 4", "5 - 8", ...
std::string DistanceTable(const v1::SimulateReport& report, Style style) {
  Rows rows = {{"distance in levels", "edges", "tensors"}};
  int64_t from = 0, to = 0, edges = 0, bytes = 0;
  const auto flush = [&] {
    if (edges == 0) return;
    rows.push_back({from == to ? absl::StrCat(to) : absl::StrCat(from, " - ", to),
                    absl::StrCat(edges), FormatBytes(bytes)});
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

std::string FormatBeforeAndAfter(const v1::RewriteReport& report, Style style) {
  if (!report.has_forecast_before()) return "";
  std::vector<const v1::Forecast*> forecasts = {&report.forecast_before()};
  std::vector<std::string> heads = {"before"};
  if (report.has_forecast_after()) {
    forecasts.push_back(&report.forecast_after());
    heads.push_back("after");
  }
  Rows facts = {{"machine", HardwareText(report.hardware())}};
  AddForecastFacts(report.forecast_before(), "before", &facts);
  if (report.has_forecast_after()) AddForecastFacts(report.forecast_after(), "after", &facts);
  return absl::StrCat(DeviceRows(forecasts, heads, style), FormatFacts(facts, style));
}

std::string FormatSimulation(const v1::SimulateReport& report, Style style) {
  Rows facts;
  AddForecastFacts(report.forecast(), "memory", &facts);
  for (auto& row : BoundsFacts(report.forecast())) facts.push_back(row);
  if (report.forecast().host_peak_bytes() > 0) {
    facts.push_back({"host", absl::StrCat(FormatBytes(report.forecast().host_peak_bytes()),
                                          " at most wait in host memory")});
  }
  facts.push_back({"machine", HardwareText(report.hardware())});
  facts.push_back({"step", absl::StrCat(report.node_count(), " nodes, to run ",
                                        TargetsText(report.targets()))});
  AddWarnings(report.warnings(), &facts);
  return absl::StrCat(DeviceRows({&report.forecast()}, {""}, style), FormatFacts(facts, style));
}

std::string FormatMemory(const v1::SimulateReport& report, int top, Style style) {
  std::string text;
  for (int d = 0; d < report.memory_size(); ++d) {
    const v1::DeviceMemory& memory = report.memory(d);
    const v1::DeviceForecast& device = report.forecast().devices(d);
    Rows facts = {
        {"peak", absl::StrCat(FormatBytes(device.peak_bytes()), " at ", device.peak_node())},
        {"resident", absl::StrCat(FormatBytes(device.resident_bytes()),
                                  ": variables, optimizer slots, constants")},
    };
    absl::StrAppend(&text, d > 0 ? "\n" : "",
                    style.Heading(absl::StrCat("memory of ", DeviceText(memory.device()))), "\n",
                    FormatFacts(facts, style), "\n", Bars(memory), "\n");
    Rows rows = {{"alive at the peak", "type", "shape", "size"}};
    for (int i = 0; i < std::min(top, memory.alive_at_peak_size()); ++i) {
      const v1::LiveTensor& live = memory.alive_at_peak(i);
      rows.push_back(
          {absl::StrCat(live.tensor().tensor(), live.resident() ? " (resident)" : ""),
           live.tensor().dtype().empty() ? "?" : live.tensor().dtype(),
           live.tensor().has_shape() ? live.tensor().shape() : "?",
           live.tensor().has_size_bytes() ? FormatBytes(live.tensor().size_bytes()) : "?"});
    }
    if (rows.size() > 1) absl::StrAppend(&text, FormatTable(rows, style));
    if (top > 0 && memory.alive_at_peak_size() > top) {
      absl::StrAppend(&text, "  ... ", memory.alive_at_peak_size() - top, " more\n");
    }
  }
  if (report.memory().empty()) absl::StrAppend(&text, "  no node of this step is on a GPU\n");
  const std::string distances = DistanceTable(report, style);
  if (!distances.empty()) absl::StrAppend(&text, "\n", distances);
  Rows facts = {{"step", absl::StrCat(report.node_count(), " nodes, to run ",
                                      TargetsText(report.targets()))}};
  AddWarnings(report.warnings(), &facts);
  return absl::StrCat(text, "\n", FormatFacts(facts, style));
}

std::string FormatExploration(const v1::ExploreReport& report, Style style) {
  Rows rows = {
      {"size", "fits", "peak memory", "step", report.size_is_batch() ? "examples/s" : "steps/s"}};
  for (const v1::ExploredSize& size : report.sizes()) {
    int64_t peak = 0;
    for (const v1::DeviceForecast& device : size.unswapped().devices()) {
      peak = std::max(peak, device.peak_bytes());
    }
    const double rate = report.size_is_batch() ? size.sizes_per_s() : size.steps_per_s();
    rows.push_back({absl::StrCat(size.size()), size.unswapped().fits() ? "yes" : "no",
                    FormatBytes(peak),
                    TimeText(size.unswapped().has_step_time_ns(), size.unswapped().step_time_ns()),
                    size.has_steps_per_s() ? absl::StrFormat("%.1f", rate) : kNotKnown});
  }
  Rows facts = {{"largest", report.has_largest_fitting_size()
                                ? absl::StrCat(report.largest_fitting_size(), " fits")
                                : std::string("none fits")}};
  if (!report.has_largest_fitting_size() && report.sizes_size() > 0) {
    AddForecastFacts(report.sizes(0).unswapped(), "", &facts);
  }
  facts.push_back({"machine", HardwareText(report.hardware())});
  facts.push_back({"step", absl::StrCat("runs ", TargetsText(report.targets()))});
  AddWarnings(report.warnings(), &facts);
  return absl::StrCat(FormatTable(rows, style), FormatFacts(facts, style));
}

}  // namespace spillway::cli
