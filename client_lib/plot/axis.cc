#include "client_lib/plot/axis.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace spillway::plot {
namespace {

struct Unit {
  double size;
  const char* name;
  double from;  // The smallest value that uses this unit.
};

// Returns the last unit that fits the value; units ascend.
Unit UnitFor(double most, absl::Span<const Unit> units) {
  Unit chosen = units.front();
  for (const Unit& unit : units) {
    if (unit.from <= most) chosen = unit;
  }
  return chosen;
}

// 1, 2 or 5 times a power of ten, at least `step`.
double RoundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  // Tolerates rounding errors above a round step.
  for (double factor : {1.0, 2.0, 5.0}) {
    if (step <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

Axis MakeAxis(double most, int count, AxisEnd end, absl::Span<const Unit> units) {
  if (!(most > 0) || !std::isfinite(most)) most = units.front().size;
  const Unit unit = UnitFor(most, units);
  const double step = RoundStep(most / unit.size / count);
  const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  Axis axis;
  axis.unit = unit.name;
  const double steps = most / unit.size / step;
  const int last =
      static_cast<int>(end == AxisEnd::kTick ? std::ceil(steps - 1e-9) : std::floor(steps + 1e-9));
  axis.end = end == AxisEnd::kTick ? last * step * unit.size : most;
  for (int i = 0; i <= last; ++i) {
    axis.ticks.push_back({i * step * unit.size, absl::StrFormat("%.*f", digits, i * step)});
  }
  return axis;
}

}  // namespace

Axis BytesAxis(double most, int count, AxisEnd end) {
  constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB, kTiB = 1024 * kGiB;
  constexpr Unit kUnits[] = {{1, "bytes", 0},
                             {kKiB, "KiB", kKiB},
                             {kMiB, "MiB", kMiB},
                             {kGiB, "GiB", kGiB},
                             {kTiB, "TiB", kTiB}};
  return MakeAxis(most, count, end, kUnits);
}

Axis TimeAxis(double most_ns, int count, AxisEnd end) {
  // Three seconds are shown as 3000 ms, as the program prints them.
  constexpr Unit kUnits[] = {
      {1, "ns", 0}, {1e3, "\xc2\xb5s", 1e3}, {1e6, "ms", 1e6}, {1e9, "s", 1e10}};
  return MakeAxis(most_ns, count, end, kUnits);
}

Axis NumberAxis(double most, int count, AxisEnd end) {
  constexpr Unit kUnits[] = {{1, "", 0}};
  return MakeAxis(most, count, end, kUnits);
}

Axis PowersAxis(double least, double most, int count) {
  const double first = std::ceil(std::log2(least)), last = std::floor(std::log2(most));
  if (!(least > 0) || !std::isfinite(most) || !(last > first)) {
    return NumberAxis(most, count, AxisEnd::kValue);
  }
  Axis axis;
  axis.start = least;
  axis.end = most;
  const double step = std::ceil((last - first + 1) / count);
  for (double power = first; power <= last; power += step) {
    axis.ticks.push_back({std::exp2(power), absl::StrFormat("%.0f", std::exp2(power))});
  }
  return axis;
}

double ShareOf(const Axis& axis, double value) {
  const double share = axis.start > 0
                           ? std::log(value / axis.start) / std::log(axis.end / axis.start)
                           : value / axis.end;
  return std::min(std::max(share, 0.0), 1.0);
}

}  // namespace spillway::plot
