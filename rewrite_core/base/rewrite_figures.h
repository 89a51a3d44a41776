// A rewrite in a few numbers from its report, shared by the server's metrics, log and journal and
// by the job hook, so that all of them agree.
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

// The machine name for a HardwareReport without a preset.
inline constexpr absl::string_view kCustomMachine = "custom";

// One GPU, in bytes; values that were not computed are absent.
struct GpuFigures {
  std::string device;  // As spelled in the nodes; empty if they have none.
  // The peak of a step of the original graph and of the returned one: equal if nothing is swapped.
  int64_t peak_before_bytes = 0;
  std::optional<int64_t> peak_after_bytes;
  std::optional<int64_t> budget_bytes;
  // The smallest budget with which the returned graph runs, placed (DeviceFit.need_bytes).
  std::optional<int64_t> need_bytes;

  // The larger of need and peak after; absent if neither is known.
  std::optional<int64_t> used_bytes() const;
};

// All counts are for one step, over all GPUs.
struct RewriteFigures {
  int64_t swapped_tensors = 0;
  int64_t unknown_size_tensors = 0;  // Those of them without a known size, which the bytes do not
                                     // include.
  int64_t swap_out_bytes = 0;
  int64_t swap_in_bytes = 0;
  // Recomputation in the step: nodes, the bytes that these make, and their time.
  int64_t recomputed_nodes = 0;
  int64_t recomputed_bytes = 0;
  int64_t recompute_ns = 0;

  // In order of the device's first node. Empty if nothing was simulated.
  std::vector<GpuFigures> gpus;
  // The peak of the pinned host memory for swaps.
  std::optional<int64_t> host_peak_bytes;
  // The step time of the original graph, with unlimited memory if that is known, and of the
  // returned graph; launched ahead.
  std::optional<int64_t> step_before_ns;
  std::optional<int64_t> step_after_ns;
  v1::Fit fit = v1::FIT_UNSPECIFIED;  // The fit of the returned graph.
  std::string machine;                // The preset's name, or kCustomMachine; empty: no machine.

  // Step after / step before; absent if either is.
  std::optional<double> slowdown() const;
  // The GPU with the largest peak before; null if none.
  const GpuFigures* fullest() const;
};

// A report without forecasts or fits, such as that of a stripped graph, only gives counts.
RewriteFigures FiguresOf(const v1::RewriteReport& report);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_REWRITE_FIGURES_H_
