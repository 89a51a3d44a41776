#include "client_lib/plot/memory_panel.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client_lib/plot/text.h"
#include "client_lib/plot/timeline.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::plot {
namespace {

// From the labels' base line to the panel.
constexpr double kLabelGap = 12;
constexpr double kNameGap = 6;
// The layout of the list of live buffers.
constexpr double kListRowHeight = 21;
constexpr double kListHead = 18;
constexpr size_t kNameBytes = 27;

using core::BytesText;

double StepEnd(const GpuStep& step) {
  return static_cast<double>(std::max<int64_t>(step.report->simulated().step_time_ns(), 0));
}

// A line of steps, from left to right, as a path.
std::string StepPath(const PlotArea& area, const std::vector<Sample>& samples, double end_ns) {
  std::string path;
  for (const Sample& sample : samples) {
    const std::string x = Pixels(area.X(sample.ns)), y = Pixels(area.Y(sample.bytes));
    if (path.empty()) {
      absl::StrAppend(&path, "M", x, " ", y);
    } else {
      absl::StrAppend(&path, "H", x, "V", y);
    }
  }
  if (!path.empty()) absl::StrAppend(&path, "H", Pixels(area.X(end_ns)));
  return path;
}

// `before: peak 1.27 GiB at 45.0 ms`.
std::string PeakText(const GpuStep& step, const char* name) {
  const v1::DeviceMemory& memory = step.memory();
  return absl::StrCat(name, "peak ", BytesText(memory.peak_bytes()), " at ",
                      core::DurationText(absl::Nanoseconds(memory.peak_ns())));
}

void DrawPeak(const PlotArea& area, const GpuStep& step, const std::string& text, const char* style,
              Svg* svg) {
  const v1::DeviceMemory& memory = step.memory();
  svg->Circle({area.X(static_cast<double>(memory.peak_ns())),
               area.Y(static_cast<double>(memory.peak_bytes()))},
              4, style,
              {text, absl::StrCat(Data("peak-bytes", memory.peak_bytes()),
                                  Data("peak-ns", memory.peak_ns()))});
}

// The execution model of the lines. Empty if they differ: the heading then names both.
std::string ExecutionName(const GpuStep& step, const GpuStep& before) {
  const v1::Execution execution = step.report->simulated().execution();
  if (before.has_memory() && before.report->simulated().execution() != execution) return "";
  return execution == v1::EXECUTION_SYNCHRONOUS ? "synchronous" : "launched ahead";
}

// Labels of the lines, above the panel, so that none lies on a curve or on another one.
void DrawLabels(const PlotArea& area, const std::string& execution, const std::string& before,
                const std::string& after, int64_t budget, int64_t resident, Svg* svg) {
  using Shape = LegendEntry::Shape;
  std::vector<LegendEntry> labels;
  if (!before.empty()) labels.push_back({Shape::kLine, "before", before});
  labels.push_back({Shape::kLine, "after", after});
  if (budget > 0) {
    labels.push_back({Shape::kLine, "budget", absl::StrCat("budget ", BytesText(budget))});
  }
  labels.push_back({Shape::kBox, "resident", absl::StrCat("resident ", BytesText(resident))});
  const double y = area.top - kLabelGap;
  if (!execution.empty()) {
    svg->Text({area.left - kNameGap, y}, Svg::Anchor::kEnd, execution, "legend");
  }
  DrawLegend({area.left, y}, labels, svg);
}

void DrawLine(const PlotArea& area, const GpuStep& step, const char* style, bool filled, Svg* svg) {
  const double end_ns = StepEnd(step);
  const int columns = std::max(1, static_cast<int>(area.width * end_ns / area.x.end));
  const std::string path = StepPath(area, Thinned(step.memory(), end_ns, columns), end_ns);
  if (path.empty()) return;
  if (filled) {
    svg->Path(absl::StrCat(path, "V", Pixels(area.bottom()), "H", Pixels(area.left), "Z"),
              "after-area");
  }
  svg->Path(path, style);
}

}  // namespace

double MostBytes(const GpuStep& step, const GpuStep& before) {
  int64_t most = 0;
  for (const GpuStep* shown : {&step, &before}) {
    most = std::max(most, shown->budget_bytes());
    if (shown->has_memory()) most = std::max(most, shown->memory().peak_bytes());
  }
  return static_cast<double>(most);
}

void DrawMemory(const PlotArea& area, const GpuStep& step, const GpuStep& before, Svg* svg) {
  const v1::DeviceMemory& memory = step.memory();
  const int64_t budget = step.budget_bytes();
  const std::string after_text = PeakText(step, before.has_memory() ? "after: " : "");
  const std::string before_text = before.has_memory() ? PeakText(before, "before: ") : "";
  DrawLabels(area, ExecutionName(step, before), before_text, after_text, budget,
             memory.resident_bytes(), svg);
  DrawAxes(area, "memory in use", svg);
  const double resident_y = area.Y(static_cast<double>(memory.resident_bytes()));
  svg->Rect({area.left, resident_y}, area.width, area.bottom() - resident_y, "resident",
            {absl::StrCat("resident: ", BytesText(memory.resident_bytes()),
                          " of variables, optimizer slots and constants"),
             Data("resident-bytes", memory.resident_bytes())});
  DrawLine(area, step, "after", /*filled=*/true, svg);
  if (before.has_memory()) DrawLine(area, before, "before", /*filled=*/false, svg);
  const double budget_y = area.Y(static_cast<double>(budget));
  if (budget > 0) {
    svg->Line({area.left, budget_y}, {area.right(), budget_y}, "budget",
              {absl::StrCat("budget: ", BytesText(budget)), Data("budget-bytes", budget)});
  }
  // In an HTML page, shows the time and the memory at the pointer.
  svg->Rect({area.left, area.top}, area.width, area.height, "hit",
            {"", absl::StrFormat(" data-end-ns=\"%.0f\" data-end-bytes=\"%.0f\"", area.x.end,
                                 area.y.end)});
  if (before.has_memory()) DrawPeak(area, before, before_text, "before-mark halo", svg);
  DrawPeak(area, step, after_text, "after-mark halo", svg);
}

void DrawAlive(Point corner, double width, double height, const GpuStep& step, bool is_after,
               Svg* svg) {
  const v1::DeviceMemory& memory = step.memory();
  const int all = memory.live_at_peak_size();
  const int rows = std::min(all, static_cast<int>((height - kListHead) / kListRowHeight) - 1);
  svg->Text({corner.x, corner.y + 10}, Svg::Anchor::kStart,
            is_after ? "live at the peak after, largest first" : "live at the peak, largest first");
  int64_t rest = 0;
  for (int i = 0; i < all; ++i) {
    const v1::LiveTensor& live = memory.live_at_peak(i);
    const int64_t bytes = std::max<int64_t>(live.tensor().size_bytes(), 0);
    if (i >= rows) {
      if (__builtin_add_overflow(rest, bytes, &rest)) rest = INT64_MAX;
      continue;
    }
    const double y = corner.y + kListHead + kListRowHeight * i;
    const double most =
        static_cast<double>(std::max<int64_t>(memory.live_at_peak(0).tensor().size_bytes(), 1));
    const std::string tip =
        absl::StrCat(live.tensor().tensor(), ": ", BytesText(bytes), " ", live.tensor().dtype(),
                     live.tensor().shape(), live.resident() ? " (resident)" : "");
    svg->Rect({corner.x, y + 2}, std::clamp(width * static_cast<double>(bytes) / most, 1.0, width),
              kListRowHeight - 4, live.resident() ? "resident" : "after-area",
              {tip, Data("bytes", bytes)});
    svg->Text({corner.x + 4, y + 14}, Svg::Anchor::kStart,
              Shortened(live.tensor().tensor(), kNameBytes), "note", {tip, ""});
    svg->Text({corner.x + width, y + 14}, Svg::Anchor::kEnd, BytesText(bytes), "note");
  }
  if (all > rows) {
    svg->Text({corner.x + 4, corner.y + kListHead + kListRowHeight * rows + 14},
              Svg::Anchor::kStart, absl::StrCat("and ", all - rows, " more: ", BytesText(rest)),
              "note");
  }
}

}  // namespace spillway::plot
