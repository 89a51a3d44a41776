// A rewrite in a few numbers, out of its report: what a server counts, logs and keeps in its
// journal, and what a job hook says, so that all of them say the same.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_BASE_REWRITE_FIGURES_H_
#define SPILLWAY_REWRITE_CORE_BASE_REWRITE_FIGURES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// What HardwareReport is called that has no preset.
inline constexpr absl::string_view kCustomMachine = "custom";

// One GPU. In bytes; what was not computed is absent.
struct GpuFigures {
  std::string device;  // As the nodes spell it; empty where they carry none.
  // The most in use at once in a step of the graph as it came and as it is returned: the same where
  // nothing is swapped.
  int64_t peak_before_bytes = 0;
  std::optional<int64_t> peak_after_bytes;
  std::optional<int64_t> budget_bytes;
  // The smallest budget with which the returned graph runs, placed (DeviceFit.need_bytes).
  std::optional<int64_t> need_bytes;

  // The larger of need and peak after; absent where neither is known.
  std::optional<int64_t> used_bytes() const;
};

// All counts are of one step, of all GPUs together.
struct RewriteFigures {
  int64_t swapped_tensors = 0;
  int64_t unknown_size_tensors = 0;  // Of those: not in the bytes.
  int64_t swap_out_bytes = 0;
  int64_t swap_in_bytes = 0;

  // In order of the device's first node. Empty where nothing was simulated.
  std::vector<GpuFigures> gpus;
  // The most pinned host memory that the swaps take at once.
  std::optional<int64_t> host_peak_bytes;
  // A step as the graph came, with unlimited memory where that is known, and as it is returned;
  // launched ahead.
  std::optional<int64_t> step_before_ns;
  std::optional<int64_t> step_after_ns;
  v1::Fit fit = v1::FIT_UNSPECIFIED;  // Of the graph as it is returned.
  std::string machine;                // The preset's name, or kCustomMachine; empty: no machine.

  // Step after / step before; absent where one of them is.
  std::optional<double> slowdown() const;
  // The one with the largest peak before; null without any.
  const GpuFigures* fullest() const;
};

// A report without forecasts or fits, as of a graph that is stripped, has counts alone.
RewriteFigures FiguresOf(const v1::RewriteReport& report);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_REWRITE_FIGURES_H_
