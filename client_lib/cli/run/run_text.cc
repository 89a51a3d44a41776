#include "client_lib/cli/run/run_text.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_lib/cli/print/text_table.h"
#include "rewrite_core/base/rewrite_figures.h"

namespace spillway::cli {
namespace {

const char* FitVerb(v1::Fit fit) {
  switch (fit) {
    case v1::FIT_FITS:
      return "fits";
    case v1::FIT_DOES_NOT_FIT:
      return "does not fit";
    default:
      return "unknown whether it fits";
  }
}

// The simulator is less accurate than a tenth of a percent.
std::string SpeedText(const core::RewriteFigures& figures) {
  const std::optional<double> slowdown = figures.slowdown();
  if (!slowdown.has_value()) return "slow-down unknown";
  if (*slowdown >= 2) return absl::StrFormat("%.1f times as long a step", *slowdown);
  const double percent = std::round((*slowdown - 1) * 100);
  if (percent == 0) return "as fast";
  return absl::StrFormat("%.0f %% %s", std::abs(percent), percent > 0 ? "slower" : "faster");
}

// The peak and the budget of the fullest GPU.
std::string MemoryText(const core::RewriteFigures& figures) {
  const core::GpuFigures* const gpu = figures.fullest();
  if (gpu == nullptr || !gpu->used_bytes().has_value()) return "";
  const std::string used = FormatBytes(*gpu->used_bytes());
  if (!gpu->budget_bytes.has_value()) return used;
  return absl::StrCat(used, " of ", FormatBytes(*gpu->budget_bytes));
}

// Settings that the program's sessions must be created with.
std::string SessionText(const v1::Advice& advice) {
  if (advice.internal_fragmentation_fraction() == 0) return "";
  return absl::StrCat(
      ", for sessions with gpu_options.experimental.internal_fragmentation_fraction ",
      advice.internal_fragmentation_fraction());
}

}  // namespace

std::string CostText(const v1::RewriteReport& report) {
  const core::RewriteFigures figures = core::FiguresOf(report);
  std::vector<std::string> parts;
  if (figures.swapped_tensors == 0) {
    parts.push_back(absl::StrCat(
        FitVerb(figures.fit), report.outcome() == v1::OUTCOME_REWRITTEN ? " without swaps" : ""));
    if (std::string memory = MemoryText(figures); !memory.empty()) parts.push_back(memory);
    return absl::StrJoin(parts, ", ");
  }
  parts.push_back(
      absl::StrCat(FitVerb(figures.fit), " with ", FormatCount(figures.swapped_tensors, "swap")));
  // A lower bound if tensors of unknown size are left out.
  parts.push_back(absl::StrCat(figures.unknown_size_tensors > 0 ? ">= " : "",
                               FormatBytes(figures.swap_out_bytes)));
  parts.push_back(SpeedText(figures));
  parts.push_back(figures.host_peak_bytes.has_value()
                      ? absl::StrCat("host memory ", FormatBytes(*figures.host_peak_bytes))
                      : "host memory unknown");
  return absl::StrJoin(parts, ", ");
}

std::string RunText(const std::string& graph, const PreparedGraph& prepared) {
  const v1::RewriteReport& report = prepared.report;
  std::vector<std::string> notes;
  if (const v1::Hardware& hardware = report.hardware().hardware();
      hardware.gpu_memory_source() == v1::MEMORY_SOURCE_NVIDIA_SMI) {
    notes.push_back(
        absl::StrCat(FormatBytes(hardware.gpu_memory_bytes()), " per GPU from nvidia-smi"));
  }
  if (prepared.cached) notes.push_back("from the cache");
  const std::string end =
      absl::StrCat(notes.empty() ? "" : absl::StrCat(" (", absl::StrJoin(notes, ", "), ")"),
                   SessionText(report.advice()));
  if (!prepared.graph_path.empty()) {
    return absl::StrCat(graph, " -> ", prepared.graph_path, ": ", CostText(report), end);
  }
  // Reporting that it fits unchanged is enough: the summary would only repeat it.
  const bool says_fit = core::FiguresOf(report).fit == v1::FIT_FITS && report.fits_size() > 0 &&
                        report.fits(0).not_needed();
  return absl::StrCat(graph, " stays as it is: ", CostText(report), says_fit ? "" : "; ",
                      says_fit ? "" : report.summary(), end);
}

}  // namespace spillway::cli
