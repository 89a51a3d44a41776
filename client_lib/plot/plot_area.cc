#include "client_lib/plot/plot_area.h"

#include <vector>

namespace spillway::plot {
namespace {

// The distance from an axis to its labels, and to its title.
constexpr double kTickGap = 6;
constexpr double kTickTextDown = 16;
constexpr double kXTitleDown = 34;
constexpr double kYTitleLeft = 58;
// The approximate height of a digit; half of it centers the digit on its tick.
constexpr double kHalfText = 4;
// The layout of a legend.
constexpr double kSwatch = 22;
constexpr double kSwatchGap = 6;
constexpr double kEntryGap = 22;
// The approximate width of a letter in a 12-pixel sans-serif font.
constexpr double kLegendLetter = 6.4;

}  // namespace

void DrawXGrid(const PlotArea& area, Svg* svg) {
  for (const Tick& tick : area.x.ticks) {
    const double x = area.X(tick.at);
    svg->Line({x, area.top}, {x, area.bottom()}, "grid");
  }
}

void DrawXTicks(const PlotArea& area, const char* x_title, Svg* svg) {
  for (const Tick& tick : area.x.ticks) {
    const double x = area.X(tick.at);
    svg->Line({x, area.bottom()}, {x, area.bottom() + kTickGap - 2}, "frame");
    svg->Text({x, area.bottom() + kTickTextDown}, Svg::Anchor::kMiddle, tick.label);
  }
  svg->Text({area.left + area.width / 2, area.bottom() + kXTitleDown}, Svg::Anchor::kMiddle,
            AxisTitle(x_title, area.x));
}

void DrawAxes(const PlotArea& area, const char* y_title, Svg* svg) {
  DrawXGrid(area, svg);
  for (const Tick& tick : area.y.ticks) {
    const double y = area.Y(tick.at);
    svg->Line({area.left, y}, {area.right(), y}, "grid");
    svg->Text({area.left - kTickGap, y + kHalfText}, Svg::Anchor::kEnd, tick.label);
  }
  svg->Rect({area.left, area.top}, area.width, area.height, "frame");
  svg->TextUpwards({area.left - kYTitleLeft, area.top + area.height / 2},
                   AxisTitle(y_title, area.y));
}

void DrawLegend(Point at, const std::vector<LegendEntry>& entries, Svg* svg) {
  for (const LegendEntry& entry : entries) {
    const double y = at.y - kHalfText;
    switch (entry.shape) {
      case LegendEntry::Shape::kLine:
        svg->Line({at.x, y}, {at.x + kSwatch, y}, entry.style);
        break;
      case LegendEntry::Shape::kBox:
        svg->Rect({at.x, y - 5}, kSwatch, 10, entry.style);
        break;
      case LegendEntry::Shape::kArrow:
        svg->Arrow({at.x, y}, {at.x + kSwatch, y}, entry.style);
        break;
    }
    svg->Text({at.x + kSwatch + kSwatchGap, at.y}, Svg::Anchor::kStart, entry.text, "legend");
    at.x +=
        kSwatch + kSwatchGap + kLegendLetter * static_cast<double>(entry.text.size()) + kEntryGap;
  }
}

}  // namespace spillway::plot
