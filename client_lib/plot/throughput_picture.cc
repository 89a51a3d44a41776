// DrawThroughput of picture.h.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_lib/plot/heading.h"
#include "client_lib/plot/picture.h"
#include "client_lib/plot/plot_area.h"
#include "rewrite_core/base/error.h"

namespace spillway::plot {
namespace {

constexpr double kRateWidth = 900;
constexpr double kRateMargin = 16;
constexpr double kRateLeft = 88;
constexpr double kPlotHeight = 360;
constexpr double kRateLegend = 24;
constexpr double kRateTicks = 52;
constexpr int kRateSteps = 8;

struct Rate {
  double size;
  double per_s;
};

// One line of the diagram.
struct Series {
  const char* name;
  const char* style;
  const char* mark;  // The mark of its points; null: none.
  std::vector<Rate> rates;
};

// Adds a rate if it is valid.
void AddRate(double size, double per_s, Series* series) {
  if (size > 0 && std::isfinite(per_s) && per_s > 0) series->rates.push_back({size, per_s});
}

// Examples per second if the size counts them, otherwise steps.
std::vector<Series> SeriesOf(const v1::ExploreReport& report) {
  Series full{"full speed, with unlimited memory", "full", nullptr, {}};
  Series bound{"no plan of swaps is faster", "bound", nullptr, {}};
  Series plain{"without swapping", "before", "before-mark halo", {}};
  Series swapped{"with swapping", "after", "after-mark halo", {}};
  for (const v1::ExploredSize& size : report.sizes()) {
    const double at = static_cast<double>(size.size());
    if (!(at > 0)) continue;
    const double per = report.size_is_batch() ? 1 : at;
    if (size.has_full_speed_sizes_per_s()) AddRate(at, size.full_speed_sizes_per_s() / per, &full);
    if (size.has_bound_sizes_per_s()) AddRate(at, size.bound_sizes_per_s() / per, &bound);
    if (size.has_sizes_per_s()) AddRate(at, size.sizes_per_s() / per, &plain);
    if (size.has_swapped_sizes_per_s()) AddRate(at, size.swapped_sizes_per_s() / per, &swapped);
  }
  // Sizes that nothing fits would take the place of those that are of use.
  double largest = 0;
  for (const Series* series : {&plain, &swapped}) {
    for (const Rate& rate : series->rates) largest = std::max(largest, rate.size);
  }
  for (Series* series : {&full, &bound}) {
    std::vector<Rate>& rates = series->rates;
    rates.erase(std::remove_if(rates.begin(), rates.end(),
                               [&](const Rate& r) { return largest > 0 && r.size > largest; }),
                rates.end());
  }
  std::vector<Series> all;
  // The two coincide if nothing needs to be swapped: the dashed line is drawn on top.
  for (Series* series : {&full, &bound, &swapped, &plain}) {
    std::stable_sort(series->rates.begin(), series->rates.end(),
                     [](const Rate& a, const Rate& b) { return a.size < b.size; });
    if (!series->rates.empty()) all.push_back(std::move(*series));
  }
  return all;
}

std::string LargestText(const v1::ExploreReport& report) {
  const auto fit = [](v1::Fit known) {
    return known == v1::FIT_UNKNOWN ? " (as far as is known)" : "";
  };
  std::vector<std::string> texts;
  if (report.has_largest_fitting_size()) {
    texts.push_back(absl::StrCat("without swapping: ", report.largest_fitting_size(),
                                 fit(report.largest_fit())));
  }
  if (report.has_largest_fitting_size_swapped()) {
    texts.push_back(absl::StrCat("with swapping: ", report.largest_fitting_size_swapped(),
                                 fit(report.largest_fit_swapped())));
  }
  if (texts.empty()) return "";
  return absl::StrCat("largest ", report.size_is_batch() ? "batch " : "size ",
                      absl::StrJoin(texts, "; "));
}

void DrawSeries(const PlotArea& area, const Series& series, const char* unit, Svg* svg) {
  std::string path;
  for (const Rate& rate : series.rates) {
    absl::StrAppend(&path, path.empty() ? "M" : "L", Pixels(area.X(rate.size)), " ",
                    Pixels(area.Y(rate.per_s)));
  }
  svg->Path(path, series.style);
  if (series.mark == nullptr) return;
  for (const Rate& rate : series.rates) {
    svg->Circle({area.X(rate.size), area.Y(rate.per_s)}, 4, series.mark,
                {absl::StrFormat("%s, %.0f: %.1f %s", series.name, rate.size, rate.per_s, unit),
                 absl::StrCat(" data-size=\"", absl::StrFormat("%.0f", rate.size),
                              "\" data-per-s=\"", absl::StrFormat("%.4f", rate.per_s), "\"")});
  }
}

}  // namespace

absl::StatusOr<std::string> DrawThroughput(const v1::ExploreReport& report,
                                           const PictureOptions& options) {
  const std::vector<Series> all = SeriesOf(report);
  double least_size = HUGE_VAL, most_size = 0, most_rate = 0;
  for (const Series& series : all) {
    for (const Rate& rate : series.rates) {
      least_size = std::min(least_size, rate.size);
      most_size = std::max(most_size, rate.size);
      most_rate = std::max(most_rate, rate.per_s);
    }
  }
  if (all.empty()) {
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              "the report has no size that fits, and so no throughput to draw; "
                              "explore smaller sizes, or a GPU with more memory",
                              {{"option", "sizes"}});
  }
  const bool is_batch = report.size_is_batch();
  const char* unit = is_batch ? "examples/s" : "steps/s";
  const std::string title = !options.title.empty()
                                ? options.title
                                : absl::StrCat("Throughput against ", is_batch ? "batch" : "size");
  std::vector<std::string> lines;
  if (std::string machine = MachineText(report.hardware()); !machine.empty()) {
    lines.push_back(machine);
  }
  lines.push_back("a step is launched ahead, as TensorFlow runs it");
  if (std::string largest = LargestText(report); !largest.empty()) lines.push_back(largest);
  lines.insert(lines.end(), options.notes.begin(), options.notes.end());
  Svg svg;
  double y = DrawHeading(title, lines, kRateMargin, kRateWidth - 2 * kRateMargin, &svg);
  std::vector<LegendEntry> legend;
  for (const Series& series : all) {
    legend.push_back({LegendEntry::Shape::kLine, series.style, series.name});
  }
  DrawLegend({kRateMargin, y + 8}, legend, &svg);
  y += kRateLegend;
  const PlotArea area{kRateLeft,
                      y,
                      kRateWidth - kRateLeft - kRateMargin - 12,
                      kPlotHeight,
                      PowersAxis(least_size, most_size, kRateSteps),
                      NumberAxis(most_rate, kRateSteps, AxisEnd::kTick)};
  DrawAxes(area, unit, &svg);
  DrawXTicks(area, is_batch ? "examples in a batch" : "size", &svg);
  for (const Series& series : all) DrawSeries(area, series, unit, &svg);
  return Finished(svg, kRateWidth, area.bottom() + kRateTicks, title, options);
}

}  // namespace spillway::plot
