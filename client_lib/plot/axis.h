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

struct Axis {
  double start = 0;  // Above 0: the axis is logarithmic.
  double end = 1;    // Above `start`.
  std::string unit;  // `GiB`; empty if the numbers have none.
  std::vector<Tick> ticks;
};

// Where an axis ends: at the first tick that is not below the largest value, or at that value.
enum class AxisEnd { kTick, kValue };

// Return an axis for values up to `most`, in about `count` steps.
Axis BytesAxis(double most, int count, AxisEnd end);
Axis TimeAxis(double most_ns, int count, AxisEnd end);
Axis NumberAxis(double most, int count, AxisEnd end);

// Returns a logarithmic axis from `least` to `most`, with powers of two as ticks, as batches mostly
// are; a NumberAxis that ends at `most` if there are less than two of them in between.
Axis PowersAxis(double least, double most, int count);

// Returns where the value lies, from 0 at the start of the axis to 1 at its end; values beyond an
// end lie there.
double ShareOf(const Axis& axis, double value);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_AXIS_H_
