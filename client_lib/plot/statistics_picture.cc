#include "client_lib/plot/statistics_picture.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client_lib/plot/heading.h"
#include "client_lib/plot/plot_area.h"
#include "client_lib/plot/text.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::plot {
namespace {

constexpr double kStatWidth = 900;
constexpr double kStatMargin = 16;
constexpr double kStatLeft = 64;
// Room for half of the last tick's label.
constexpr double kTickRoom = 44;
constexpr double kRowTitle = 20;
constexpr double kRowHeight = 44;
constexpr double kTallRowHeight = 76;
constexpr double kRowGap = 10;
constexpr double kTimeTicks = 40;
constexpr double kBarHeight = 16;
constexpr double kBarStep = 24;
constexpr double kBarLeft = 250;
constexpr double kBarText = 90;
constexpr double kTickDown = 16;
constexpr double kHalfLetter = 4;
// The maximum length of a bar's name, in letters.
constexpr size_t kBarName = 32;
constexpr int kMostTimeTicks = 8;

// Tick intervals over time; each starts at a boundary of its unit in UTC.
constexpr int64_t kTimeSteps[] = {
    1,    2,     5,     10,    30,    60,     120,    300,     600,      1800,      3600,
    7200, 10800, 21600, 43200, 86400, 172800, 604800, 2419200, 31536000, 315360000, 3153600000};

std::string UtcText(int64_t unix_s, const char* format) {
  return absl::FormatTime(format, absl::FromUnixSeconds(unix_s), absl::UTCTimeZone());
}

std::string SpanText(int64_t seconds) {
  if (seconds % 86400 == 0) return absl::StrCat(seconds / 86400, " d");
  if (seconds % 3600 == 0) return absl::StrCat(seconds / 3600, " h");
  if (seconds % 60 == 0) return absl::StrCat(seconds / 60, " min");
  return absl::StrCat(seconds, " s");
}

Axis TimesAxis(const Statistics& of) {
  Axis axis;
  const int64_t end = of.width_s * static_cast<int64_t>(of.columns.size());
  axis.end = static_cast<double>(end);
  int64_t step = kTimeSteps[0];
  for (const int64_t candidate : kTimeSteps) {
    step = candidate;
    if (end / step < kMostTimeTicks) break;
  }
  const char* const format = step >= 86400 ? "%Y-%m-%d"
                             : step >= 60  ? (end > 86400 ? "%m-%d %H:%M" : "%H:%M")
                                           : "%H:%M:%S";
  for (int64_t at = (of.start_s + step - 1) / step * step; at <= of.start_s + end; at += step) {
    axis.ticks.push_back({static_cast<double>(at - of.start_s), UtcText(at, format)});
  }
  return axis;
}

// A quantity over time: its value in each column, and its format.
struct StatRow {
  std::string title;
  const char* style;
  double height;
  std::function<double(const StatisticsColumn&)> value;
  std::function<std::string(const StatisticsColumn&)> text;
  Axis (*axis)(double most, int count, AxisEnd end);
};

int64_t Total(const Statistics& of, int64_t StatisticsColumn::*count) {
  int64_t total = 0;
  for (const StatisticsColumn& column : of.columns) {
    if (__builtin_add_overflow(total, column.*count, &total)) return INT64_MAX;
  }
  return total;
}

StatRow CountRow(const Statistics& of, const char* name, int64_t StatisticsColumn::*count,
                 const char* style) {
  return {absl::StrCat(name, ": ", Total(of, count)),
          style,
          kRowHeight,
          [count](const StatisticsColumn& column) { return static_cast<double>(column.*count); },
          [count, name](const StatisticsColumn& column) {
            return absl::StrCat(name, ": ", column.*count);
          },
          [](double most, int steps, AxisEnd) {
            // Half a request does not exist.
            Axis axis = NumberAxis(std::max(most, 1.0), most < steps ? 1 : steps, AxisEnd::kTick);
            return axis;
          }};
}

std::vector<StatRow> RowsOf(const Statistics& of) {
  std::vector<StatRow> rows = {
      CountRow(of, "rewritten", &StatisticsColumn::rewritten, "compute"),
      CountRow(of, "nothing to do", &StatisticsColumn::nothing_to_do, "host"),
      CountRow(of, "does not fit", &StatisticsColumn::does_not_fit, "copy-out"),
      CountRow(of, "failed", &StatisticsColumn::failed, "wait")};
  if (Total(of, &StatisticsColumn::other) > 0) {
    rows.push_back(CountRow(of, "other answers", &StatisticsColumn::other, "copy-in"));
  }
  rows.push_back(
      {"swapped in a step, both ways, all graphs together", "after-mark", kTallRowHeight,
       [](const StatisticsColumn& column) { return static_cast<double>(column.swap_bytes); },
       [](const StatisticsColumn& column) {
         return absl::StrCat("swapped: ", core::BytesText(column.swap_bytes));
       },
       BytesAxis});
  rows.push_back(
      {"slower than without swaps, of graphs that swap (%)", "swap", kTallRowHeight,
       [](const StatisticsColumn& column) { return (column.slowdown.value_or(1) - 1) * 100; },
       [](const StatisticsColumn& column) {
         return absl::StrFormat("%.1f %% slower", (column.slowdown.value_or(1) - 1) * 100);
       },
       NumberAxis});
  return rows;
}

void DrawRow(const Statistics& of, const StatRow& row, PlotArea area, Svg* svg) {
  double most = 0;
  for (const StatisticsColumn& column : of.columns) most = std::max(most, row.value(column));
  area.y = row.axis(most, 2, AxisEnd::kTick);
  svg->Text({area.left, area.top - 6}, Svg::Anchor::kStart, AxisTitle(row.title.c_str(), area.y));
  DrawXGrid(area, svg);
  for (const Tick& tick : area.y.ticks) {
    svg->Line({area.left, area.Y(tick.at)}, {area.right(), area.Y(tick.at)}, "grid");
    svg->Text({area.left - 6, area.Y(tick.at) + kHalfLetter}, Svg::Anchor::kEnd, tick.label,
              "note");
  }
  for (size_t i = 0; i < of.columns.size(); ++i) {
    const double value = row.value(of.columns[i]);
    if (!(value > 0)) continue;
    const int64_t at = static_cast<int64_t>(i) * of.width_s;
    const double x = area.X(static_cast<double>(at));
    const double width = area.X(static_cast<double>(at + of.width_s)) - x;
    svg->Rect({x + width * 0.1, area.Y(value)}, width * 0.8, area.bottom() - area.Y(value),
              row.style,
              {absl::StrCat(UtcText(of.start_s + at, "%Y-%m-%d %H:%M:%S"), " UTC, ",
                            row.text(of.columns[i])),
               absl::StrCat(Data("column", static_cast<int64_t>(i)),
                            absl::StrFormat(" data-value=\"%.4f\"", value))});
  }
  svg->Rect({area.left, area.top}, area.width, area.height, "frame");
}

// Returns the bottom of the picture.
double DrawBars(const Statistics& of, double top, Svg* svg) {
  int64_t most = 0;
  for (const StatisticsBar& bar : of.bars) most = std::max(most, bar.swap_bytes);
  if (most == 0) return top;
  svg->Text({kStatMargin, top + 8}, Svg::Anchor::kStart,
            absl::StrCat("swapped in a step, both ways, by ", of.bars_of));
  double y = top + 20;
  const double room = kStatWidth - kBarLeft - kStatMargin - kBarText;
  for (const StatisticsBar& bar : of.bars) {
    const double width = room * static_cast<double>(bar.swap_bytes) / static_cast<double>(most);
    const double middle = y + kBarHeight / 2 + kHalfLetter;
    svg->Text({kBarLeft - 8, middle}, Svg::Anchor::kEnd, Shortened(Clean(bar.name), kBarName),
              "text", {bar.name, ""});
    svg->Rect({kBarLeft, y}, width, kBarHeight, "after-mark",
              {absl::StrCat(bar.name, ": ", core::BytesText(bar.swap_bytes)),
               Data("bytes", bar.swap_bytes)});
    svg->Text({kBarLeft + width + 6, middle}, Svg::Anchor::kStart, core::BytesText(bar.swap_bytes),
              "note");
    y += kBarStep;
  }
  return y;
}

}  // namespace

absl::StatusOr<std::string> DrawStatistics(const Statistics& of, const PictureOptions& options) {
  if (of.columns.empty() || of.width_s <= 0) {
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              "there is no request to draw; give a journal with one",
                              {{"option", "columns"}});
  }
  const std::string title =
      options.title.empty() ? "What was asked of spillwayd, and what it costs" : options.title;
  const int64_t end_s = of.start_s + of.width_s * static_cast<int64_t>(of.columns.size());
  std::vector<std::string> lines = {absl::StrCat(UtcText(of.start_s, "%Y-%m-%d %H:%M:%S"), " to ",
                                                 UtcText(end_s, "%Y-%m-%d %H:%M:%S"),
                                                 " UTC, a column for each ", SpanText(of.width_s))};
  lines.insert(lines.end(), options.notes.begin(), options.notes.end());
  Svg svg;
  double y = DrawHeading(title, lines, kStatMargin, kStatWidth - 2 * kStatMargin, &svg);
  PlotArea area;
  area.left = kStatLeft;
  area.width = kStatWidth - kStatLeft - kTickRoom;
  area.x = TimesAxis(of);
  for (const StatRow& row : RowsOf(of)) {
    area.top = y + kRowTitle;
    area.height = row.height;
    DrawRow(of, row, area, &svg);
    y = area.bottom() + kRowGap;
  }
  for (const Tick& tick : area.x.ticks) {
    svg.Text({area.X(tick.at), area.bottom() + kTickDown}, Svg::Anchor::kMiddle, tick.label,
             "note");
  }
  y = DrawBars(of, area.bottom() + kTimeTicks, &svg);
  return Finished(svg, kStatWidth, y + kStatMargin, title, options);
}

}  // namespace spillway::plot
