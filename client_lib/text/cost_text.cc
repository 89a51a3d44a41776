#include "client_lib/text/cost_text.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_lib/text/forecast_parts.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/rewrite_figures.h"

namespace spillway::text {
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
  if (gpu == nullptr || !gpu->peak_after_bytes.has_value()) return "";
  const std::string used = core::BytesText(*gpu->peak_after_bytes);
  if (!gpu->budget_bytes.has_value()) return used;
  return absl::StrCat(used, " of ", core::BytesText(*gpu->budget_bytes));
}

// First of all, as one line has no heading.
std::string MayRunOutClause(const v1::RewriteReport& report) {
  const std::string text = MayRunOutText(report);
  return text.empty() ? "" : absl::StrCat(text, "; ");
}

}  // namespace

std::string CostText(const v1::RewriteReport& report) {
  const core::RewriteFigures figures = core::FiguresOf(report);
  const std::string start = absl::StrCat(
      MayRunOutClause(report), report.outcome() == v1::OUTCOME_DRY_RUN ? "dry run: " : "");
  std::vector<std::string> parts;
  if (figures.swapped_tensors == 0 && figures.recomputed_nodes == 0) {
    parts.push_back(
        absl::StrCat(start, FitVerb(figures.fit),
                     report.outcome() == v1::OUTCOME_REWRITTEN ? " without swaps" : ""));
    if (std::string memory = MemoryText(figures); !memory.empty()) parts.push_back(memory);
    return absl::StrJoin(parts, ", ");
  }
  std::vector<std::string> means;
  if (figures.swapped_tensors > 0) means.push_back(FormatCount(figures.swapped_tensors, "swap"));
  if (figures.recomputed_nodes > 0) {
    means.push_back(FormatCount(figures.recomputed_nodes, "recomputed node"));
  }
  parts.push_back(
      absl::StrCat(start, FitVerb(figures.fit), " with ", absl::StrJoin(means, " and ")));
  if (figures.swapped_tensors > 0) {
    parts.push_back(KnownBytes(figures.swap_out_bytes, figures.unknown_size_tensors));
  }
  parts.push_back(SpeedText(figures));
  if (figures.swapped_tensors > 0) {
    parts.push_back(figures.host_peak_bytes.has_value()
                        ? absl::StrCat("host memory ", core::BytesText(*figures.host_peak_bytes))
                        : "host memory unknown");
  }
  if (report.same_bits() == v1::SAME_BITS_NO) {
    parts.push_back("last bits may differ (--recompute off: only by Grappler)");
  }
  return absl::StrJoin(parts, ", ");
}

std::string ReportLine(const v1::RewriteReport& report) {
  const bool planned =
      report.outcome() == v1::OUTCOME_REWRITTEN || report.outcome() == v1::OUTCOME_DRY_RUN;
  return planned ? CostText(report) : absl::StrCat(MayRunOutClause(report), report.summary());
}

}  // namespace spillway::text
