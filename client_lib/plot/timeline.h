// The memory of a GPU over a step, reduced to the resolution of a picture.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_TIMELINE_H_
#define SPILLWAY_CLIENT_LIB_PLOT_TIMELINE_H_

#include <vector>

#include "spillway/v1/simulate.pb.h"

namespace spillway::plot {

// From `ns` on, `bytes` are in use.
struct Sample {
  double ns = 0;
  double bytes = 0;
};

// Returns the samples of `memory` for a picture of `end_ns` that is `columns` pixels wide: of each
// pixel column, the first sample with the maximum, and the last sample. Returns all of them if they
// are few. Samples that are out of order or negative are left out.
std::vector<Sample> Thinned(const v1::DeviceMemory& memory, double end_ns, int columns);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_TIMELINE_H_
