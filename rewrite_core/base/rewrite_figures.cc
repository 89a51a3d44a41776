#include "rewrite_core/base/rewrite_figures.h"

#include <algorithm>

#include "rewrite_core/base/saturating.h"

namespace spillway::core {
namespace {

// `likely`: its place in a forecast of the same graph. There may be very many GPUs.
const v1::DeviceForecast* FindDevice(const v1::Forecast& forecast, int likely,
                                     absl::string_view device) {
  if (likely < forecast.devices_size() && forecast.devices(likely).device() == device) {
    return &forecast.devices(likely);
  }
  for (const v1::DeviceForecast& candidate : forecast.devices()) {
    if (candidate.device() == device) return &candidate;
  }
  return nullptr;
}

const v1::DeviceFit* FindFit(const v1::RewriteReport& report, absl::string_view device) {
  for (const v1::DeviceFit& fit : report.fits()) {
    if (fit.device() == device) return &fit;
  }
  return nullptr;
}

// Copies the fit of a GPU from the strategy; the result for all GPUs together is in the forecasts.
void TakeFit(const v1::DeviceFit& fit, GpuFigures* gpu) {
  if (!gpu->budget_bytes.has_value() && fit.budget_bytes() > 0) {
    gpu->budget_bytes = fit.budget_bytes();
  }
  if (fit.has_need_bytes()) gpu->need_bytes = fit.need_bytes();
}

GpuFigures FiguresOf(int index, const v1::RewriteReport& report) {
  const v1::DeviceForecast& before = report.forecast_before().devices(index);
  GpuFigures gpu;
  gpu.device = before.device();
  gpu.peak_before_bytes = before.peak_bytes();
  const v1::DeviceForecast* const after =
      report.has_forecast_after() ? FindDevice(report.forecast_after(), index, before.device())
                                  : &before;
  if (after != nullptr) gpu.peak_after_bytes = after->peak_bytes();
  if (before.has_bounds() || before.budget_bytes() > 0) gpu.budget_bytes = before.budget_bytes();
  if (const v1::DeviceFit* fit = FindFit(report, before.device()); fit != nullptr) {
    TakeFit(*fit, &gpu);
  }
  return gpu;
}

// For a report without a forecast.
GpuFigures FiguresOf(const v1::DeviceFit& fit) {
  GpuFigures gpu;
  gpu.device = fit.device();
  gpu.peak_before_bytes = fit.unswapped_peak_bytes();
  if (fit.not_needed()) {
    gpu.peak_after_bytes = fit.unswapped_peak_bytes();
  } else if (fit.has_peak_bytes()) {
    gpu.peak_after_bytes = fit.peak_bytes();
  }
  TakeFit(fit, &gpu);
  return gpu;
}

// If the original graph does not fit, its forecast has no step time: that of the fits assumes
// unlimited memory.
std::optional<int64_t> StepBefore(const v1::RewriteReport& report) {
  int64_t full_speed_ns = 0;
  for (const v1::DeviceFit& fit : report.fits()) {
    full_speed_ns = std::max(full_speed_ns, fit.full_speed_step_time_ns());
  }
  if (full_speed_ns > 0) return full_speed_ns;
  if (report.forecast_before().step_time_ns() > 0) return report.forecast_before().step_time_ns();
  return std::nullopt;
}

std::optional<int64_t> StepAfter(const v1::RewriteReport& report) {
  const v1::Forecast& after =
      report.has_forecast_after() ? report.forecast_after() : report.forecast_before();
  if (after.step_time_ns() > 0) return after.step_time_ns();
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> GpuFigures::used_bytes() const {
  if (!need_bytes.has_value()) return peak_after_bytes;
  return std::max(*need_bytes, peak_after_bytes.value_or(0));
}

std::optional<double> RewriteFigures::slowdown() const {
  if (!step_before_ns.has_value() || !step_after_ns.has_value()) return std::nullopt;
  return static_cast<double>(*step_after_ns) / static_cast<double>(*step_before_ns);
}

const GpuFigures* RewriteFigures::fullest() const {
  const auto fullest =
      std::max_element(gpus.begin(), gpus.end(), [](const GpuFigures& a, const GpuFigures& b) {
        return a.peak_before_bytes < b.peak_before_bytes;
      });
  return fullest != gpus.end() ? &*fullest : nullptr;
}

RewriteFigures FiguresOf(const v1::RewriteReport& report) {
  RewriteFigures figures;
  for (const v1::DeviceReport& device : report.devices()) {
    figures.swapped_tensors += device.swapped_tensor_count();
    figures.unknown_size_tensors += device.unknown_size_count();
    figures.swap_out_bytes = SaturatingAdd(figures.swap_out_bytes, device.swap_out_bytes());
    figures.swap_in_bytes = SaturatingAdd(figures.swap_in_bytes, device.swap_in_bytes());
  }
  figures.recomputed_nodes = report.recomputation().node_count();
  figures.recomputed_bytes = report.recomputation().bytes();
  figures.recompute_ns = report.recomputation().time_ns();
  for (int i = 0; i < report.forecast_before().devices_size(); ++i) {
    figures.gpus.push_back(FiguresOf(i, report));
  }
  if (figures.gpus.empty()) {
    for (const v1::DeviceFit& fit : report.fits()) figures.gpus.push_back(FiguresOf(fit));
  }
  const v1::Forecast& after =
      report.has_forecast_after() ? report.forecast_after() : report.forecast_before();
  if (report.has_forecast_before() || report.has_forecast_after()) {
    figures.host_peak_bytes = after.host_peak_bytes();
    figures.fit = after.fit();
  }
  figures.step_before_ns = StepBefore(report);
  figures.step_after_ns = StepAfter(report);
  if (report.has_hardware()) {
    const std::string& preset = report.hardware().hardware().preset();
    figures.machine = preset.empty() ? std::string(kCustomMachine) : preset;
  }
  return figures;
}

}  // namespace spillway::core
