// DrawStep of picture.h.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client_lib/plot/engine_panel.h"
#include "client_lib/plot/heading.h"
#include "client_lib/plot/memory_panel.h"
#include "client_lib/plot/picture.h"
#include "client_lib/plot/plot_area.h"
#include "client_lib/plot/text.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::plot {
namespace {

constexpr double kStepWidth = 1000;
constexpr double kStepMargin = 16;
constexpr double kStepLeft = 122;
constexpr double kPlotWidth = 586;
constexpr double kListLeft = kStepLeft + kPlotWidth + 20;
constexpr double kListWidth = kStepWidth - kStepMargin - kListLeft;
constexpr double kMemoryHeight = 250;
constexpr double kPanelGap = 8;
constexpr double kStepLegend = 22;
constexpr double kNameHeight = 26;
constexpr double kStepTicks = 52;
constexpr int kXTicks = 7;
constexpr int kYTicks = 6;
// More would make the picture too long to scroll.
constexpr int kMaxGpus = 8;

const char* ExecutionText(v1::Execution execution) {
  return execution == v1::EXECUTION_SYNCHRONOUS
             ? "synchronous: memory is taken when an operation runs"
             : "launched ahead, as TensorFlow runs it: memory is taken when a kernel is launched";
}

// Memory and time of a synchronously drawn step as TensorFlow runs it, which may be more. Empty if
// drawn as TensorFlow runs it, or not known to fit.
std::string LaunchedAheadText(const v1::SimulateReport& report) {
  const v1::Forecast& forecast = report.forecast();
  if (report.simulated().execution() != v1::EXECUTION_SYNCHRONOUS ||
      forecast.fit() != v1::FIT_FITS || !forecast.has_step_time_ns()) {
    return "";
  }
  int64_t peak = 0;
  for (const v1::DeviceForecast& device : forecast.devices()) {
    peak = std::max(peak, device.peak_bytes());
  }
  return absl::StrCat("launched ahead, as TensorFlow runs it: at most ", core::BytesText(peak),
                      forecast.devices_size() > 1 ? " of one GPU" : "", ", a step of ",
                      core::DurationText(absl::Nanoseconds(forecast.step_time_ns())));
}

bool HasTime(const v1::SimulateReport& report) {
  return report.has_simulated() && report.simulated().step_time_ns() > 0;
}

// `after: 13.30 GiB at the peak, a step of 905 ms, 6.00 GiB out and 6.00 GiB in`.
std::string StepText(const char* name, const v1::SimulateReport& report) {
  int64_t peak = 0, out = 0, in = 0;
  for (const v1::DeviceMemory& memory : report.memory()) {
    peak = std::max(peak, memory.peak_bytes());
  }
  for (const v1::DeviceForecast& device : report.forecast().devices()) {
    if (__builtin_add_overflow(out, device.copy_out_bytes(), &out)) out = INT64_MAX;
    if (__builtin_add_overflow(in, device.copy_in_bytes(), &in)) in = INT64_MAX;
  }
  std::string text = absl::StrCat(name, core::BytesText(peak), " at the peak",
                                  report.memory_size() > 1 ? " of one GPU" : "");
  if (HasTime(report)) {
    absl::StrAppend(&text, ", a step of ",
                    core::DurationText(absl::Nanoseconds(report.simulated().step_time_ns())));
  }
  absl::StrAppend(&text, ", ", core::BytesText(out), " copied out and ", core::BytesText(in),
                  " in");
  switch (report.forecast().fit()) {
    case v1::FIT_DOES_NOT_FIT:
      absl::StrAppend(&text, "; it does not fit, and is shown with unlimited memory");
      break;
    case v1::FIT_UNKNOWN:
      absl::StrAppend(&text, "; it is unknown whether it fits; the known part is shown");
      break;
    default:
      if (report.simulated().unlimited_memory()) absl::StrAppend(&text, "; with unlimited memory");
  }
  return text;
}

std::vector<std::string> StepLines(const v1::SimulateReport& step, const v1::SimulateReport* before,
                                   const std::vector<std::string>& notes) {
  std::vector<std::string> lines;
  const std::string machine = MachineText(step.hardware());
  if (!machine.empty()) lines.push_back(machine);
  const v1::Execution execution = step.simulated().execution();
  if (before != nullptr && before->simulated().execution() != execution) {
    lines.push_back(absl::StrCat("before: ", ExecutionText(before->simulated().execution())));
    lines.push_back(absl::StrCat("after: ", ExecutionText(execution)));
  } else {
    lines.push_back(ExecutionText(execution));
  }
  if (before != nullptr) lines.push_back(StepText("before: ", *before));
  lines.push_back(StepText(before != nullptr ? "after: " : "", step));
  if (std::string ahead = LaunchedAheadText(step); !ahead.empty()) {
    lines.push_back(absl::StrCat(before != nullptr ? "after, " : "", ahead));
  }
  lines.insert(lines.end(), notes.begin(), notes.end());
  return lines;
}

absl::Status CheckMemory(const v1::SimulateReport& report) {
  if (report.memory_size() > 0) return absl::OkStatus();
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      report.forecast().devices_size() == 0 && report.has_simulated()
          ? "no node of this step runs on a GPU: there is no memory to draw"
          : "the report has no memory over time; simulate with memory and trace (spillway simulate "
            "--trace, or plot of the graph itself)",
      {{"option", "memory"}});
}

// The kinds of marks that occur in the picture; each GPU's memory has labels of its own.
std::vector<LegendEntry> StepLegend(const v1::SimulateReport& step) {
  using Shape = LegendEntry::Shape;
  std::vector<LegendEntry> entries;
  bool swaps = false;
  for (int gpu = 0; gpu < std::min(step.memory_size(), kMaxGpus) && !swaps; ++gpu) {
    swaps = !SwapTrips({&step, gpu}).empty();
  }
  if (swaps) entries.push_back({Shape::kArrow, "swap", "swap"});
  if (step.has_trace()) {
    entries.push_back({Shape::kBox, "compute", "compute"});
    entries.push_back({Shape::kBox, "copy-out", "copy out"});
    entries.push_back({Shape::kBox, "copy-in", "copy in"});
  }
  const auto& spans = step.trace().spans();
  if (std::any_of(spans.begin(), spans.end(), RunsAgain)) {
    entries.push_back({Shape::kBox, kAgainStyle, "recompute"});
  }
  if (std::any_of(spans.begin(), spans.end(),
                  [](const v1::TraceSpan& span) { return span.waited_ns() > 0; })) {
    entries.push_back({Shape::kBox, "wait", "waits for memory"});
  }
  return entries;
}

// Draws one GPU from `y` down; returns its bottom.
double DrawGpu(const GpuStep& step, const GpuStep& before, const Axis& time, double y, Svg* svg) {
  y += kLabelsHeight;
  PlotArea area{kStepLeft,     y,    kPlotWidth,
                kMemoryHeight, time, BytesAxis(MostBytes(step, before), kYTicks, AxisEnd::kTick)};
  DrawMemory(area, step, before, svg);
  DrawAlive({kListLeft, y}, kListWidth, kMemoryHeight, step, before.has_memory(), svg);
  const std::vector<SwapTrip> trips = SwapTrips(step);
  if (!trips.empty()) {
    area.top = area.bottom() + kPanelGap;
    area.height = SwapsHeight(trips.size());
    DrawSwaps(area, trips, kListWidth, svg);
  }
  const std::vector<EngineRow> rows = EngineRows(step, before);
  if (!rows.empty()) {
    area.top = area.bottom() + kPanelGap;
    area.height = EnginesHeight(rows.size());
    DrawEngines(area, rows, svg);
  }
  DrawXTicks(area, "time in the step", svg);
  return area.bottom() + kStepTicks;
}

}  // namespace

absl::StatusOr<std::string> DrawStep(const v1::SimulateReport& step,
                                     const v1::SimulateReport* before,
                                     const PictureOptions& options) {
  if (absl::Status s = CheckMemory(step); !s.ok()) return s;
  if (before != nullptr) {
    if (absl::Status s = CheckMemory(*before); !s.ok()) return s;
  }
  const std::string title = !options.title.empty() ? options.title
                            : before != nullptr
                                ? "Memory of a training step, before and after the rewrite"
                                : "Memory of a training step";
  Svg svg;
  double y = DrawHeading(title, StepLines(step, before, options.notes), kStepMargin,
                         kStepWidth - 2 * kStepMargin, &svg);
  if (const auto legend = StepLegend(step); !legend.empty()) {
    DrawLegend({kStepMargin, y + 8}, legend, &svg);
    y += kStepLegend;
  }
  double end_ns = static_cast<double>(std::max<int64_t>(step.simulated().step_time_ns(), 1));
  if (before != nullptr) {
    end_ns = std::max(end_ns, static_cast<double>(before->simulated().step_time_ns()));
  }
  const Axis time = TimeAxis(end_ns, kXTicks, AxisEnd::kValue);
  const int shown = std::min(step.memory_size(), kMaxGpus);
  for (int gpu = 0; gpu < shown; ++gpu) {
    if (step.memory_size() > 1) {
      svg.Text({kStepMargin, y + 12}, Svg::Anchor::kStart,
               Shortened(GpuName(step.memory(gpu).device()), 100), "text");
      y += kNameHeight;
    }
    const bool has_before = before != nullptr && gpu < before->memory_size();
    y = DrawGpu({&step, gpu}, {has_before ? before : nullptr, gpu}, time, y, &svg);
  }
  if (shown < step.memory_size()) {
    svg.Text({kStepMargin, y}, Svg::Anchor::kStart,
             absl::StrCat("and ", core::CountText(step.memory_size() - shown, "GPU"),
                          " more, not drawn"),
             "note");
    y += kNameHeight;
  }
  return Finished(svg, kStepWidth, y + kStepMargin / 2, title, options);
}

}  // namespace spillway::plot
