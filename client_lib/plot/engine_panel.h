// What the engines of a GPU do over a step, one row for each, and which tensors are away in host
// memory meanwhile.
//
// Thread safety: immutable after it is made.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_ENGINE_PANEL_H_
#define SPILLWAY_CLIENT_LIB_PLOT_ENGINE_PANEL_H_

#include <string>
#include <vector>

#include "client_lib/plot/memory_panel.h"
#include "client_lib/plot/plot_area.h"
#include "client_lib/plot/svg.h"

namespace spillway::plot {

// A tensor's trip to the host and back.
struct SwapTrip {
  const v1::TraceSpan* out;
  const v1::TraceSpan* in;
};

// The trips of one GPU's tensors, largest first: those that leave from there, come back there, and
// matter to its memory.
std::vector<SwapTrip> SwapTrips(const GpuStep& step);

// So many of them are drawn at most, and so high is that.
inline constexpr size_t kMaxTrips = 12;
double SwapsHeight(size_t trips);
// As arrows, from when a tensor has left to when it comes back.
void DrawSwaps(const PlotArea& area, const std::vector<SwapTrip>& trips, Svg* svg);

// One row: the spans of an engine of one GPU.
struct EngineRow {
  std::string label;
  std::string style;
  std::vector<const v1::TraceSpan*> spans;  // In order of their start.
};

// The rows for `step`; with the compute engine of `before`, if that was traced.
std::vector<EngineRow> EngineRows(const GpuStep& step, const GpuStep& before);
double EnginesHeight(size_t rows);
// `area.x` counts nanoseconds. What is too short to be seen is drawn together.
void DrawEngines(const PlotArea& area, const std::vector<EngineRow>& rows, Svg* svg);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_ENGINE_PANEL_H_
