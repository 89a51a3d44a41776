// The place of a diagram in a picture, and its axes.
//
// Thread safety: a plain value.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_PLOT_AREA_H_
#define SPILLWAY_CLIENT_LIB_PLOT_PLOT_AREA_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/plot/axis.h"
#include "client_lib/plot/svg.h"

namespace spillway::plot {

struct PlotArea {
  double left = 0, top = 0, width = 0, height = 0;
  Axis x, y;

  double bottom() const { return top + height; }
  double right() const { return left + width; }
  double X(double value) const { return left + width * ShareOf(x, value); }
  double Y(double value) const { return bottom() - height * ShareOf(y, value); }
};

// Returns `memory in use (GiB)`.
inline std::string AxisTitle(const char* what, const Axis& axis) {
  return axis.unit.empty() ? what : absl::StrCat(what, " (", axis.unit, ")");
}

// Draws the frame, the grid lines of both axes, and the labels and the title of the y axis.
void DrawAxes(const PlotArea& area, const char* y_title, Svg* svg);
// Draw only the vertical grid lines, and only the labels and the title of the x axis.
void DrawXGrid(const PlotArea& area, Svg* svg);
void DrawXTicks(const PlotArea& area, const char* x_title, Svg* svg);

// An entry of a legend: a swatch of a style, and its meaning.
struct LegendEntry {
  enum class Shape { kLine, kBox, kArrow };
  Shape shape;
  std::string style;
  std::string text;
};
// Draws the entries in one row, starting at `at`.
void DrawLegend(Point at, const std::vector<LegendEntry>& entries, Svg* svg);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_PLOT_AREA_H_
