// The memory of a GPU over a step, thinned to what a picture can show.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_TIMELINE_H_
#define SPILLWAY_CLIENT_LIB_PLOT_TIMELINE_H_

#include <vector>

#include "spillway/v1/simulate.pb.h"

namespace spillway::plot {

// From `ns` on so many bytes are in use.
struct Sample {
  double ns = 0;
  double bytes = 0;
};

// The samples of `memory` that a picture `columns` pixels wide of `end_ns` shows: of each column of
// pixels the first of the most bytes, and the last. All of them, where they are few. What is out of
// order, or below 0, is left out.
std::vector<Sample> Thinned(const v1::DeviceMemory& memory, double end_ns, int columns);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_TIMELINE_H_
