// The memory of one GPU over a step: the budget, resident memory, the step beside the one before
// the rewrite, and the live buffers at the peak.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_MEMORY_PANEL_H_
#define SPILLWAY_CLIENT_LIB_PLOT_MEMORY_PANEL_H_

#include <cstdint>

#include "client_lib/plot/plot_area.h"
#include "client_lib/plot/svg.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::plot {

// One GPU of a step.
struct GpuStep {
  const v1::SimulateReport* report = nullptr;  // Null: no step.
  int gpu = 0;

  bool has_memory() const { return report != nullptr && gpu < report->memory_size(); }
  const v1::DeviceMemory& memory() const { return report->memory(gpu); }
  // 0: no budget.
  int64_t budget_bytes() const {
    if (report == nullptr || gpu >= report->forecast().devices_size()) return 0;
    return report->forecast().devices(gpu).budget_bytes();
  }
};

// Returns the maximum of everything that the panel shows, in bytes.
double MostBytes(const GpuStep& step, const GpuStep& before);

// The height of the row of labels above the panel.
inline constexpr double kLabelsHeight = 26;
// Draws the panel, and the labels above it. `area.y` is in bytes, `area.x` in nanoseconds.
void DrawMemory(const PlotArea& area, const GpuStep& step, const GpuStep& before, Svg* svg);

// Draws the largest buffers that are live at the peak, `height` high, starting at `corner`.
// `is_after`: of the step after the rewrite, as the heading then says.
void DrawAlive(Point corner, double width, double height, const GpuStep& step, bool is_after,
               Svg* svg);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_MEMORY_PANEL_H_
