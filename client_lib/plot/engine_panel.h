// The activity of a GPU's engines over a step, one row for each, and the tensors that are in host
// memory meanwhile.
//
// Thread safety: immutable after construction.
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

// Returns the trips of one GPU's tensors, largest first: those that leave it, come back to it, and
// matter to its memory.
std::vector<SwapTrip> SwapTrips(const GpuStep& step);

// The maximum number of trips that are drawn, and the height of that.
inline constexpr size_t kMaxTrips = 12;
double SwapsHeight(size_t trips);
// Draws the trips as arrows from the copy out to the end of the copy in, with the tensors' names
// and sizes at the right of the area, `names_width` wide.
void DrawSwaps(const PlotArea& area, const std::vector<SwapTrip>& trips, double names_width,
               Svg* svg);

// Whether the span is of a recomputation, and the style of such spans.
bool RunsAgain(const v1::TraceSpan& span);
inline constexpr char kAgainStyle[] = "again";

// One row: the spans of an engine of one GPU.
struct EngineRow {
  std::string label;
  std::string style;
  std::vector<const v1::TraceSpan*> spans;  // In order of their start.
};

// Returns the rows for `step`, with the compute engine of `before` if that was traced.
std::vector<EngineRow> EngineRows(const GpuStep& step, const GpuStep& before);
double EnginesHeight(size_t rows);
// Draws the rows. `area.x` is in nanoseconds. Spans that are too short to be visible are merged.
void DrawEngines(const PlotArea& area, const std::vector<EngineRow>& rows, Svg* svg);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_ENGINE_PANEL_H_
