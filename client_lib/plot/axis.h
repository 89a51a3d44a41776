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

// Return an axis for values up to `most`, in about `count` steps. `whole`: the axis ends at a tick.
Axis BytesAxis(double most, int count, bool whole);
Axis TimeAxis(double most_ns, int count, bool whole);
Axis NumberAxis(double most, int count, bool whole);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_AXIS_H_
