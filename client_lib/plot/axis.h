// Axes with round ticks: steps of 1, 2 or 5 times a power of ten, in a unit that keeps the numbers
// short.
//
// Thread safety: pure functions; plain values.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_AXIS_H_
#define SPILLWAY_CLIENT_LIB_PLOT_AXIS_H_

#include <string>
#include <vector>

namespace spillway::plot {

struct Tick {
  double at = 0;  // In the quantity of the axis: bytes, nanoseconds, ...
  std::string label;
};

// Starts at 0.
struct Axis {
  double end = 1;    // Above 0.
  std::string unit;  // `GiB`; empty if the numbers have none.
  std::vector<Tick> ticks;
};

// Where an axis ends: at the first tick that is not below the largest value, or at that value.
enum class AxisEnd { kTick, kValue };

// Return an axis for values up to `most`, in about `count` steps.
Axis BytesAxis(double most, int count, AxisEnd end);
Axis TimeAxis(double most_ns, int count, AxisEnd end);
Axis NumberAxis(double most, int count, AxisEnd end);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_AXIS_H_
